//===- Usage.cpp - What is wrong with a command line ----------------------===//
//
// LLVM's parser of flags says what it met in several lines, and takes any number
// that fits its type. Here each fault becomes one line of Weft's form, and a number
// below what counts is refused.
//
//===----------------------------------------------------------------------===//

#include "tools/weft/Command.h"
#include "tools/weft/Describe.h"

#include "frontend/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cl = llvm::cl;
using namespace weft;

namespace {

/// Names of this command's own flags.
std::vector<std::string> flagNames() {
  std::vector<std::string> names;
  for (const auto &entry : cl::getRegisteredOptions())
    if (llvm::is_contained(entry.second->Categories, &flagCategory()))
      names.push_back(entry.first.str());
  return names;
}

/// `MODEL.weft [PLAN]`: what stands on the line without a flag.
std::string argumentNames() {
  std::vector<std::string> names;
  for (const cl::Option *option : cl::SubCommand::getTopLevel().PositionalOpts)
    names.push_back(option->HelpStr.str());
  return names.empty() ? "no arguments" : absl::StrJoin(names, " ");
}

/// What stands between the first pair of `'` behind `before`; empty where there is none.
llvm::StringRef quotedBehind(llvm::StringRef text, llvm::StringRef before) {
  const size_t at = text.find(before);
  return at == llvm::StringRef::npos ? ""
                                     : text.substr(at + before.size()).split('\'').second.split('\'').first;
}

/// LLVM's words for a command line of `program`, as one line.
std::string explained(llvm::StringRef errors, const std::string &program) {
  const std::string help = absl::StrCat(" (", program, " --help explains it)\n");
  if (llvm::StringRef flag = quotedBehind(errors, "Unknown command line argument"); !flag.empty()) {
    const llvm::StringRef name = flag.ltrim('-').split('=').first;
    const std::string close = lang::nearest({name.data(), name.size()}, flagNames());
    return absl::StrCat(program, ": no flag '", flag.split('=').first.str(), "'",
                        close.empty() ? "" : absl::StrCat("; did you mean '--", close, "'?"), help);
  }
  if (errors.contains("Not enough positional"))
    return absl::StrCat(program, ": expected ", argumentNames(), help);
  if (errors.contains("Too many positional"))
    return absl::StrCat(program, ": expected ", argumentNames(), " and nothing more", help);
  return errors.str();
}

/// The number that was given for `option`, if it is a flag of one.
std::optional<double> numberOf(cl::Option *option) {
  if (auto *whole = dynamic_cast<cl::opt<int64_t> *>(option))
    return static_cast<double>(whole->getValue());
  if (auto *small = dynamic_cast<cl::opt<int> *>(option))
    return static_cast<double>(small->getValue());
  if (auto *real = dynamic_cast<cl::opt<double> *>(option))
    return real->getValue();
  return std::nullopt;
}

/// Flags whose default, 0, stands for another number: given, they count from 1.
bool countsFromOne(llvm::StringRef name) {
  static const llvm::StringSet<> names = {"batch", "depth", "positions", "steps"};
  return names.contains(name);
}

/// The first flag with a number that means nothing, explained; empty when there is none.
std::string wrongNumber(const std::string &program) {
  for (const auto &entry : cl::getRegisteredOptions()) {
    cl::Option *option = entry.second;
    if (option->getNumOccurrences() == 0 || !llvm::is_contained(option->Categories, &flagCategory()))
      continue;
    const std::optional<double> number = numberOf(option);
    const double least = countsFromOne(entry.first) ? 1 : 0;
    if (number && !(*number >= least))
      return absl::StrCat(program, ": --", entry.first.str(), ": expected at least ", least, ", found ",
                          *number, "\n");
  }
  return "";
}

} // namespace

cl::OptionCategory &weft::flagCategory() {
  static cl::OptionCategory category("Flags");
  return category;
}

bool weft::parseFlags(int argc, const char **argv, const char *overview, const char *examples) {
  if (describing()) {
    describeFlags(argv[0], overview, examples);
    return false;
  }
  cl::HideUnrelatedOptions(flagCategory());
  std::string text = std::string(overview) + "\n\nexamples:\n" + examples;
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  if (!cl::ParseCommandLineOptions(argc, argv, text, &stream)) {
    llvm::errs() << explained(stream.str(), argv[0]);
    return false;
  }
  const std::string wrong = wrongNumber(argv[0]);
  llvm::errs() << wrong;
  return wrong.empty();
}
