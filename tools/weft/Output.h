//===- Output.h - How commands print ----------------------------*- C++ -*-===//
#pragma once

#include "tools/weft/Command.h"

#include "runtime/core/Json.h"

#include "llvm/ADT/ArrayRef.h"

#include <set>
#include <string>
#include <vector>

namespace weft {

/// 24736 as 24,736.
std::string grouped(int64_t number);

/// Three digits and the unit: 12.3 M, 4.56 GFLOP, 128 B.
std::string compact(double number, const char *unit = "");

/// Rows of cells in columns; `left` says which stand to the left, the others
/// stand to the right. A row with the single cell "-" is a rule.
class Table {
public:
  explicit Table(std::vector<std::string> header, std::set<size_t> left = {0}) : left(std::move(left)) {
    rows.push_back(std::move(header));
  }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  std::string text() const;

private:
  std::set<size_t> left;
  std::vector<std::vector<std::string>> rows;
};

/// One JSON object and a line end, on standard output.
void printJson(const rt::OrderedJson &value);

/// `; did you mean 'x'?`, or nothing.
std::string didYouMean(std::string_view name, const std::vector<std::string> &candidates);

/// Whether text on standard error may have colours.
bool colourful();

/// `weft data prepare`: picks the action that argv[1] names and runs it.
int runAction(llvm::ArrayRef<CommandEntry> actions, const char *command, int argc, const char **argv);

/// Prints `weft COMMAND: MESSAGE` and returns kUsage.
int misuse(const char *command, const std::string &message);

} // namespace weft
