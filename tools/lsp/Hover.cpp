//===- Hover.cpp - What a name is, in Markdown -----------------------------===//

#include "tools/lsp/Hover.h"

#include "tools/lsp/Context.h"
#include "tools/lsp/HeadWindows.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <array>
#include <cmath>

namespace weft::lsp {
namespace {

using lang::NameEntry;
using lang::NameKind;

/// 2,097,152
std::string grouped(int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return text;
}

/// 31.5 MFLOP
std::string flops(double number) {
  constexpr std::array<const char *, 6> kUnits = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  for (; number >= 1000 && unit + 1 < kUnits.size(); ++unit)
    number /= 1000;
  return absl::StrFormat("%.3g %sFLOP", number, kUnits[unit]);
}

class Page {
public:
  Page(Analysis &analysis, const NameEntry &entry) : analysis(analysis), entry(entry) {
    const NameEntry *found = analysis.names.declarationOf(entry);
    declaration = found ? found : &entry;
  }

  std::string text() {
    switch (entry.kind) {
    case NameKind::Model:
      code(absl::StrCat("model ", entry.name));
      addCosts("");
      line(windowLines(analysis, entry.name, ""));
      break;
    case NameKind::Plan:
      code(absl::StrCat("plan ", entry.name, " for ", declaration->model));
      for (const lang::Plan &plan : analysis.statements.plansChecked)
        if (plan.name == entry.name)
          line(planLines(analysis, plan, ""));
      break;
    case NameKind::Recipe:
    case NameKind::Table:
    case NameKind::Def:
      code(firstLine(declaration->term));
      if (!entry.isDeclaration())
        addType();
      break;
    case NameKind::Layer:
    case NameKind::Branch:
      code(firstLine(declaration->term));
      line(absl::StrCat("path `", declaration->path, "`"));
      addCosts(declaration->path);
      line(windowLines(analysis, declaration->model, declaration->path));
      break;
    case NameKind::Function:
    case NameKind::Operator:
      addFunction();
      break;
    case NameKind::Param:
      addParameter();
      break;
    case NameKind::Choice:
      code(entry.name);
      line(absl::StrCat("a choice of the setting `", entry.type, "`"));
      break;
    case NameKind::Setting:
    case NameKind::Index:
      code(absl::StrCat(entry.kind == NameKind::Index ? "index " : "setting ", entry.name,
                        entry.kind == NameKind::Index ? " : " : " = ", declaration->type));
      break;
    case NameKind::Let:
      code(absl::StrCat(firstLine(declaration->term), entry.type.empty() ? "" : "  # " + entry.type));
      break;
    case NameKind::Input:
    case NameKind::Argument:
    case NameKind::Value:
      addValue();
      break;
    }
    return page;
  }

private:
  void code(const std::string &text) { absl::StrAppend(&page, "```weft\n", text, "\n```\n"); }
  void line(const std::string &text) {
    if (!text.empty())
      absl::StrAppend(&page, "\n", text, text.ends_with('\n') ? "" : "\n");
  }

  std::string firstLine(const lang::Place &place) const {
    const std::string_view text = analysis.sources.textAt(place);
    std::string first(text.substr(0, std::min(text.find_first_of("\r\n"), text.size())));
    while (!first.empty() && (first.back() == '{' || first.back() == ' '))
      first.pop_back();
    return first;
  }

  void addType() {
    if (!entry.type.empty())
      line(absl::StrCat("gives `", entry.type, "`"));
  }

  void addValue() {
    const char *kind = entry.kind == NameKind::Input      ? "input "
                       : entry.kind == NameKind::Argument ? "argument "
                                                          : "";
    code(absl::StrCat(kind, entry.name, entry.type.empty() ? "" : " : " + entry.type));
  }

  std::string rowText(const std::string &model) const {
    const bool given = analysis.statements.positions.count(model) > 0;
    return absl::StrCat("rows of ", analysis.positionsOf(model), " positions",
                        given ? "" : ", as no recipe of this file says");
  }

  /// Parameters and products of a layer, a branch or the model.
  void addCosts(const std::string &path) {
    const std::string &model = declaration->kind == NameKind::Model ? declaration->name : declaration->model;
    const lang::ModelCounts *counts = analysis.countsOf(model);
    const lang::ScopeCount *scope = counts ? counts->scope(path) : nullptr;
    if (!scope)
      return;
    const auto tokens = static_cast<double>(counts->positions());
    const bool several = scope->repeats > 1;
    auto both = [&](const std::string &first, const std::string &all) {
      if (!several)
        return all;
      return absl::StrCat(all, ", ", scope->alike ? "each" : "the first", " of ", scope->repeats, ": ",
                          first);
    };
    line(absl::StrCat("- parameters: ", both(grouped(scope->first.parameters), grouped(scope->parameters)),
                      "\n", "- products of a forward, per token: ",
                      both(flops(scope->first.products / tokens), flops(scope->products / tokens)), " (",
                      rowText(model), ")"));
  }

  void addTermCost() {
    const lang::ModelCounts *counts = analysis.countsOf(entry.model);
    const lang::Count *count = counts ? counts->term(entry.term) : nullptr;
    if (!count || count->products == 0)
      return;
    const double perToken = count->products / static_cast<double>(counts->positions());
    const auto repeats = static_cast<double>(count->repeats);
    line(absl::StrCat("products of a forward, per token: ", flops(perToken / repeats),
                      count->repeats > 1 ? absl::StrCat(", ", count->repeats, " times: ", flops(perToken))
                                         : "",
                      " (", rowText(entry.model), ")"));
  }

  void addFunction() {
    const lang::LanguageFunction *function = lang::languageFunction(entry.name);
    code(function ? std::string(function->signature) : entry.name);
    if (function)
      line(std::string(function->value));
    addType();
    addTermCost();
    if (entry.name == "attend")
      line(windowLines(analysis, entry.model, scopeAround()));
  }

  /// The path of the innermost layer or branch whose statement holds this term.
  std::string scopeAround() const {
    std::string path;
    for (const NameEntry *other : analysis.names.all()) {
      const bool scope = other->kind == NameKind::Layer || other->kind == NameKind::Branch;
      const bool holds = other->isDeclaration() && other->term.file == entry.place.file &&
                         other->term.offset <= entry.place.offset &&
                         entry.place.offset < other->term.offset + other->term.length;
      if (scope && holds && other->path.size() > path.size())
        path = other->path;
    }
    return path;
  }

  void addParameter() {
    code(absl::StrCat("param ", entry.name, entry.type.empty() ? "" : " : " + entry.type));
    const std::string statement = firstLine(declaration->term);
    const size_t init = statement.find(" init ");
    line(absl::StrCat(
        "path `", declaration->path, "`",
        init == std::string::npos ? "" : absl::StrCat(", starts `", statement.substr(init + 6), "`")));
    const lang::ModelCounts *counts = analysis.countsOf(declaration->model);
    const lang::Count *count = counts ? counts->term(declaration->place) : nullptr;
    if (count && count->repeats > 1)
      line(absl::StrCat(grouped(count->parameters), " parameters in ", count->repeats, " tensors of ",
                        grouped(count->parameters / count->repeats)));
    else if (count)
      line(absl::StrCat(grouped(count->parameters), " parameters"));
  }

  Analysis &analysis;
  const NameEntry &entry;
  const NameEntry *declaration;
  std::string page;
};

/// A keyword or the key of an option.
std::optional<HoverPage> wordPage(const Analysis &analysis, size_t offset) {
  const std::string &text = analysis.sources.file(analysis.own).text;
  const std::string word = wordAt(text, offset);
  const Context context = contextAt(text, offset);
  if (word.empty() || !context.place)
    return std::nullopt;
  const lang::LanguageWord *known = lang::languageWord(*context.place, word);
  if (!known && context.place != lang::WordPlace::File)
    known = lang::languageWord(lang::WordPlace::File, word);
  if (!known)
    return std::nullopt;
  std::string page = absl::StrCat("```weft\n", word, "\n```\n\n", std::string(known->meaning), "\n");
  if (!known->values.empty())
    absl::StrAppend(&page, "\nvalues, the default first: ", std::string(known->values), "\n");
  size_t start = offset;
  while (start > 0 && text.compare(start, word.size(), word) != 0)
    --start;
  return HoverPage{std::move(page), analysis.sources.placeAt(analysis.own, static_cast<int32_t>(start),
                                                             static_cast<int32_t>(word.size()))};
}

} // namespace

std::optional<HoverPage> hoverAt(Analysis &analysis, size_t offset) {
  const NameEntry *entry = analysis.names.at(analysis.own, static_cast<int32_t>(offset));
  if (!entry)
    return wordPage(analysis, offset);
  return HoverPage{Page(analysis, *entry).text(), entry->place};
}

} // namespace weft::lsp
