//===- Describe.cpp - Commands and their flags as data ---------------------===//

#include "tools/weft/Describe.h"

#include "tools/weft/Command.h"

#include <algorithm>

using namespace weft;
namespace cl = llvm::cl;

namespace {

/// Where descriptions go while they are made; null otherwise.
std::vector<CommandDescription> *collected = nullptr;

FlagDescription flagOf(const cl::Option &option, bool positional) {
  FlagDescription flag;
  if (!positional)
    flag.name = option.ArgStr.str();
  flag.value = option.ValueStr.str();
  flag.help = option.HelpStr.str();
  if (positional)
    std::swap(flag.value, flag.help); // an argument's description is its name
  else if (flag.value.empty() && option.getValueExpectedFlag() == cl::ValueRequired)
    flag.value = "VALUE";
  return flag;
}

void describe(const CommandEntry &entry, const std::string &name) {
  CommandDescription description;
  description.name = name;
  description.summary = entry.summary;
  collected->push_back(std::move(description));
  const std::string program = "weft " + name;
  const char *arguments[] = {program.c_str(), nullptr};
  entry.run(1, arguments);
}

} // namespace

bool weft::describing() { return collected != nullptr; }

void weft::describeFlags(const char *program, const char *overview, const char *examples) {
  const std::string name = std::string(program).substr(5);
  auto found = std::ranges::find(*collected, name, &CommandDescription::name);
  if (found == collected->end())
    return;
  found->overview = overview;
  found->examples = examples;
  cl::SubCommand &top = cl::SubCommand::getTopLevel();
  std::vector<cl::Option *> own(top.PositionalOpts.begin(), top.PositionalOpts.end());
  for (cl::Option *option : own)
    found->flags.push_back(flagOf(*option, true));
  std::vector<cl::Option *> named;
  for (const auto &entry : top.OptionsMap) {
    cl::Option *option = entry.second;
    if (llvm::is_contained(option->Categories, &flagCategory()) && !llvm::is_contained(named, option))
      named.push_back(option);
  }
  std::ranges::sort(named, [](cl::Option *a, cl::Option *b) { return a->ArgStr < b->ArgStr; });
  for (cl::Option *option : named)
    found->flags.push_back(flagOf(*option, false));
  // They end with the command's own frame: the next one may use the same names.
  own.insert(own.end(), named.begin(), named.end());
  for (cl::Option *option : own)
    option->removeArgument();
}

void weft::describeActions(llvm::ArrayRef<CommandEntry> actions, const std::string &command) {
  if (auto group = std::ranges::find(*collected, command, &CommandDescription::name);
      group != collected->end())
    group->group = true;
  for (const CommandEntry &action : actions)
    describe(action, command + " " + action.name);
}

std::vector<CommandDescription> weft::describeCommands() {
  std::vector<CommandDescription> commands;
  collected = &commands;
  for (size_t i = 0; i < kCommandCount; ++i)
    describe(kCommands[i], kCommands[i].name);
  collected = nullptr;
  return commands;
}
