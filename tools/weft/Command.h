//===- Command.h - Flags that commands share ---------------------*- C++ -*-===//
//
// A command makes its flags when it runs, so that each has its own `--help`, on
// top of MLIR's where it compiles.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/weft/Session.h"

#include "llvm/Support/CommandLine.h"

#include "absl/status/status.h"

namespace weft {

/// Exit codes: 0 done, 1 explained error, 2 wrong usage, 130 interrupted and saved.
constexpr int kExplained = 1, kUsage = 2;

using Command = int (*)(int argc, const char **argv);
struct CommandEntry {
  const char *name;
  const char *summary;
  Command run;
};
/// All commands in the order of the help.
extern const CommandEntry kCommands[];
extern const size_t kCommandCount;

llvm::cl::OptionCategory &flagCategory();

/// Parses; false after a usage error was printed. `examples` follow the help.
bool parseFlags(int argc, const char **argv, const char *overview, const char *examples);

/// Registers MLIR's printing, timing and reproducer flags for this command.
void addCompilerFlags();

/// Prints `weft: MESSAGE` and returns kExplained.
int fail(const absl::Status &status);

/// The flags of a command that works on a model.
struct ModelFlags {
  llvm::cl::opt<std::string> path{llvm::cl::Positional, llvm::cl::Required, llvm::cl::desc("MODEL.weft"),
                                  llvm::cl::cat(flagCategory())};
  llvm::cl::list<std::string> sets{"set", llvm::cl::desc("set a size, a choice, or a key of the recipe"),
                                   llvm::cl::value_desc("name=value"), llvm::cl::cat(flagCategory())};
  llvm::cl::list<std::string> plans{"plan", llvm::cl::desc("apply a plan"),
                                    llvm::cl::value_desc("[FILE:]NAME"), llvm::cl::cat(flagCategory())};
  llvm::cl::opt<std::string> recipe{"recipe", llvm::cl::desc("which `train` block (default: the only one)"),
                                    llvm::cl::value_desc("NAME"), llvm::cl::cat(flagCategory())};

  Request request(bool needsRecipe) const;
};

struct DeviceFlags {
  llvm::cl::opt<std::string> device{
      "device", llvm::cl::desc("auto, cpu, cuda[:i] or reference (default: $WEFT_DEVICE, or auto)"),
      llvm::cl::cat(flagCategory())};
  llvm::cl::opt<int> threads{"workers", llvm::cl::desc("workers (default: $WEFT_THREADS, or all cores)"),
                             llvm::cl::init(0), llvm::cl::cat(flagCategory())};

  void apply(Request &request) const;
};

/// Of commands that make programs with gradients.
struct MemoryFlag {
  llvm::cl::opt<std::string> memory{
      "memory",
      llvm::cl::desc(
          "what gradients find saved: fast, lean, tight, or auto (default: the recipe's, or auto)"),
      llvm::cl::value_desc("POLICY"), llvm::cl::cat(flagCategory())};

  void apply(Request &request) const { request.memory = memory; }
};

int checkCommand(int, const char **);
int fmtCommand(int, const char **);
int paramsCommand(int, const char **);
int sizeCommand(int, const char **);
int flopsCommand(int, const char **);
int explainCommand(int, const char **);
int planCommand(int, const char **);
int planApply(int, const char **);
int freezeCommand(int, const char **);
int dataCommand(int, const char **);
int kernelsCommand(int, const char **);
int devicesCommand(int, const char **);
int cacheCommand(int, const char **);
int whyCommand(int, const char **);
int windowsCommand(int, const char **);
int verifyCommand(int, const char **);
int trainCommand(int, const char **);
int evalCommand(int, const char **);
int prefillCommand(int, const char **);
int generateCommand(int, const char **);
int compileCommand(int, const char **);
int runCommand(int, const char **);
int benchCommand(int, const char **);
int stepCommand(int, const char **);
int measureCommand(int, const char **);
int sweepCommand(int, const char **);
int importCommand(int, const char **);
int exportCommand(int, const char **);
int diffCommand(int, const char **);
int logCommand(int, const char **);
int lspCommand(int, const char **);
int completionsCommand(int, const char **);
int manCommand(int, const char **);

} // namespace weft
