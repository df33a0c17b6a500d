//===- Reports.cpp - What a recipe wants reported ---------------------------===//

#include "tools/weft/Reports.h"

#include "frontend/Lexer.h"
#include "frontend/Watch.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include "absl/strings/str_cat.h"

using namespace weft;

static rt::WatchKind kindOf(const std::string &function) {
  return function == "sigmoid" ? rt::WatchKind::Sigmoid
         : function == "mean"  ? rt::WatchKind::Mean
         : function == "norm"  ? rt::WatchKind::Norm
                               : rt::WatchKind::StableRank;
}

/// Whether a `param` of the model's text has the name that `item` asks for: one that
/// an `if` left out is no slip of the pen.
static bool isDeclared(const Program &program, const lang::WatchItem &item) {
  llvm::StringRef name = llvm::StringRef(item.text).split('(').second.rtrim(')').trim();
  name = name.substr(name.rfind('.') + 1); // npos + 1 is 0
  lang::SourceFiles sources;
  lang::Diagnostics ignored;
  bool inNames = false; // between `param` and its colon
  for (const lang::Token &token : lang::lex(sources.add("model", program.model.text), sources, ignored)) {
    inNames = token.is("param") || (inNames && !token.is(":"));
    if (inNames && token.is(std::string_view(name.data(), name.size())))
      return true;
  }
  return false;
}

absl::StatusOr<std::vector<rt::Watched>> weft::watchedOf(const Program &program) {
  std::vector<rt::Watched> result;
  const std::map<std::string, int64_t> rows = lang::matrixRowAxes(program.model);
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const lang::ParameterInfo &parameter : lang::parametersOf(program.model))
    shapes[parameter.path] = parameter.shape;
  for (const lang::WatchItem &item : lang::watchItems(*program.recipe, program.model)) {
    if (item.paths.empty() && isDeclared(program, item)) {
      llvm::errs() << "weft: watch = " << item.text
                   << " is left out: the model declares it, and its settings chose a text without\n";
      continue;
    }
    if (item.paths.empty()) {
      std::set<std::string> kinds;
      for (const lang::ParameterInfo &parameter : lang::parametersOf(program.model))
        kinds.insert(rt::kindOf(parameter.path));
      std::string list;
      for (const std::string &kind : kinds)
        list += (list.empty() ? "" : ", ") + kind;
      return absl::InvalidArgumentError(
          absl::StrCat("watch = ", item.text,
                       ": no parameter of the model is meant; expected matrices, "
                       "kernels, all, or a name or address of ",
                       list));
    }
    rt::Watched watched{item.text, kindOf(item.function), {}};
    for (const std::string &path : item.paths)
      watched.parameters.push_back({path, rows.at(path), shapes.at(path)});
    result.push_back(std::move(watched));
  }
  return result;
}

absl::StatusOr<std::shared_ptr<const rt::RegionLabels>> weft::regionLabels(const rt::Recipe &recipe,
                                                                           const rt::Dataset &data) {
  if (recipe.regions.empty() || !data.heldOut)
    return std::shared_ptr<const rt::RegionLabels>();
  absl::StatusOr<rt::RegionLabels> labels =
      rt::RegionLabels::make(*data.heldOut, recipe.regions, *data.tokenizer);
  if (!labels.ok())
    return labels.status();
  return std::make_shared<const rt::RegionLabels>(*std::move(labels));
}
