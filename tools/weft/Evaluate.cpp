//===- Evaluate.cpp - weft eval, prefill, generate -------------------------===//

#include "tools/weft/Loaded.h"
#include "tools/weft/Output.h"
#include "tools/weft/Reports.h"

#include "runtime/core/Json.h"
#include "runtime/core/Safetensors.h"
#include "runtime/data/Rows.h"
#include "runtime/train/Accuracy.h"
#include "runtime/train/BoundProgram.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Generate.h"
#include "runtime/train/Prefill.h"

#include "llvm/Support/FormatVariadic.h"

#include "absl/strings/str_cat.h"

#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// A run or checkpoint brings its recipe; of a model file, its own.
Request requestOf(const ModelFlags &flags, const DeviceFlags &device) {
  Request request = flags.request(true);
  device.apply(request);
  return request;
}

struct HeldOut {
  rt::EvalData rows;
  std::shared_ptr<const rt::RegionLabels> regions; // null: the recipe has none
};

absl::StatusOr<HeldOut> heldOutData(const Program &program, const Request &request, const std::string &data,
                                    int64_t rows) {
  rt::Recipe recipe = runtimeRecipe(program);
  recipe.evalRows = 0; // every target once
  recipe.portion = 1;
  if (!data.empty()) {
    const bool task = data.starts_with("builtin:mqar"); // which has rows of its own for testing
    recipe.data = {data};
    recipe.heldOut = {task ? rt::HeldOut::Kind::Source : rt::HeldOut::Kind::None, 0, data};
  }
  lang::Bindings names = program.model.bindings();
  auto vocab = names.find("vocab");
  std::string folder = std::filesystem::path(request.path).parent_path().string();
  absl::StatusOr<rt::Dataset> dataset =
      rt::loadDataset(recipe, vocab == names.end() ? 0 : static_cast<int64_t>(vocab->second.number), folder);
  if (!dataset.ok())
    return dataset.status();
  if (!data.empty() && !dataset->heldOutTask)
    dataset->heldOut = dataset->train;
  absl::StatusOr<std::optional<rt::EvalData>> made = rt::heldOutRows(*dataset, recipe, rows);
  if (!made.ok())
    return made.status();
  if (!made->has_value())
    return absl::InvalidArgumentError("the recipe holds nothing out; name text with --data");
  absl::StatusOr<std::shared_ptr<const rt::RegionLabels>> regions = regionLabels(recipe, *dataset);
  if (!regions.ok())
    return regions.status();
  return HeldOut{**std::move(made), *std::move(regions)};
}

std::string regionTable(const rt::EvalResult &result) {
  Table table({"region", "targets", "share", "loss", "share of loss"});
  const auto targets = static_cast<double>(result.targets);
  for (const rt::RegionLoss &region : result.regions) {
    const auto count = static_cast<double>(region.targets);
    table.add({region.name, grouped(region.targets), llvm::formatv("{0:P1}", count / targets).str(),
               region.targets ? llvm::formatv("{0:F4}", region.lossSum / count).str() : "-",
               llvm::formatv("{0:P1}", region.lossSum / (result.loss * targets)).str()});
  }
  table.add({"-"});
  table.add({"all", grouped(result.targets), "100.0%", llvm::formatv("{0:F4}", result.loss).str(), "100.0%"});
  return table.text();
}

int printAccuracy(rt::Machine &machine, const rt::EvalData &data, bool json) {
  absl::StatusOr<rt::AccuracyResult> result = rt::accuracy(machine, data);
  if (!result.ok())
    return fail(result.status());
  if (json)
    printJson({{"accuracy", result->accuracy()},
               {"right", result->right},
               {"targets", result->targets},
               {"loss", result->loss}});
  else
    llvm::outs() << llvm::formatv("accuracy {0:P2}: {1:N} of {2:N} targets right, loss {3:F6} nats\n",
                                  result->accuracy(), result->right, result->targets, result->loss);
  return 0;
}

/// The least power of two that holds `count`.
int64_t capacityFor(size_t count) { return static_cast<int64_t>(std::bit_ceil(std::max<size_t>(count, 16))); }

/// Positions that the model itself allows for `tokens`: the size of learned positions
/// and of patterns, or what was asked for.
int64_t contextOf(const Program &program, int64_t wanted, size_t tokens) {
  if (!program.freeze.frozen.empty())
    wanted = std::max(std::min(wanted, program.freeze.positions), static_cast<int64_t>(tokens));
  lang::Bindings names = program.model.bindings();
  auto found = names.find("context");
  return found == names.end() ? wanted : std::min(wanted, static_cast<int64_t>(found->second.number));
}

} // namespace

int weft::evalCommand(int argc, const char **argv) {
  ModelFlags flags;
  flags.path.setDescription("RUN|MODEL.weft");
  DeviceFlags device;
  cl::opt<std::string> data("data",
                            cl::desc("text, shards or builtin:NAME instead of the recipe's held-out text"),
                            cl::cat(flagCategory()));
  cl::opt<bool> regions("regions",
                        cl::desc("also the loss of each region of the recipe (or of --set regions=...)"),
                        cl::cat(flagCategory()));
  cl::opt<bool> accuracy("accuracy", cl::desc("how often the likeliest token is right, instead of the loss"),
                         cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one JSON object"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(
          argc, argv, "loss over held-out text; a MODEL is evaluated at initialisation",
          "  weft eval runs/first\n  weft eval models/tiny.weft --device reference --json\n  weft eval "
          "runs/first --regions --set 'regions=question \"<q>\", answer \"<a>\"'\n  weft eval runs/mqar "
          "--data builtin:mqar/pairs=32 --accuracy\n"))
    return kUsage;
  Request request = requestOf(flags, device);
  absl::StatusOr<Loaded> loaded = loadModel(request, [&](const Program &, PipelineOptions &options) {
    options.programs = {accuracy ? "prefill" : "eval"};
  });
  if (!loaded.ok())
    return fail(loaded.status());
  int64_t rows = rt::findProgram(loaded->machine->executable(), accuracy ? "prefill" : "eval")
                     ->inputs.front()
                     .shape.front();
  absl::StatusOr<HeldOut> held = heldOutData(*loaded->program, request, data, rows);
  if (!held.ok())
    return fail(held.status());
  if (accuracy)
    return printAccuracy(*loaded->machine, held->rows, json);
  if (regions && !held->regions)
    return fail(absl::InvalidArgumentError(
        "--regions: the recipe names none; say --set 'regions=NAME \"marker\", ...'"));
  absl::StatusOr<rt::EvalResult> result = rt::evaluate(
      *loaded->machine, held->rows, regions ? held->regions.get() : nullptr, loaded->windows.get());
  if (!result.ok())
    return fail(result.status());
  if (json)
    llvm::outs() << rt::dumpJson(rt::toJson(*result)) << "\n";
  else
    llvm::outs() << llvm::formatv(
        "loss {0:F6} nats, perplexity {1:F3}, {2:N} targets, {3:N} tokens, {4:F2} s{5}\n", result->loss,
        result->perplexity, result->targets, result->tokens, result->seconds,
        result->acr ? llvm::formatv(", ACR {0:F4}", *result->acr).str() : std::string());
  if (!json && regions)
    llvm::outs() << regionTable(*result);
  return 0;
}

/// --text as tokens, or --tokens as numbers in a file.
static absl::StatusOr<std::vector<int32_t>> promptTokens(const Program &program, const std::string &text,
                                                         const std::string &file) {
  if (file.empty()) {
    absl::StatusOr<std::shared_ptr<const rt::Tokenizer>> tokenizer = tokenizerOf(program);
    return tokenizer.ok() ? rt::encodePrompt(**tokenizer, text) : tokenizer.status();
  }
  std::ifstream stream(file);
  if (!stream)
    return absl::NotFoundError(absl::StrCat(file, ": can't be read; expected token ids as numbers"));
  std::vector<int32_t> tokens;
  lang::Bindings names = program.model.bindings();
  auto vocab = names.find("vocab");
  const int64_t bound =
      vocab == names.end() ? std::numeric_limits<int32_t>::max() : static_cast<int64_t>(vocab->second.number);
  for (int64_t id; stream >> id;) {
    if (id < 0 || id >= bound)
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": number ", tokens.size() + 1, ": expected an id from 0 to ", bound - 1, ", found ", id));
    tokens.push_back(static_cast<int32_t>(id));
  }
  if (!stream.eof())
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": expected whole numbers, found something else after ", tokens.size(), " of them"));
  return tokens;
}

/// Pairs of position and token with the largest logits last, for people.
static void printBest(const rt::Tensor &logits, size_t positions) {
  int64_t vocab = logits.shape.back(), rows = logits.elements() / vocab;
  if (logits.type != rt::ElementType::F32 || rows == 0)
    return;
  auto last = logits.as<float>().subspan(static_cast<size_t>((rows - 1) * vocab));
  std::vector<int32_t> order(static_cast<size_t>(vocab));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int32_t>(i);
  size_t shown = std::min<size_t>(5, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
      [&](int32_t a, int32_t b) { return last[static_cast<size_t>(a)] > last[static_cast<size_t>(b)]; });
  llvm::outs() << "after the last of " << positions << " positions:\n";
  for (size_t i = 0; i < shown; ++i)
    llvm::outs() << llvm::formatv("  token {0,6}  logit {1:F4}\n", order[i],
                                  last[static_cast<size_t>(order[i])]);
}

int weft::prefillCommand(int argc, const char **argv) {
  ModelFlags flags;
  flags.path.setDescription("RUN|MODEL.weft");
  DeviceFlags device;
  cl::opt<std::string> text("text", cl::desc("the text"), cl::cat(flagCategory()));
  cl::opt<std::string> tokenFile("tokens", cl::desc("a file of token ids, as numbers"),
                                 cl::value_desc("FILE"), cl::cat(flagCategory()));
  cl::opt<std::string> out("out", cl::desc("write the outputs as safetensors"), cl::value_desc("FILE"),
                           cl::cat(flagCategory()));
  cl::opt<bool> last("last", cl::desc("only what follows the last token: less work, less memory"),
                     cl::cat(flagCategory()));
  cl::list<std::string> outputs("output", cl::desc("only this output (default: all)"), cl::value_desc("NAME"),
                                cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "outputs of a model for a text",
                  "  weft prefill runs/first --text \"It is\" --out logits.safetensors\n"
                  "  weft prefill runs/first --text \"It is\" --last\n"))
    return kUsage;
  Request request = requestOf(flags, device);
  request.needsRecipe = tokenFile.empty(); // ids need no tokenizer
  request.recipeIfAny = true;
  std::vector<int32_t> tokens;
  absl::Status problem;
  absl::StatusOr<Loaded> loaded = loadModel(request, [&](const Program &program, PipelineOptions &options) {
    absl::StatusOr<std::vector<int32_t>> encoded = promptTokens(program, text, tokenFile);
    problem = encoded.status();
    if (encoded.ok())
      tokens = *encoded;
    options.programs = {"prefill"};
    options.batch = 1;
    options.lastPosition = last; // the text's own length then: padding would stand behind its end
    const auto own = static_cast<int64_t>(std::max<size_t>(tokens.size(), 1)); // no tokens: told below
    options.positions = contextOf(program, last ? own : capacityFor(tokens.size()), tokens.size());
  });
  if (!loaded.ok() || !problem.ok())
    return fail(problem.ok() ? loaded.status() : problem);
  absl::StatusOr<std::map<std::string, rt::Tensor>> results = rt::prefill(*loaded->machine, tokens);
  if (!results.ok())
    return fail(results.status());
  for (const std::string &name : outputs)
    if (!results->contains(name)) {
      std::vector<std::string> names;
      for (const auto &[known, tensor] : *results)
        names.push_back(known);
      return fail(absl::NotFoundError(absl::StrCat(
          "--output ", name, ": the model has no such output; nearest is ", lang::nearest(name, names))));
    }
  std::vector<rt::TensorToWrite> tensors;
  for (const auto &[name, tensor] : *results)
    if (outputs.empty() || std::find(outputs.begin(), outputs.end(), name) != outputs.end())
      tensors.push_back({name, tensor.type, tensor.shape});
  auto value = [&](const std::string &name) -> absl::StatusOr<rt::Tensor> { return results->at(name); };
  if (!out.empty())
    if (absl::Status status = rt::writeSafetensors(out, tensors, value); !status.ok())
      return fail(status);
  if (auto logits = results->find("logits"); out.empty() && logits != results->end())
    printBest(logits->second, tokens.size());
  return 0;
}

/// `logits` [tokens fed, vocabulary]: each token but the last drawn was fed.
static absl::Status writeLogits(const std::string &path, const rt::GenerateResult &result, size_t prompt) {
  auto rows = static_cast<int64_t>(prompt + std::max<size_t>(result.tokens.size(), 1) - 1);
  rt::Tensor tensor(rt::ElementType::F32, {rows, static_cast<int64_t>(result.logits.size()) / rows});
  std::copy(result.logits.begin(), result.logits.end(), tensor.as<float>().begin());
  auto value = [&](const std::string &) -> absl::StatusOr<rt::Tensor> { return tensor; };
  return rt::writeSafetensors(path, {{"logits", tensor.type, tensor.shape}}, value);
}

int weft::generateCommand(int argc, const char **argv) {
  ModelFlags flags;
  flags.path.setDescription("RUN|MODEL.weft");
  DeviceFlags device;
  cl::opt<std::string> prompt("prompt", cl::desc("the text to go on from"), cl::cat(flagCategory()));
  cl::opt<double> temperature("temperature", cl::desc("0: always the most likely token (default: 1)"),
                              cl::init(1.0), cl::cat(flagCategory()));
  cl::opt<int64_t> topK("top-k", cl::desc("draw among this many (default: 0, all)"), cl::init(0),
                        cl::cat(flagCategory()));
  cl::opt<double> topP("top-p", cl::desc("draw among the fewest that reach this probability (default: 1)"),
                       cl::init(1.0), cl::cat(flagCategory()));
  cl::opt<int64_t> length("length", cl::desc("most new tokens (default: 200)"), cl::init(200),
                          cl::cat(flagCategory()));
  cl::opt<uint64_t> seed("seed", cl::desc("equal seeds draw equal texts (default: 0)"), cl::init(0),
                         cl::cat(flagCategory()));
  cl::opt<std::string> logits("logits", cl::desc("write the logits of every token fed, as safetensors"),
                              cl::value_desc("FILE"), cl::cat(flagCategory()));
  addCompilerFlags();
  if (!parseFlags(argc, argv, "goes on writing from a prompt",
                  "  weft generate runs/first --prompt \"It is a truth\" --temperature 0.8\n"))
    return kUsage;
  Request request = requestOf(flags, device);
  std::vector<int32_t> tokens;
  std::shared_ptr<const rt::Tokenizer> tokenizer;
  absl::Status problem;
  absl::StatusOr<Loaded> loaded = loadModel(request, [&](const Program &program, PipelineOptions &options) {
    absl::StatusOr<std::shared_ptr<const rt::Tokenizer>> made = tokenizerOf(program);
    absl::StatusOr<std::vector<int32_t>> encoded =
        made.ok() ? rt::encodePrompt(**made, prompt) : made.status();
    problem = encoded.status();
    if (encoded.ok()) {
      tokenizer = *made;
      tokens = *encoded;
    }
    options.programs = {"decode"};
    options.batch = 1;
    const int64_t most =
        std::max<int64_t>(static_cast<int64_t>(tokens.size()) + length, 1); // no tokens: told below
    options.positions = contextOf(program, most, tokens.size());
    options.cacheLength = options.positions;
  });
  if (!loaded.ok() || !problem.ok())
    return fail(problem.ok() ? loaded.status() : problem);
  rt::GenerateOptions options;
  options.sampling = {temperature, topK, topP};
  options.maxTokens = length;
  options.seed = seed;
  options.vocabulary = tokenizer->vocabulary();
  options.keepLogits = !logits.empty();
  if (std::optional<int32_t> separator = tokenizer->separator())
    options.stopToken = *separator;
  llvm::outs() << prompt;
  absl::StatusOr<rt::GenerateResult> result =
      rt::generate(*loaded->machine, tokens, options, [&](int32_t id) {
        llvm::outs() << tokenizer->decode(std::vector<int32_t>{id});
        llvm::outs().flush();
        return true;
      });
  llvm::outs() << "\n";
  if (!result.ok())
    return fail(result.status());
  if (!logits.empty())
    if (absl::Status status = writeLogits(logits, *result, tokens.size()); !status.ok())
      return fail(status);
  if (result->end == rt::GenerateResult::End::CacheFull)
    llvm::errs() << "weft: " << rt::describe(result->end) << "\n";
  return 0;
}
