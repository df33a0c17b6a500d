//===- Command.cpp - weft inspect -------------------------------------------===//

#include "tools/weft/MemoryPolicies.h"
#include "tools/weft/inspect/Document.h"
#include "tools/weft/inspect/Inspect.h"

#include "tools/weft/Command.h"
#include "tools/weft/Freeze.h"
#include "tools/weft/Loaded.h"
#include "tools/weft/Output.h"

#include "runtime/core/File.h"

#include "llvm/Support/FormatVariadic.h"

#include "absl/strings/str_cat.h"

#include <filesystem>

using namespace weft;
namespace cl = llvm::cl;

namespace {

struct InspectFlags {
  ModelFlags model;
  cl::opt<std::string> target{"target", cl::desc("cpu, sm_90a or sm_80 (no GPU is needed)"), cl::init("cpu"),
                              cl::cat(flagCategory())};
  cl::opt<int64_t> batch{"batch", cl::desc("rows of a program (default: the recipe's micro-batch, or 1)"),
                         cl::init(0), cl::cat(flagCategory())};
  cl::opt<int64_t> positions{"positions", cl::desc("positions of a row (default: the recipe's, or 16)"),
                             cl::init(0), cl::cat(flagCategory())};
  cl::list<std::string> programs{"program",
                                 cl::desc("micro, update, eval, prefill, decode (default: micro, update, "
                                          "eval with a recipe, else eval)"),
                                 cl::CommaSeparated, cl::cat(flagCategory())};
  cl::opt<bool> assemble{"assemble",
                         cl::desc("of a GPU: registers and shared memory, by ptxas (default: yes)"),
                         cl::init(true), cl::cat(flagCategory())};
  cl::opt<std::string> out{"out", cl::desc("the page (default: MODEL.html, or RUN/inspect.html)"),
                           cl::value_desc("FILE"), cl::cat(flagCategory())};
  cl::opt<bool> json{"json", cl::desc("print what the page holds as one JSON object, and write no page"),
                     cl::cat(flagCategory())};
};

/// A page before it is written.
struct Made {
  rt::OrderedJson document;
  std::string title, file;
};

bool isRun(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/log.jsonl", ignored) ||
         (std::filesystem::exists(path + "/run.weft", ignored) &&
          !std::filesystem::exists(path + "/run.json", ignored));
}

void say(const std::string &line) { llvm::errs() << "weft inspect: " << line << "\n"; }

absl::StatusOr<Made> runPage(const std::string &path) {
  absl::StatusOr<rt::OrderedJson> document = inspect::runDocument(path);
  if (!document.ok())
    return document.status();
  const std::filesystem::path folder = std::filesystem::path(path + "/").lexically_normal().parent_path();
  return Made{*std::move(document), absl::StrCat("run ", folder.filename().string()), path + "/inspect.html"};
}

absl::StatusOr<Made> modelPage(const InspectFlags &flags) {
  const bool text = isModelPath(flags.model.path);
  Request request = flags.model.request(!text || !flags.model.recipe.empty());
  request.recipeIfAny = true;
  absl::StatusOr<LoadedText> loaded = loadText(request);
  if (!text && absl::IsNotFound(loaded.status()))
    return absl::NotFoundError(absl::StrCat("'", std::string(flags.model.path),
                                            "': expected FILE.weft, the folder of a run, or a checkpoint"));
  if (!loaded.ok())
    return loaded.status();
  const Program &program = *loaded->program;
  if (absl::Status status = refuseUndecided(program); !status.ok())
    return status;
  inspect::ModelOptions options;
  options.checkpoint = loaded->checkpoint;
  options.assemble = flags.assemble;
  PipelineOptions &pipeline = options.pipeline;
  if (program.recipe) {
    pipeline = shapesOf(*program.recipe);
    pipeline.programs = {"micro", "update", "eval"};
  }
  pipeline.memory = policyOf(program);
  if (flags.batch > 0)
    pipeline.batch = flags.batch;
  if (flags.positions > 0)
    pipeline.positions = flags.positions;
  if (!flags.programs.empty())
    pipeline.programs.assign(flags.programs.begin(), flags.programs.end());
  if (flags.target != "cpu")
    pipeline.chip = flags.target;
  absl::StatusOr<rt::OrderedJson> document = inspect::modelDocument(program, options, say);
  if (!document.ok())
    return document.status();
  return Made{*std::move(document), program.model.name, program.model.name + ".html"};
}

} // namespace

int weft::inspectCommand(int argc, const char **argv) {
  InspectFlags flags;
  flags.model.path.setDescription("RUN|MODEL.weft");
  addCompilerFlags();
  if (!parseFlags(
          argc, argv,
          "writes one HTML page about a model (what each pass did, fusions, kernels, memory, heads), or "
          "about a run (curves, windows over time, frozen heads)",
          "  weft inspect models/gpt2.weft\n  weft inspect models/gpt2.weft --plan "
          "models/plans.weft:listed --target sm_90a --out gpt2.html\n  weft inspect runs/first\n"))
    return kUsage;
  if (flags.target != "cpu" && flags.target != "sm_90a" && flags.target != "sm_80")
    return misuse("inspect",
                  absl::StrCat("--target ", std::string(flags.target), ": expected cpu, sm_90a or sm_80"));
  absl::StatusOr<Made> made = isRun(flags.model.path) ? runPage(flags.model.path) : modelPage(flags);
  if (!made.ok())
    return fail(made.status());
  if (flags.json) {
    printJson(made->document);
    return 0;
  }
  const std::string file = flags.out.empty() ? made->file : std::string(flags.out);
  const std::string page = inspect::pageOf(made->document, made->title);
  if (absl::Status status = rt::writeFileAtomic(file, page); !status.ok())
    return fail(status);
  llvm::outs() << llvm::formatv("wrote {0}: {1}; a browser opens it\n", file,
                                compact(static_cast<double>(page.size()), "B"));
  return 0;
}
