//===- main.cpp - weft COMMAND ... ----------------------------------------===//

#include "tools/weft-opt/OptMain.h"
#include "tools/weft/Command.h"
#include "tools/weft/Describe.h"
#include "tools/weft/inspect/Inspect.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <pthread.h>

using namespace weft;
namespace cl = llvm::cl;

const CommandEntry weft::kCommands[] = {
    {"train", "train a model as its recipe says, or go on with a run", trainCommand},
    {"eval", "loss over held-out text, every target counted once", evalCommand},
    {"prefill", "outputs of a model for a text", prefillCommand},
    {"generate", "go on writing from a prompt", generateCommand},
    {"compile", "show the IR after any stage, or save an executable", compileCommand},
    {"run", "run a saved executable", runCommand},
    {"bench", "time whole training steps", benchCommand},
    {"import", "read another program's weights into a run", importCommand},
    {"export", "write a run's weights as another program's files", exportCommand},
    {"step", "training steps on given tokens, to compare with another program", stepCommand},
    {"verify", "interpret the IR before and after each pass", verifyCommand},
    {"check", "check files and report every error", checkCommand},
    {"fmt", "lay files out in the one form", fmtCommand},
    {"params", "count parameters by layer, kind or tensor", paramsCommand},
    {"size", "the width for a depth and a number of parameters", sizeCommand},
    {"flops", "count floating-point operations of a step", flopsCommand},
    {"explain", "the page of an error code", explainCommand},
    {"plan", "show what a plan does to each head, or apply one to a run", planCommand},
    {"freeze", "give heads of a run fixed patterns, as a new run", freezeCommand},
    {"why", "what the compiler did with a layer, and why", whyCommand},
    {"measure", "ranks, gates, loss curves and recall of runs", measureCommand},
    {"sweep", "train cells of one experiment: rates, sizes, seeds", sweepCommand},
    {"windows", "a map of windows: layers by heads", windowsCommand},
    {"inspect", "one HTML page about a model or a run", inspectCommand},
    {"data", "prepare and look at text", dataCommand},
    {"kernels", "GPU kernels of a model: cost, correctness, speed", kernelsCommand},
    {"devices", "devices that can run a model", devicesCommand},
    {"cache", "compiled kernels on disk", cacheCommand},
    {"diff", "what two runs were told, how far apart they are", diffCommand},
    {"log", "a run's log as CSV or for TensorBoard", logCommand},
    {"lsp", "a language server for editors", lspCommand},
    {"completions", "completions for bash, zsh or fish", completionsCommand},
    {"man", "the manual page", manCommand},
};
const size_t weft::kCommandCount = std::size(kCommands);

static void printHelp(llvm::raw_ostream &out) {
  out << "weft: train transformers whose heads and layers are not all alike\n\nusage: weft COMMAND ... (weft "
         "COMMAND "
         "--help explains one)\n\n";
  for (const CommandEntry &entry : kCommands)
    out << llvm::formatv("  {0,-11} {1}\n", entry.name, entry.summary);
  out << "\nweft opt, or weft called by the name weft-opt, runs passes on textual IR; weft --version\n";
  out << "\nexamples:\n  weft train models/tiny.weft --out runs/first\n  weft generate runs/first --prompt "
         "\"It is a "
         "truth\"\n  weft compile models/tiny.weft --emit fused\n";
}

std::string weft::versionText() { return WEFT_VERSION; }

void weft::addCompilerFlags() {
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
}

int weft::fail(const absl::Status &status) {
  std::string_view message(status.message().data(), status.message().size());
  // Diagnostics of a text already say where; the rest says who speaks.
  bool rendered = message.find("error[") != std::string_view::npos;
  llvm::errs() << (rendered ? "" : "weft: ") << message << (message.ends_with('\n') ? "" : "\n");
  return kExplained;
}

Request ModelFlags::request(bool needsRecipe) const {
  Request request;
  setPath(request, path);
  request.sets.assign(sets.begin(), sets.end());
  request.plans.assign(plans.begin(), plans.end());
  request.recipe = recipe;
  request.needsRecipe = needsRecipe;
  return request;
}

void DeviceFlags::apply(Request &request) const {
  const char *asked = std::getenv("WEFT_DEVICE");
  request.device = !device.empty() ? std::string(device) : asked ? asked : "auto";
  const char *workers = std::getenv("WEFT_THREADS");
  request.threads = threads > 0 ? int(threads) : workers ? std::atoi(workers) : 0;
}

/// `weft opt ...` and `weft-opt ...` are the same program.
static int runOpt(int argc, const char **argv) { return optMain(argc, const_cast<char **>(argv)); }

/// Faults are statuses; what a library throws all the same ends in a sentence, not in a signal.
static int runExplained(const CommandEntry &entry, int argc, const char **argv) {
  try {
    return entry.run(argc, argv);
  } catch (const std::bad_alloc &) {
    return fail(
        absl::ResourceExhaustedError("the machine's memory does not suffice for this command; ask for "
                                     "fewer rows, positions or a smaller model"));
  } catch (const std::exception &error) {
    return fail(
        absl::InternalError(absl::StrCat("a fault of Weft itself, please report it: ", error.what())));
  }
}

static int dispatch(int argc, const char **argv) {
  if (argc > 0 && llvm::sys::path::filename(argv[0]) == "weft-opt")
    return runOpt(argc, argv);
  std::string_view name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h" || name == "help") {
    printHelp(llvm::outs());
    return argc > 1 ? 0 : kUsage;
  }
  if (name == "--version") {
    llvm::outs() << "weft " << versionText() << "\n";
    return 0;
  }
  if (name == "opt") {
    argv[1] = "weft opt";
    return runOpt(argc - 1, argv + 1);
  }
  for (const CommandEntry &entry : kCommands)
    if (name == entry.name) {
      std::string program = "weft " + std::string(name);
      argv[1] = program.c_str();
      return runExplained(entry, argc - 1, argv + 1);
    }
  std::vector<std::string> names;
  for (const CommandEntry &entry : kCommands)
    names.emplace_back(entry.name);
  std::string close = lang::nearest(name, names);
  llvm::errs() << "weft: no command '" << name << "'"
               << (close.empty() ? "" : "; did you mean '" + close + "'?") << " (weft --help lists them)\n";
  return kUsage;
}

namespace {
struct Start {
  int argc;
  const char **argv;
  int status = 0;
};
} // namespace

/// MLIR's parser and printer recurse: the whole program runs on a 64 MB stack.
int main(int argc, char **argv) {
  Start start{argc, const_cast<const char **>(argv), 0};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t(64) << 20);
  pthread_t thread;
  auto body = [](void *argument) -> void * {
    auto *start = static_cast<Start *>(argument);
    start->status = dispatch(start->argc, start->argv);
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, body, &start) != 0)
    body(&start);
  else
    pthread_join(thread, nullptr);
  return start.status;
}
