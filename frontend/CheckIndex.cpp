//===- CheckIndex.cpp - What the checker writes down for editors -----------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {
namespace {

NameKind kindOf(Symbol::Kind kind) {
  switch (kind) {
  case Symbol::Kind::Setting:
    return NameKind::Setting;
  case Symbol::Kind::Let:
    return NameKind::Let;
  case Symbol::Kind::Index:
    return NameKind::Index;
  case Symbol::Kind::Argument:
    return NameKind::Argument;
  case Symbol::Kind::Param:
    return NameKind::Param;
  case Symbol::Kind::Input:
    return NameKind::Input;
  case Symbol::Kind::Def:
    return NameKind::Def;
  case Symbol::Kind::Value:
    break;
  }
  return NameKind::Value;
}

} // namespace

/// A shape, a number, or the formula where layers give it several values.
std::string ModelChecker::typeText(const Item &item) const {
  if (item.isTensor())
    return shapeText(typeOf(item.value));
  if (!item.isFormula() || !item.formula)
    return "";
  if (item.formula->kind == Formula::Kind::Name && !statics.contains(item.formula->name)) {
    auto let = activeLets.find(item.formula->name);
    return let == activeLets.end() ? item.formula->name : print(*let->second);
  }
  std::optional<Value> value = evaluate(*item.formula, statics);
  return value ? value->text() : print(*item.formula);
}

/// The place of the word that `place` starts with, parentheses around it left out.
Place ModelChecker::wordIn(const Place &place, const std::string &word) const {
  if (!index)
    return place;
  const std::string_view text = sources.textAt(place);
  size_t at = 0;
  while (at < text.size() && (text[at] == '(' || text[at] == '#' || text[at] <= ' '))
    at = text[at] == '#' ? std::min(text.find_first_of("\r\n", at), text.size()) : at + 1;
  return sources.placeAt(place.file, place.offset + static_cast<int32_t>(at),
                         static_cast<int32_t>(word.size()));
}

std::string ModelChecker::stepPath(const std::string &name) const {
  return paths->path.empty() ? name : absl::StrCat(paths->path, ".", name);
}

void ModelChecker::indexDeclaration(const ast::Name &name, const Symbol &symbol) {
  if (!index || index->has(name.place))
    return;
  Place extent = statements.back().block, statement = statements.back().place;
  if (symbol.kind == Symbol::Kind::Argument)
    extent = calls.back().def->place;
  if (symbol.kind == Symbol::Kind::Index) // known in the layer's block, which is not entered yet
    extent = statement;
  if (symbol.kind == Symbol::Kind::Setting)
    statement = name.place;
  const bool counts = symbol.kind == Symbol::Kind::Index; // indexCount says its range
  index->add({kindOf(symbol.kind), name.text, name.place, name.place, statement, extent,
              counts ? "" : typeText(symbol.item), source.name.text,
              symbol.kind == Symbol::Kind::Param ? stepPath(name.text) : std::string()});
}

void ModelChecker::indexUse(const Place &place, std::string_view name, const Symbol &symbol,
                            const Item &item) {
  if (!index || index->has(place))
    return;
  std::string path;
  if (symbol.kind == Symbol::Kind::Param)
    if (const NameEntry *declaration = index->at(symbol.place.file, symbol.place.offset))
      path = declaration->path;
  index->add({kindOf(symbol.kind),
              std::string(name),
              place,
              symbol.place,
              {},
              {},
              typeText(item),
              source.name.text,
              std::move(path)});
}

/// A layer, branch or parameter is a step of paths; parameters declare
/// themselves as names too.
void ModelChecker::indexStep(NameKind kind, const ast::Name &name, const Place &whole) {
  if (!index)
    return;
  const std::string path = stepPath(name.text);
  index->addPath(source.name.text, path, name.place);
  if (kind != NameKind::Param)
    index->add({kind, name.text, name.place, name.place, whole, statements.back().block, "", source.name.text,
                path});
}

void ModelChecker::indexChoices(const ast::Setting &setting) {
  if (!index)
    return;
  for (const ast::Name &word : setting.words)
    index->add({NameKind::Choice, word.text, word.place, word.place, word.place, source.place,
                setting.name.text, source.name.text, ""});
}

void ModelChecker::indexChoice(const ast::Expr &word, std::string_view setting) {
  if (!index)
    return;
  for (const ast::Setting &candidate : source.settings)
    for (const ast::Name &choice : candidate.words)
      if (candidate.name.text == setting && choice.text == word.text)
        index->add({NameKind::Choice,
                    word.text,
                    wordIn(word.place, word.text),
                    choice.place,
                    {},
                    {},
                    candidate.name.text,
                    source.name.text,
                    ""});
}

void ModelChecker::indexTerm(NameKind kind, const Place &place, std::string_view name, const Item &item,
                             const Place &whole) {
  if (!index || item.isPoison() || index->has(place))
    return;
  index->add({kind, std::string(name), place, {}, whole, {}, typeText(item), source.name.text, ""});
}

/// The index of a layer runs over a range, which says more than its name.
void ModelChecker::indexCount(const ast::Stmt &layer, const FormulaRef &count) {
  if (!index || !count)
    return;
  std::optional<Value> value = evaluate(*count, statics);
  const std::string last = value && value->isWhole() ? Value::ofNumber(value->number - 1).text()
                                                     : absl::StrCat(print(*count), " - 1");
  index->setType(layer.index.place, absl::StrCat("0 to ", last), layer.place);
}

} // namespace weft::lang
