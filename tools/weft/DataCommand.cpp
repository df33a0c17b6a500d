//===- DataCommand.cpp - weft data prepare, show, tokenizer ----------------===//

#include "tools/weft/Output.h"

#include "runtime/core/File.h"
#include "runtime/core/Safetensors.h"
#include "runtime/data/Corpus.h"
#include "runtime/data/Mqar.h"
#include "runtime/data/Prepare.h"
#include "runtime/data/TrainBytePair.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

using namespace weft;
namespace cl = llvm::cl;

namespace {

constexpr const char *kSources = "SOURCE... (builtin:NAME, text files, token shards, patterns)";

int dataPrepare(int argc, const char **argv) {
  cl::list<std::string> sources(cl::Positional, cl::OneOrMore, cl::desc(kSources), cl::cat(flagCategory()));
  cl::opt<std::string> tokenizer("tokenizer",
                                 cl::desc("bytes, gpt2, gpt2(N) or a file of ranks (default: gpt2)"),
                                 cl::init("gpt2"), cl::cat(flagCategory()));
  cl::opt<std::string> out("out", cl::desc("shards/train makes shards/train-000000.bin and so on"),
                           cl::value_desc("PREFIX"), cl::cat(flagCategory()));
  cl::opt<int64_t> shard("shard-tokens", cl::desc("most tokens of a file (default: 100000000)"),
                         cl::init(100'000'000), cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "turns text into shards of token ids",
                  "  weft data prepare builtin:austen --tokenizer gpt2 --out shards/austen\n  weft data "
                  "prepare 'texts/*.txt' --tokenizer bytes --out shards/mine\n"))
    return kUsage;
  if (out.empty())
    return misuse("data prepare", "--out PREFIX is needed: where the shards go");
  rt::PrepareOptions options;
  options.sources.assign(sources.begin(), sources.end());
  options.tokenizer = tokenizer;
  options.out = out;
  options.shardTokens = shard;
  absl::StatusOr<rt::Prepared> prepared = rt::prepareData(options);
  if (!prepared.ok())
    return fail(prepared.status());
  if (json) {
    printJson({{"files", prepared->files},
               {"documents", prepared->documents},
               {"tokens", prepared->tokens},
               {"vocabulary", prepared->vocabulary}});
    return 0;
  }
  llvm::outs() << llvm::formatv("documents {0}, tokens {1}, ids {2}, files {3}\n",
                                grouped(prepared->documents), grouped(prepared->tokens),
                                grouped(prepared->vocabulary),
                                grouped(static_cast<int64_t>(prepared->files.size())));
  for (const std::string &file : prepared->files)
    llvm::outs() << "  " << file << "\n";
  return 0;
}

int dataShow(int argc, const char **argv) {
  cl::list<std::string> sources(cl::Positional, cl::OneOrMore, cl::desc(kSources), cl::cat(flagCategory()));
  cl::opt<std::string> tokenizer("tokenizer",
                                 cl::desc("bytes, gpt2, gpt2(N) or a file of ranks (default: bytes)"),
                                 cl::init("bytes"), cl::cat(flagCategory()));
  cl::opt<int64_t> document("document", cl::desc("whose head is shown, from 0"), cl::init(0),
                            cl::cat(flagCategory()));
  cl::opt<int64_t> tokens("tokens", cl::desc("how many of its tokens (default: 100)"), cl::init(100),
                          cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  if (!parseFlags(
          argc, argv, "counts documents and tokens and shows the head of a document",
          "  weft data show builtin:austen\n  weft data show 'shards/*.bin' --tokenizer gpt2 --document 3\n"))
    return kUsage;
  absl::StatusOr<rt::DataSummary> summary =
      rt::summarizeData({sources.begin(), sources.end()}, "", tokenizer, document, tokens);
  if (!summary.ok())
    return fail(summary.status());
  std::string text = rt::describe(*summary, json);
  llvm::outs() << text << (text.ends_with('\n') ? "" : "\n");
  return 0;
}

absl::StatusOr<std::vector<std::string>> textsOf(const std::vector<std::string> &sources) {
  absl::StatusOr<std::vector<std::string>> expanded = rt::expandSources(sources, "");
  if (!expanded.ok())
    return expanded.status();
  std::vector<std::string> texts;
  for (const std::string &source : *expanded) {
    constexpr std::string_view kBuiltin = "builtin:";
    if (source.starts_with(kBuiltin)) {
      absl::StatusOr<std::vector<rt::TextDocument>> documents =
          rt::readBuiltin(source.substr(kBuiltin.size()));
      if (!documents.ok())
        return documents.status();
      for (rt::TextDocument &document : *documents)
        texts.push_back(std::move(document.text));
      continue;
    }
    if (source.ends_with(".bin"))
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": a tokenizer is learned from text, and this is a file of token ids"));
    absl::StatusOr<std::string> text = rt::readFile(source);
    if (!text.ok())
      return text.status();
    texts.push_back(std::move(*text));
  }
  return texts;
}

int dataTokenizer(int argc, const char **argv) {
  cl::list<std::string> sources(cl::Positional, cl::OneOrMore,
                                cl::desc("SOURCE... (builtin:NAME, text files, patterns)"),
                                cl::cat(flagCategory()));
  cl::opt<int64_t> ids("ids", cl::desc("how many ids, markers and separator included (at least 257)"),
                       cl::init(0), cl::cat(flagCategory()));
  cl::opt<std::string> out("out", cl::desc("where the file of ranks goes"), cl::value_desc("FILE"),
                           cl::cat(flagCategory()));
  cl::list<std::string> markers("marker", cl::desc("a text with an id of its own, such as '<|answer|>'"),
                                cl::value_desc("TEXT"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv,
                  "learns a byte-pair tokenizer from text; a recipe names the file: tokenizer = \"FILE\"",
                  "  weft data tokenizer builtin:austen --ids 1024 --out austen.ranks\n"))
    return kUsage;
  for (const std::string &marker : markers)
    if (marker.empty())
      return misuse("data tokenizer", "--marker: expected a text");
  if (ids == 0 || out.empty())
    return misuse("data tokenizer", "--ids N and --out FILE are needed");
  absl::StatusOr<std::vector<std::string>> texts = textsOf({sources.begin(), sources.end()});
  absl::StatusOr<std::string> ranks =
      texts.ok() ? rt::trainBytePairs(*texts, ids, {markers.begin(), markers.end()}) : texts.status();
  if (!ranks.ok())
    return fail(ranks.status());
  if (absl::Status status = rt::writeFileAtomic(out, *ranks); !status.ok())
    return fail(status);
  llvm::outs() << out << ": " << grouped(ids) << " ids; in a recipe: tokenizer = \"" << out << "\"\n";
  return 0;
}

/// tokens and targets, I32 [rows, length].
absl::Status writeRows(const std::string &path, const rt::Mqar &task) {
  const rt::MqarOptions &options = task.options();
  rt::Tensor tokens(rt::ElementType::I32, {options.rows, options.length}), targets = tokens;
  for (int64_t row = 0; row < options.rows; ++row) {
    auto at = static_cast<size_t>(row * options.length), length = static_cast<size_t>(options.length);
    task.row(row, tokens.as<int32_t>().subspan(at, length), targets.as<int32_t>().subspan(at, length));
  }
  return rt::writeSafetensors(
      path, {{"tokens", tokens.type, tokens.shape}, {"targets", targets.type, targets.shape}},
      [&](const std::string &name) -> absl::StatusOr<rt::Tensor> {
        return name == "tokens" ? tokens : targets;
      });
}

int dataMqar(int argc, const char **argv) {
  cl::opt<std::string> options(cl::Positional,
                               cl::desc("[pairs=8,vocab=8192,rows=1000,passes=1,a=0.01,filler=on,seed=0]"),
                               cl::cat(flagCategory()));
  cl::opt<int64_t> length("length", cl::desc("positions of a row (default: 512)"), cl::init(512),
                          cl::cat(flagCategory()));
  cl::opt<bool> test("test", cl::desc("the rows of evaluations, not those of training"),
                     cl::cat(flagCategory()));
  cl::opt<std::string> out("out", cl::desc("safetensors with tokens and targets (-1: not asked)"),
                           cl::value_desc("FILE"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv,
                  "rows of associative recall; a recipe draws its own: data = \"builtin:mqar/pairs=8\"",
                  "  weft data mqar pairs=64,seed=1 --length 512 --out mqar.safetensors\n"))
    return kUsage;
  if (out.empty())
    return misuse("data mqar", "--out FILE is needed: where the rows go");
  rt::MqarOptions given;
  given.length = length;
  given.test = test;
  absl::StatusOr<std::optional<rt::MqarOptions>> read =
      rt::parseMqar(absl::StrCat("builtin:mqar/", std::string(options)), given);
  if (!read.ok())
    return fail(read.status());
  absl::StatusOr<rt::Mqar> task = rt::Mqar::make(**read);
  if (!task.ok())
    return fail(task.status());
  if (absl::Status status = writeRows(out, *task); !status.ok())
    return fail(status);
  llvm::outs() << out << ": " << grouped(task->options().rows) << " rows of " << grouped(length)
               << " positions, " << grouped(task->options().pairs) << " pairs each\n";
  return 0;
}

} // namespace

int weft::dataCommand(int argc, const char **argv) {
  const CommandEntry actions[] = {{"prepare", "turn text into shards of token ids", dataPrepare},
                                  {"show", "count documents and tokens, show the head of one", dataShow},
                                  {"tokenizer", "learn a byte-pair tokenizer", dataTokenizer},
                                  {"mqar", "rows of associative recall", dataMqar}};
  return runAction(actions, "data", argc, argv);
}
