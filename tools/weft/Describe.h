//===- Describe.h - Commands and their flags as data -------------*- C++ -*-===//
//
// Shell completions and the manual page are made from what commands declare, so
// that they can't say anything else. A command that is asked for its description
// stops where it would parse its flags.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace weft {

struct CommandEntry;

struct FlagDescription {
  std::string name;  // empty: an argument by position
  std::string value; // N, FILE, ...; empty: the flag takes none
  std::string help;
};

struct CommandDescription {
  std::string name;                   // train, or `plan show`
  std::string summary;                // of the list of commands
  std::string overview;               // of its own help
  std::string examples;               // lines that start with two spaces
  std::vector<FlagDescription> flags; // arguments by position first, then by name
  bool group = false;                 // has actions of its own and no flags
};

/// 0.3.0
std::string versionText();

/// Every command, each group before its actions.
std::vector<CommandDescription> describeCommands();

/// Inside parseFlags: whether a description is being made, and what it takes.
bool describing();
void describeFlags(const char *program, const char *overview, const char *examples);
/// Inside runAction: describes the actions of a group.
void describeActions(llvm::ArrayRef<CommandEntry> actions, const std::string &command);

/// The manual page (roff, man macros); completions of one shell.
std::string manualPage(const std::vector<CommandDescription> &commands, const std::string &version);
std::string bashCompletion(const std::vector<CommandDescription> &commands);
std::string zshCompletion(const std::vector<CommandDescription> &commands);
std::string fishCompletion(const std::vector<CommandDescription> &commands);

} // namespace weft
