// Every reader of a file that a user may have got from somewhere.
#include "test/fuzz/Targets.h"

#include "frontend/Checker.h"
#include "frontend/Explain.h"
#include "frontend/Format.h"
#include "frontend/Parser.h"
#include "frontend/Plan.h"
#include "frontend/Recipe.h"
#include "frontend/Weights.h"
#include "runtime/control/Ranking.h"
#include "runtime/control/WindowsFile.h"
#include "runtime/core/Checksum.h"
#include "runtime/core/Json.h"
#include "runtime/core/Safetensors.h"
#include "runtime/data/Shard.h"
#include "runtime/data/Tokenizer.h"
#include "runtime/measure/RunLog.h"
#include "runtime/train/Checkpoint.h"

#include <cstring>
#include <filesystem>
#include <set>

namespace weft::fuzz {
namespace {

//===----------------------------------------------------------------------===//
// The language
//===----------------------------------------------------------------------===//

std::set<lang::Code> reached;

/// `error codes: 97 of 113; never: W0005 ...`; command lines and files are no texts.
std::string codesReached() {
  size_t all = 0;
  std::string never;
  for (const std::string &name : lang::explainedCodes()) {
    const std::optional<lang::Code> code = lang::codeNamed(name);
    if (!code)
      continue;
    ++all;
    if (!reached.count(*code))
      never += " " + name;
  }
  return "error codes: " + std::to_string(reached.size()) + " of " + std::to_string(all) + "; never:" + never;
}

/// Codes of the errors, in order of places.
std::string codesOf(const lang::Diagnostics &diagnostics, const lang::SourceFiles &sources) {
  std::string codes;
  for (const lang::Diagnostic &entry : diagnostics.sorted())
    reached.insert(entry.code);
  const std::string text = diagnostics.render(sources);
  for (size_t at = 0; (at = text.find("error[W", at)) != std::string::npos && codes.size() < 40; ++at)
    codes += text.substr(at + 6, 5);
  return codes;
}

void checkAll(const lang::ast::File &file, const lang::SourceFiles &sources, lang::Diagnostics &diagnostics) {
  for (const lang::ast::Model &tree : file.models) {
    std::optional<lang::Model> model = lang::checkModel(file, sources, tree.name.text, {}, diagnostics);
    if (!model)
      continue;
    for (const lang::ast::Plan &plan : file.plans)
      if (plan.model.text == model->name)
        lang::checkPlan(file, sources, plan.name.text, *model, diagnostics);
    for (const lang::ast::Train &train : file.trains)
      if (train.model.text == model->name)
        lang::checkRecipe(file, sources, train.name.text, *model, diagnostics);
    for (const lang::ast::Weights &table : file.weights)
      if (table.model.text == model->name)
        lang::checkWeights(file, sources, table.name.text, *model, diagnostics);
  }
}

std::string language(const std::string &input) {
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  // `use` would read files of the machine: its word is broken.
  std::string text = input;
  for (size_t at = 0; (at = text.find("use", at)) != std::string::npos; at += 3)
    text[at] = 'U';
  const lang::ast::File file = lang::parseText("input.weft", text, sources, diagnostics);
  const bool parsed = !diagnostics.hasErrors();
  // As an editor does: what could be parsed is checked, whatever could not.
  lang::Diagnostics rest;
  checkAll(file, sources, parsed ? diagnostics : rest);
  // The one form is a fixed point, and as right as the text was.
  if (absl::StatusOr<std::string> once = lang::formatText("input.weft", text); once.ok()) {
    absl::StatusOr<std::string> twice = lang::formatText("input.weft", *once);
    require(twice.ok() && *twice == *once, "fmt of fmt differs");
    lang::Diagnostics after;
    lang::parseText("input.weft", *once, sources, after);
    require(after.hasErrors() == !parsed, "fmt changes what the text means");
  }
  if (!diagnostics.hasErrors())
    return "ok";
  return codesOf(diagnostics, sources) + " " + codesOf(rest, sources);
}

constexpr const char *kStatementsForNano = R"(
plan chosen for nano {
  windows adaptive [16, 32, full] on block[0].attn { every = 5 steps, start = 32, hierarchy = [2], ramp = 10..20 }
  windows random [16, full] on block[1].attn.heads[0] { share = [0.5, 0.5], redraw = yes, seed = 3 }
  windows [8] on block[1].attn.heads[1] from step 20
}
plan frozen for nano {
  freeze 50% of block[..].attn.heads[..] at 25% of steps { by = forward_kl, order = highest, pattern = sharp, calibrate = 16 rows }
}
plan pruned for nano { prune 1 of block[0].attn.heads[..] at step 10 { by = gate_taylor, scope = layer } }
plan dropped for nano { drop block[0..1].ffn }
train other for nano {
  data = "builtin:austen", batch = 4 x 64 in 2, tokens = 100000, eval = every 10 steps on 8 rows
  optimizer = muon(lr = 0.02) on kernels, adamw(lr = 1e-3) on rest
  schedule = wsd(warmup = 2%, decay = 20%, floor = 0%)
  save = every 50 steps keep 3, watch = norm(all), precision = fp32
}
weights flat for nano {
  sizes "config.json" { vocab = n_vocab, dim = width or hidden_size, hidden = inner or default }
  expect activation "gelu", scaling absent, eps 1e-6 or absent
  prefix "model." or ""
  embed              <-> "embed.weight"             [vocab, dim]
  final_gain         <-> "norm.weight"              [dim]
  block[i].attn.gain <-> "h.{i}.norm1.weight"       [dim]
  block[i].attn.(wq, wk, wv) <-> "h.{i}.qkv.weight" [(3, heads, head), dim]
  block[i].attn.wo   <-> "h.{i}.out.weight"         [dim, (heads, head)]
  block[i].ffn.gain  <-> "h.{i}.norm2.weight"       [dim]
  block[i].ffn.up    <-> "h.{i}.up.weight"          [hidden, dim]
  block[i].ffn.down  <-> "h.{i}.down.weight"        [dim, hidden]
  tied embed         ==  "head.weight"              [vocab, dim]
  ignore "h.{i}.mask"
}
)";

std::vector<std::string> languageSeeds() {
  std::vector<std::string> seeds = {sourceFile("models/nano.weft") + kStatementsForNano};
  for (const char *name : {"nano", "tiny", "gpt2", "san", "qwen3"})
    seeds.push_back(sourceFile(std::string("models/") + name + ".weft"));
  return seeds;
}

//===----------------------------------------------------------------------===//
// Tensors, executables' JSON, checkpoints
//===----------------------------------------------------------------------===//

std::string safetensors(const std::string &input) {
  absl::StatusOr<rt::SafetensorsFile> file = rt::SafetensorsFile::open(fileWith(input, "a.safetensors"));
  if (!file.ok())
    return outcomeOf(file.status());
  for (const auto &[name, info] : file->tensors()) {
    require(info.begin <= info.end && info.end <= input.size(), "a tensor lies outside the file");
    absl::StatusOr<rt::Tensor> tensor = file->readAs(name, rt::ElementType::F32);
    if (tensor.ok())
      require(tensor->bytes.size() == static_cast<size_t>(tensor->elements()) * 4,
              "a tensor of another size");
  }
  return "ok";
}

std::string withHeader(const std::string &header, size_t dataBytes) {
  std::string text(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(text.data(), &length, 8);
  return text + header + std::string(dataBytes, 'x');
}

std::vector<std::string> safetensorsSeeds() {
  return {
      withHeader("{}", 0),
      withHeader(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                 R"("b":{"dtype":"F32","shape":[1,2],"data_offsets":[6,14]}})",
                 14),
      withHeader(R"({"e":{"dtype":"F64","shape":[0,7],"data_offsets":[0,0]},)"
                 R"("s":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})",
                 2)};
}

std::string shardIndex(const std::string &input) {
  const std::string path = fileWith(input, "model.safetensors.index.json");
  fileWith(safetensorsSeeds()[1], "one.safetensors");
  return outcomeOf(rt::SafetensorsSet::open(path).status());
}

std::vector<std::string> shardIndexSeeds() {
  return {
      R"({"metadata": {"total_size": 14}, "weight_map": {"a": "one.safetensors", "b": "one.safetensors"}})"};
}

std::string executable(const std::string &input) {
  // The sum of the bytes is made right, or it would guard everything behind it.
  std::string file = input;
  for (uint64_t sum = rt::checksum(input), i = 0; i < 8; ++i, sum >>= 8)
    file.push_back(static_cast<char>(sum & 255));
  absl::StatusOr<rt::Executable> read = rt::deserialize(file);
  if (!read.ok())
    return outcomeOf(read.status());
  absl::StatusOr<std::string> again = rt::serialize(*read);
  require(again.ok(), "what was read can't be written");
  return "ok";
}

/// Two programs' worth of everything that a file can hold, without machine code.
std::vector<std::string> executableSeeds() {
  rt::Executable made;
  made.model = "m";
  made.target = "cpu:x86_64";
  made.build = "b";
  rt::StateEntry entry;
  entry.name = "w";
  entry.shape = {2, 3};
  made.states.push_back(entry);
  made.stateBytes = 64;
  made.arenaBytes = 128;
  rt::Kernel zero;
  zero.name = "zero";
  zero.hash = "0123456789abcdef";
  zero.kind = rt::Kernel::Kind::Zero;
  made.kernels.push_back(zero);
  rt::Program program;
  program.name = "eval";
  program.results.push_back({"loss", rt::ElementType::F32, {}});
  program.calls.push_back({0, 1, {{rt::Space::Arena, 0, 24, 0}}});
  made.programs.push_back(program);
  absl::StatusOr<std::string> bytes = rt::serialize(made);
  require(bytes.ok(), "the executable can't be written");
  return {bytes->substr(0, bytes->size() - 8)};
}

std::string checkpoint(const std::string &input) {
  const std::string path = fileWith(input, "run.json");
  return outcomeOf(rt::readCheckpointInfo(std::filesystem::path(path).parent_path().string()).status());
}

std::vector<std::string> checkpointSeeds() {
  return {
      R"({"format": 1, "model": "m", "build": "b", "step": 4, "total_steps": 9, "tokens": 12, "skipped": 0,)"
      R"( "seconds": 1.5, "seed": 3, "rows": 2, "positions": 8, "decisions": null, "controller": false,)"
      R"( "source": "model m() { }"})"};
}

//===----------------------------------------------------------------------===//
// Text, tokens, JSON
//===----------------------------------------------------------------------===//

std::string shard(const std::string &input) {
  absl::StatusOr<rt::Shard> read = rt::openShard(fileWith(input, "a.bin"));
  if (!read.ok())
    return outcomeOf(read.status());
  uint64_t sum = 0;
  for (int64_t i = 0; i < read->count; ++i)
    sum += read->at(i);
  rt::TokenStream stream;
  const absl::Status status = rt::addShard(stream, fileWith(input, "a.bin"), 0, 1 << 16);
  require(!status.ok() || stream.size() == read->count, "ids were lost");
  return sum == UINT64_MAX ? "" : outcomeOf(status);
}

std::vector<std::string> shardSeeds() {
  rt::TokenStream stream;
  stream.add({0, 5, 6, 7});
  stream.add({0, 300, 2});
  std::vector<std::string> seeds;
  const std::string path = fileWith("", "seed.bin");
  require(rt::writeShard(path, stream, 1024).ok(), "a shard can't be written");
  FILE *file = std::fopen(path.c_str(), "rb");
  std::string bytes(1 << 16, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  seeds.push_back(bytes);
  return seeds;
}

std::string tokenizer(const std::string &input) {
  absl::StatusOr<std::shared_ptr<const rt::Tokenizer>> made = rt::makeTokenizer(fileWith(input, "ranks.txt"));
  if (!made.ok())
    return outcomeOf(made.status());
  const std::string text = "ab \xff\n abab " + input.substr(0, 40);
  const std::vector<int32_t> ids = (*made)->encode(text);
  for (const int32_t id : ids)
    require(id >= 0 && id < (*made)->vocabulary(), "an id outside the vocabulary");
  require((*made)->decode(ids) == text, "decode(encode(x)) is not x");
  return "ok";
}

std::string base64Of(const std::string &bytes) {
  static const char *kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::vector<std::string> tokenizerSeeds() {
  std::string ranks;
  int id = 0;
  for (; id < 256; ++id)
    ranks += base64Of(std::string(1, static_cast<char>(id))) + " " + std::to_string(id) + "\n";
  for (const char *merge : {"ab", " a", "abab"})
    ranks += base64Of(merge) + " " + std::to_string(id++) + "\n";
  return {ranks};
}

std::string json(const std::string &input) {
  absl::StatusOr<rt::Json> value = rt::parseJson(input, "input");
  if (!value.ok())
    return outcomeOf(value.status());
  require(rt::parseJson(rt::dumpJson(*value), "again").ok(), "what was written is no JSON");
  return "ok";
}

std::vector<std::string> jsonSeeds() {
  return {R"({"a": [1, -2.5e-3, true, null], "b": {"c": "\u00e9\n\"", "d": []}})", "[[[[]]]]",
          "12345678901234567890"};
}

std::string windows(const std::string &input) {
  absl::StatusOr<rt::WindowsFile> file = rt::parseWindows(input, "input");
  if (!file.ok())
    return outcomeOf(file.status());
  require(rt::parseWindows(rt::printWindows(*file), "again").ok(), "what was written can't be read");
  return "ok";
}

std::vector<std::string> windowsSeeds() { return {rt::printWindows({64, {{16, 32}, {64, 1}}})}; }

std::string ranking(const std::string &input) {
  return outcomeOf(rt::readRanking(fileWith(input, "heads.json")).status());
}

std::vector<std::string> rankingSeeds() {
  return {
      R"({"heads": [{"layer": 0, "head": 1, "chosen": true}, {"layer": 0, "head": 0, "chosen": false}]})"};
}

std::string runLog(const std::string &input) {
  const std::string path = fileWith(input, "log.jsonl");
  absl::StatusOr<std::vector<rt::LogRow>> rows =
      rt::readRunLog(std::filesystem::path(path).parent_path().string());
  if (!rows.ok())
    return outcomeOf(rows.status());
  require(!rt::csvOf(*rows).empty() && !rt::tensorBoardOf(*rows, 0).empty(), "nothing was written");
  return "ok";
}

std::vector<std::string> runLogSeeds() {
  return {"{\"kind\":\"train\",\"step\":1,\"loss\":5.5,\"seconds\":0.5}\n"
          "{\"kind\":\"eval\",\"step\":1,\"loss\":null,\"regions\":[{\"loss\":1}]}\n"};
}

} // namespace

const std::vector<Target> &targets() {
  const std::vector<std::string> jsonWords = {"{",  "}",    "[",    "]",     ",",       ":",
                                              "\"", "null", "true", "1e999", "\\ud800", "\"a\":"};
  static const std::vector<std::string> languageWords = {"model m(a = 1) { ",
                                                         "layer block[",
                                                         "branch ",
                                                         "param w : [",
                                                         "] init ",
                                                         "if ",
                                                         "else ",
                                                         "let ",
                                                         "def f(x) = ",
                                                         "attend(",
                                                         "loss = ",
                                                         "output y = ",
                                                         " @ ",
                                                         "**",
                                                         "(",
                                                         ")",
                                                         "[",
                                                         "]",
                                                         "{",
                                                         "}",
                                                         "<->",
                                                         "..",
                                                         "%",
                                                         "\"",
                                                         "#",
                                                         "\r\n",
                                                         "plan p for nano { ",
                                                         "train t for nano { ",
                                                         "weights w for nano { ",
                                                         "freeze 25% of ",
                                                         "windows ",
                                                         "drop ",
                                                         "expect a \"b\" or absent",
                                                         "\xef\xbb\xbf",
                                                         "\xc3\xbc"};
  static const std::vector<Target> all = {
      {"language", languageSeeds, languageWords, language, codesReached},
      {"safetensors",
       safetensorsSeeds,
       {"\"shape\":[", "\"data_offsets\":[", "\"dtype\":\"F32\"", "__metadata__", "[0,0]",
        "[4294967296,4294967296]"},
       safetensors},
      {"shard-index", shardIndexSeeds, jsonWords, shardIndex},
      {"executable", executableSeeds, jsonWords, executable},
      {"checkpoint", checkpointSeeds, jsonWords, checkpoint},
      {"shard", shardSeeds, {std::string(16, '\0'), std::string(4, '\xff')}, shard},
      {"tokenizer", tokenizerSeeds, {"\n", " ", "=", "YQ== ", "-1\n", "99999999999\n", "<|x|>"}, tokenizer},
      {"json", jsonSeeds, jsonWords, json},
      {"windows", windowsSeeds, jsonWords, windows},
      {"ranking", rankingSeeds, jsonWords, ranking},
      {"run-log", runLogSeeds, jsonWords, runLog},
      {"decisions", decisionsSeeds, jsonWords, decisions},
      {"named-heads", namedHeadsSeeds, jsonWords, namedHeads},
      {"controller", controllerSeeds, jsonWords, controller},
      {"choices", choicesSeeds, jsonWords, choices},
      {"object", objectSeeds, {}, object},
      {"r-table", rTableSeeds, {"\x1f\x8b"}, rTable},
      {"task", taskSeeds, {"pairs=", "vocab=", "passes=", ",a=", "-1", "9223372036854775807", "1e308"}, task},
      {"lsp-stream",
       lspStreamSeeds,
       {"Content-Length: ", "\r\n\r\n", "\"id\":", "\"method\":\"textDocument/", "\"params\":{",
        "\"line\":-1", "\"character\":4294967296", "\"text\":\"", "$/cancelRequest", "null"},
       lspStream},
      {"lsp-text", languageSeeds, languageWords, lspText},
  };
  return all;
}

} // namespace weft::fuzz
