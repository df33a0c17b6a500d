//===- Output.cpp - How commands print ------------------------------------===//

#include "tools/weft/Output.h"

#include "tools/weft/Describe.h"

#include "frontend/Diagnostics.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>

#include <unistd.h>

using namespace weft;

std::string weft::grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string weft::compact(double number, const char *unit) {
  const char *prefix = "";
  for (const char *next : {"k", "M", "G", "T", "P", "E"}) {
    if (number < 999.5)
      break;
    number /= 1000;
    prefix = next;
  }
  int digits = !*prefix || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return *prefix || *unit ? std::string(text) + " " + prefix + unit : text;
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows)
    for (size_t column = 0; column < row.size(); ++column) {
      widths.resize(std::max(widths.size(), column + 1));
      widths[column] = std::max(widths[column], row[column].size());
    }
  size_t total = 0;
  for (size_t width : widths)
    total += width + 2;
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    if (row.size() == 1 && row.front() == "-") {
      text += "  " + std::string(total - 2, '-') + "\n";
      continue;
    }
    for (size_t column = 0; column < row.size(); ++column) {
      std::string pad(widths[column] - row[column].size(), ' ');
      bool last = column + 1 == row.size();
      text += "  " + (left.contains(column) ? row[column] + (last ? "" : pad) : pad + row[column]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

void weft::printJson(const rt::OrderedJson &value) { llvm::outs() << rt::dumpJson(value) << "\n"; }

std::string weft::didYouMean(std::string_view name, const std::vector<std::string> &candidates) {
  std::string close = lang::nearest(name, candidates);
  return close.empty() ? "" : "; did you mean '" + close + "'?";
}

bool weft::colourful() {
  const char *noColour = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) && (!noColour || !*noColour);
}

int weft::misuse(const char *command, const std::string &message) {
  llvm::errs() << "weft " << command << ": " << message << "\n";
  return kUsage;
}

int weft::runAction(llvm::ArrayRef<CommandEntry> actions, const char *command, int argc, const char **argv) {
  if (describing()) {
    describeActions(actions, command);
    return 0;
  }
  std::string_view name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h" || name == "help") {
    llvm::raw_ostream &out = argc > 1 ? llvm::outs() : llvm::errs();
    out << "usage: weft " << command << " ACTION ... (weft " << command << " ACTION --help explains one)\n\n";
    for (const CommandEntry &action : actions)
      out << llvm::formatv("  {0,-10} {1}\n", action.name, action.summary);
    return argc > 1 ? 0 : kUsage;
  }
  std::vector<std::string> names;
  for (const CommandEntry &action : actions) {
    if (name == action.name) {
      std::string program = std::string("weft ") + command + " " + action.name;
      argv[1] = program.c_str();
      return action.run(argc - 1, argv + 1);
    }
    names.emplace_back(action.name);
  }
  return misuse(command, "no action '" + std::string(name) + "'" + didYouMean(name, names) + " (weft " +
                             command + " --help lists them)");
}
