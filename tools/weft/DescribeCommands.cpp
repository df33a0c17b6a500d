//===- DescribeCommands.cpp - weft completions, weft man -------------------===//

#include "tools/weft/Describe.h"
#include "tools/weft/Output.h"

#include "llvm/Support/raw_ostream.h"

using namespace weft;
namespace cl = llvm::cl;

int weft::completionsCommand(int argc, const char **argv) {
  cl::opt<std::string> shell(cl::Positional, cl::Required, cl::desc("SHELL"), cl::cat(flagCategory()));
  if (!parseFlags(
          argc, argv, "completions of commands and flags for bash, zsh or fish",
          "  weft completions bash > ~/.local/share/bash-completion/completions/weft\n  weft completions "
          "fish > ~/.config/fish/completions/weft.fish\n"))
    return kUsage;
  const std::string name = shell;
  shell.removeArgument(); // the commands to describe have arguments of their own
  if (name == "bash")
    llvm::outs() << bashCompletion(describeCommands());
  else if (name == "zsh")
    llvm::outs() << zshCompletion(describeCommands());
  else if (name == "fish")
    llvm::outs() << fishCompletion(describeCommands());
  else
    return misuse("completions", "expected bash, zsh or fish, found '" + name + "'" +
                                     didYouMean(name, {"bash", "zsh", "fish"}));
  return 0;
}

int weft::manCommand(int argc, const char **argv) {
  if (!parseFlags(argc, argv, "the manual page of all commands",
                  "  weft man > ~/.local/share/man/man1/weft.1\n  weft man | man -l -\n"))
    return kUsage;
  llvm::outs() << manualPage(describeCommands(), versionText());
  return 0;
}
