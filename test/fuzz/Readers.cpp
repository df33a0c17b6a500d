// Every reader of a file that a user may have got from somewhere.
#include "test/fuzz/Targets.h"

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

namespace weft::fuzz {
namespace {

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
  static const std::vector<Target> all = {
      {"language", languageSeeds, languageWords(), language, codesReached, languageOthers},
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
      {"lsp-text", modelTexts, languageWords(), lspText, nullptr, languageOthers},
  };
  return all;
}

} // namespace weft::fuzz
