//===- TextCommands.cpp - weft check, fmt, explain -------------------------===//

#include "tools/weft/Output.h"

#include "frontend/CheckFile.h"
#include "frontend/Explain.h"
#include "frontend/Format.h"
#include "frontend/Parser.h"
#include "runtime/core/File.h"

#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

#include <iostream>
#include <iterator>

using namespace weft;
namespace cl = llvm::cl;

namespace {

//===----------------------------------------------------------------------===//
// weft check
//===----------------------------------------------------------------------===//

/// Checks what one file itself holds; files that it uses only lend their models.
class FileCheck {
public:
  FileCheck(const std::string &path, const lang::Overrides &sets) : path(path) {
    file = lang::parseFile(path, sources, diagnostics);
    if (diagnostics.hasErrors())
      return;
    counts = lang::checkStatements(file, sources.find(path), sources, sets, diagnostics);
  }

  /// Names of the settings of all models.
  void addSettings(std::vector<std::string> &names) const {
    for (const lang::ast::Model &model : file.models)
      for (const lang::ast::Setting &setting : model.settings)
        names.push_back(setting.name.text);
  }

  bool good() const { return !diagnostics.hasErrors(); }
  std::string rendered(bool colour) const { return diagnostics.render(sources, colour); }
  std::string json() const { return diagnostics.renderJson(sources); }

  /// `FILE: 1 model, 2 recipes: no errors`.
  std::string summary() const {
    std::string text;
    auto part = [&](int count, const char *one) {
      if (count > 0)
        absl::StrAppend(&text, text.empty() ? "" : ", ", count, " ", one, count > 1 ? "s" : "");
    };
    part(counts.models, "model");
    part(counts.plans, "plan");
    part(counts.recipes, "recipe");
    part(counts.tables, "weight table");
    return absl::StrCat(path, ": ", text.empty() ? "nothing to check" : text, ": no errors");
  }

private:
  std::string path;
  lang::SourceFiles sources;
  lang::Diagnostics diagnostics;
  lang::ast::File file;
  lang::FileStatements counts;
};

//===----------------------------------------------------------------------===//
// weft fmt
//===----------------------------------------------------------------------===//

int formatStdin(bool check) {
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  absl::StatusOr<std::string> laidOut = lang::formatText("<stdin>", text);
  if (!laidOut.ok())
    return fail(laidOut.status());
  if (!check) {
    llvm::outs() << *laidOut;
    return 0;
  }
  if (*laidOut == text)
    return 0;
  llvm::outs() << "<stdin>\n";
  return kExplained;
}

int formatFile(const std::string &path, bool check) {
  absl::StatusOr<std::string> text = rt::readFile(path);
  absl::StatusOr<std::string> laidOut = text.ok() ? lang::formatText(path, *text) : text.status();
  if (!laidOut.ok())
    return fail(laidOut.status());
  if (*laidOut == *text)
    return 0;
  if (check) {
    llvm::outs() << path << "\n";
    return kExplained;
  }
  absl::Status status = rt::writeFileAtomic(path, *laidOut);
  return status.ok() ? 0 : fail(status);
}

} // namespace

int weft::checkCommand(int argc, const char **argv) {
  cl::list<std::string> paths(cl::Positional, cl::OneOrMore, cl::desc("FILE.weft..."),
                              cl::cat(flagCategory()));
  cl::list<std::string> sets("set", cl::desc("set a size or a choice, in the models that have it"),
                             cl::value_desc("name=value"), cl::cat(flagCategory()));
  cl::opt<bool> json("json", cl::desc("one array of errors and warnings"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "checks models, plans, recipes and weight tables, and reports every error",
                  "  weft check models/tiny.weft\n  weft check models/plans.weft --set hidden=2048\n  weft "
                  "check models/*.weft --json\n"))
    return kUsage;
  lang::Overrides overrides;
  for (const std::string &set : sets) {
    size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      return misuse("check", "--set " + set + ": expected name=value");
    overrides.emplace_back(set.substr(0, equals), set.substr(equals + 1));
  }
  bool good = true;
  std::vector<std::string> settings;
  rt::OrderedJson all = rt::OrderedJson::array();
  for (const std::string &path : paths) {
    FileCheck check(path, overrides);
    good &= check.good();
    check.addSettings(settings);
    if (json) {
      for (rt::OrderedJson &entry : rt::OrderedJson::parse(check.json(), nullptr, false))
        all.push_back(std::move(entry));
      continue;
    }
    llvm::errs() << check.rendered(colourful());
    if (check.good())
      llvm::outs() << check.summary() << "\n";
  }
  if (json)
    printJson(all);
  for (const auto &[name, value] : overrides)
    if (std::find(settings.begin(), settings.end(), name) == settings.end())
      return fail(absl::NotFoundError(
          absl::StrCat("--set ", name, ": no model has this setting", didYouMean(name, settings))));
  return good ? 0 : kExplained;
}

int weft::fmtCommand(int argc, const char **argv) {
  cl::list<std::string> paths(cl::Positional, cl::OneOrMore,
                              cl::desc("FILE.weft... (-: from standard input to standard output)"),
                              cl::cat(flagCategory()));
  cl::opt<bool> check("check", cl::desc("change nothing; name the files that would change, exit 1 if any"),
                      cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "lays files out in the one form",
                  "  weft fmt my.weft\n  weft fmt --check models/*.weft\n  weft fmt - < my.weft\n"))
    return kUsage;
  int worst = 0;
  for (const std::string &path : paths)
    worst = std::max(worst, path == "-" ? formatStdin(check) : formatFile(path, check));
  return worst;
}

int weft::explainCommand(int argc, const char **argv) {
  cl::opt<std::string> code(cl::Positional, cl::Required, cl::desc("CODE"), cl::cat(flagCategory()));
  if (!parseFlags(argc, argv, "prints the page of an error code: what it means, an example, what to do",
                  "  weft explain W0301\n  weft explain all\n"))
    return kUsage;
  if (code == "all") {
    for (const std::string &known : lang::explainedCodes())
      if (std::optional<lang::Code> found = lang::codeNamed(known))
        llvm::outs() << known << "  " << lang::codeTitle(*found) << "\n";
    return 0;
  }
  if (std::optional<std::string> page = lang::explain(std::string(code))) {
    llvm::outs() << *page << (page->ends_with('\n') ? "" : "\n");
    return 0;
  }
  return fail(absl::NotFoundError(absl::StrCat(
      "explain ", std::string(code), ": no such code",
      didYouMean(llvm::StringRef(code).upper(), lang::explainedCodes()), " (weft explain all lists them)")));
}
