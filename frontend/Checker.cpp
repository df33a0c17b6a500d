//===- Checker.cpp - Settings, overrides and the way through --------------===//

#include "frontend/Checker.h"
#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace weft::lang {
namespace {

/// What decides how often a layer repeats, read off the tree: the formulas of
/// all counts, and the `let`s that they could mention.
struct RepeatFinder {
  std::vector<const ast::Expr *> counts;
  std::multimap<std::string, const ast::Expr *, std::less<>> lets;

  void find(const ast::Block &block) {
    for (const ast::Stmt &statement : block.statements) {
      if (statement.kind == ast::Stmt::Kind::Layer)
        counts.push_back(statement.expr);
      if (statement.kind == ast::Stmt::Kind::Let)
        lets.emplace(statement.names[0].text, statement.expr);
      if (statement.expr)
        find(*statement.expr);
      if (statement.body)
        find(*statement.body);
    }
  }
  void find(const ast::Expr &expr) {
    for (const ast::Expr *item : expr.items)
      find(*item);
    for (const ast::Arm &arm : expr.arms)
      find(*arm.body);
    if (expr.body)
      find(*expr.body);
  }
};

void namesOf(const ast::Expr &expr, std::vector<std::string> &names) {
  if (expr.kind == ast::Expr::Kind::Name)
    names.push_back(expr.text);
  for (const ast::Expr *item : expr.items)
    namesOf(*item, names);
  for (const ast::Arm &arm : expr.arms) {
    if (arm.test)
      namesOf(*arm.test, names);
    for (const ast::Stmt &statement : arm.body->statements)
      if (statement.expr)
        namesOf(*statement.expr, names);
  }
}

const ast::Model *chooseModel(const ast::File &file, std::string_view name, Diagnostics &diagnostics) {
  std::vector<std::string> names;
  for (const ast::Model &model : file.models)
    names.push_back(model.name.text);
  std::string listed = absl::StrJoin(names, ", ");
  if (const ast::Model *found = file.findModel(name))
    return found;
  if (names.empty()) {
    diagnostics.errorAnywhere(Code::W0208, "expected a model, found none in this file");
  } else if (!name.empty()) {
    std::string close = nearest(name, names);
    diagnostics
        .errorAnywhere(Code::W0208,
                       absl::StrCat("there is no model ", std::string(name), ", there is ", listed))
        .advise(close.empty() ? "" : absl::StrCat("did you mean ", close, "?"));
  } else if (names.size() > 1) {
    diagnostics.errorAnywhere(Code::W0208, absl::StrCat("expected the name of a model, there are ", listed));
  } else {
    return &file.models[0];
  }
  return nullptr;
}

} // namespace

void ModelChecker::findRepeatNames() {
  RepeatFinder finder;
  finder.find(*source.body);
  std::vector<std::string> pending;
  for (const ast::Expr *count : finder.counts)
    namesOf(*count, pending);
  while (!pending.empty()) {
    std::string name = std::move(pending.back());
    pending.pop_back();
    if (!symbolic.insert(name).second)
      continue;
    auto [first, last] = finder.lets.equal_range(name);
    for (; first != last; ++first)
      namesOf(*first->second, pending);
    for (const ast::Setting &setting : source.settings)
      if (setting.name.text == name && setting.value)
        namesOf(*setting.value, pending);
  }
}

bool ModelChecker::isSymbolic(const Formula &formula) const {
  for (const std::string &name : namesIn(formula))
    if (symbolic.contains(name))
      return true;
  return false;
}

/// Where the names of a formula got their values: `: heads is set on the
/// command line (--set heads=7), kv at qwen3.weft:3:74`.
std::string ModelChecker::provenance(const Formula &formula) const {
  std::vector<std::string> parts;
  for (const std::string &name : namesIn(formula)) {
    auto setting = std::find_if(model.settings.begin(), model.settings.end(),
                                [&](const Setting &candidate) { return candidate.name == name; });
    auto let = letPlaces.find(name);
    if (setting != model.settings.end() && setting->overridden) {
      auto given = std::find_if(overrides.rbegin(), overrides.rend(),
                                [&](const auto &entry) { return entry.first == name; });
      parts.push_back(
          absl::StrCat(name, " is set on the command line (--set ", name, "=", given->second, ")"));
    } else if (setting != model.settings.end()) {
      parts.push_back(absl::StrCat(name, " at ", sources.describe(setting->place)));
    } else if (let != letPlaces.end()) {
      parts.push_back(absl::StrCat(name, " at ", sources.describe(let->second)));
    }
  }
  return parts.empty() ? "" : absl::StrCat(": ", absl::StrJoin(parts, ", "));
}

std::optional<Value> ModelChecker::evaluateNow(const Formula &formula, const Place &place) {
  FormulaError failure;
  std::optional<Value> value = evaluate(formula, statics, &failure);
  if (!value) {
    const Formula &at = *failure.at;
    Place where = at.offset >= 0 ? sources.placeAt(place.file, at.offset, at.length) : place;
    error(Code::W0318, where, failure.message + provenance(at));
  }
  return value;
}

FormulaRef ModelChecker::overrideOf(const ast::Setting &setting, std::string &text) {
  auto given = std::find_if(overrides.rbegin(), overrides.rend(),
                            [&](const auto &entry) { return entry.first == setting.name.text; });
  if (given == overrides.rend())
    return nullptr;
  text = given->second;
  if (!setting.words.empty())
    return Formula::ofName(text);
  std::string why;
  FormulaRef formula = parseFormula(text, &why);
  FormulaError failure;
  if (formula && !evaluate(*formula, statics, &failure)) {
    why = failure.message;
    formula = nullptr;
  }
  if (!formula)
    diagnostics
        .error(Code::W0213, setting.name.place,
               absl::StrCat("--set ", setting.name.text, "=", text, " gives no number: ", why))
        .advise("give a number, or a formula of the settings before this one");
  return formula;
}

void ModelChecker::checkSetting(const ast::Setting &setting) {
  Setting result;
  result.name = setting.name.text;
  result.place = setting.name.place;
  for (const ast::Name &word : setting.words)
    result.words.push_back(word.text);
  std::string text;
  result.value = overrideOf(setting, text);
  result.overridden = result.value != nullptr;
  if (!setting.words.empty()) {
    if (!result.value)
      result.value = Formula::ofName(result.words[0]);
    if (std::find(result.words.begin(), result.words.end(), result.value->name) == result.words.end())
      diagnostics
          .error(Code::W0211, setting.name.place,
                 absl::StrCat("--set ", result.name, "=", text, ": expected ",
                              absl::StrJoin(result.words, " or ")))
          .advise(nearest(text, result.words).empty()
                      ? ""
                      : absl::StrCat("did you mean ", nearest(text, result.words), "?"));
    statics[result.name] = Value::ofWord(result.value->name);
  } else {
    FormulaRef written = formulaOf(*setting.value, "a setting");
    if (!result.value)
      result.value = written;
    if (result.value && isSymbolic(*result.value))
      symbolic.insert(result.name);
  }
  bool usable = result.value != nullptr;
  FormulaRef value = result.value;
  if (!usable)
    result.value = Formula::ofNumber(1);
  bool isWord = !result.words.empty();
  model.settings.push_back(std::move(result));
  if (usable && !isWord) {
    std::optional<Value> number = evaluateNow(*value, setting.name.place);
    usable = number.has_value();
    if (usable)
      statics[setting.name.text] = *number;
  }
  FormulaRef name = makeFormula(Formula::Kind::Name, {}, setting.name.place, setting.name.text);
  declare(setting.name,
          {Symbol::Kind::Setting, setting.name.place, usable ? Item::of(name) : Item::poison(), nullptr});
  indexChoices(setting);
}

void ModelChecker::checkOverrideNames() {
  std::vector<std::string> names;
  for (const ast::Setting &setting : source.settings)
    names.push_back(setting.name.text);
  RepeatFinder finder;
  finder.find(*source.body);
  for (const auto &[name, value] : overrides) {
    if (std::find(names.begin(), names.end(), name) != names.end())
      continue;
    if (finder.lets.contains(name)) {
      diagnostics
          .error(Code::W0212, finder.lets.find(name)->second->place,
                 absl::StrCat("--set ", name, "=", value, ": ", name, " is a let, expected a setting"))
          .advise(absl::StrCat("set what it is made of, or make it a setting of model ", source.name.text));
      continue;
    }
    std::string close = nearest(name, names);
    diagnostics
        .error(Code::W0210, source.name.place,
               absl::StrCat(
                   "--set ", name, "=", value, ": model ", source.name.text, " has no setting ", name,
                   names.empty() ? ", it has none" : absl::StrCat(", it has ", absl::StrJoin(names, ", "))))
        .advise(close.empty() ? "" : absl::StrCat("did you mean ", close, "?"));
  }
}

void ModelChecker::checkSettings() {
  checkOverrideNames();
  for (const ast::Setting &setting : source.settings)
    checkSetting(setting);
}

std::optional<Model> ModelChecker::check() {
  int errorsBefore = diagnostics.errorCount();
  Scope outermost;
  outermost.name = source.name.text;
  scope = &outermost;
  PathNames outermostPaths;
  paths = &outermostPaths;
  block = &model.body;
  model.name = source.name.text;
  model.place = source.name.place;
  model.text = std::string(sources.textAt(source.place));
  statements.push_back({source.place, source.place});
  findRepeatNames();
  checkSettings();
  checkBlock(*source.body, false);
  if (!produces && diagnostics.errorCount() == errorsBefore)
    error(Code::W0315, source.name.place,
          absl::StrCat("model ", source.name.text, " has neither an output nor a loss"))
        .advise("end it with `output NAME = ...` or `loss = ...`");
  if (diagnostics.errorCount() == errorsBefore)
    checkSizes(
        model, [this](const Formula &formula) { return provenance(formula); }, sources, diagnostics);
  if (diagnostics.errorCount() != errorsBefore)
    return std::nullopt;
  return std::move(model);
}

static std::optional<Model> checkNamed(const ast::File &file, const SourceFiles &sources,
                                       std::string_view modelName, const Overrides &overrides,
                                       Diagnostics &diagnostics, NameIndex *names) {
  const ast::Model *source = chooseModel(file, modelName, diagnostics);
  if (!source)
    return std::nullopt;
  for (const ast::Model &other : file.models)
    if (&other != source && other.name.text == source->name.text) {
      diagnostics
          .error(Code::W0209, other.name.place, absl::StrCat("a second model called ", other.name.text))
          .note(source->name.place, "the first is here");
      return std::nullopt;
    }
  return ModelChecker(*source, sources, overrides, diagnostics, names).check();
}

std::optional<Model> checkModel(const ast::File &file, const SourceFiles &sources, std::string_view modelName,
                                const Overrides &overrides, Diagnostics &diagnostics) {
  return checkNamed(file, sources, modelName, overrides, diagnostics, nullptr);
}

std::optional<Model> checkModel(const ast::File &file, const SourceFiles &sources, std::string_view modelName,
                                const Overrides &overrides, Diagnostics &diagnostics, NameIndex &names) {
  return checkNamed(file, sources, modelName, overrides, diagnostics, &names);
}

} // namespace weft::lang
