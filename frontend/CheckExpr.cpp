//===- CheckExpr.cpp - Expressions ----------------------------------------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>

namespace weft::lang {

using FK = Formula::Kind;

namespace {

FK formulaKind(std::string_view op) {
  static const std::map<std::string_view, FK> kinds = {
      {"+", FK::Add},   {"-", FK::Sub},  {"*", FK::Mul},           {"/", FK::Div},       {"mod", FK::Mod},
      {"**", FK::Pow},  {"<", FK::Less}, {"<=", FK::LessEqual},    {">", FK::Greater},   {"is", FK::Is},
      {"and", FK::And}, {"or", FK::Or},  {">=", FK::GreaterEqual}, {"is not", FK::IsNot}};
  return kinds.at(op);
}

bool isTest(std::string_view op) { return op == "<" || op == "<=" || op == ">" || op == ">="; }
bool isLogic(std::string_view op) { return op == "and" || op == "or"; }

} // namespace

FormulaRef ModelChecker::makeFormula(FK kind, std::vector<FormulaRef> args, const Place &place,
                                     std::string name) {
  FormulaRef formula = Formula::make(kind, std::move(args), std::move(name));
  auto written = std::const_pointer_cast<Formula>(formula); // nobody else holds it yet
  written->offset = place.offset;
  written->length = place.length;
  if (formula->depth > kFormulaDepthLimit || formula->size > kFormulaSizeLimit) {
    error(Code::W0104, place,
          absl::StrCat("this formula has more than ", kFormulaDepthLimit, " levels or ", kFormulaSizeLimit,
                       " parts once defs are pasted"))
        .advise("name parts of it with `let`");
    return nullptr;
  }
  return formula;
}

FormulaRef ModelChecker::formulaOf(const ast::Expr &expr, std::string_view what) {
  Item item = checkExpr(expr);
  if (item.isTensor()) {
    Diagnostic &entry =
        error(Code::W0316, expr.place,
              absl::StrCat("expected a formula of settings, lets and layer indices in ", std::string(what),
                           ", found a tensor ", shapeText(typeOf(item.value))));
    noteDeclaration(entry, item.value);
  }
  return item.isFormula() ? item.formula : nullptr;
}

Item ModelChecker::checkExpr(const ast::Expr &expr) {
  DepthGuard guard(*this, expr.place);
  if (!guard.ok || reportedNodes)
    return Item::poison();
  switch (expr.kind) {
  case ast::Expr::Kind::Number:
    return checkNumber(expr);
  case ast::Expr::Kind::Name:
    return checkName(expr);
  case ast::Expr::Kind::Chain:
    return checkChain(expr);
  case ast::Expr::Kind::Power:
    return checkPower(expr);
  case ast::Expr::Kind::Neg:
    return checkNegation(expr);
  case ast::Expr::Kind::Not:
    return checkLogic(expr);
  case ast::Expr::Kind::Call:
    return checkCall(expr);
  case ast::Expr::Kind::Index:
    return checkIndex(expr);
  case ast::Expr::Kind::Branch:
    return checkBranch(expr);
  case ast::Expr::Kind::If:
    break;
  }
  Item item = checkIf(expr, true);
  if (item.kind != Item::Kind::Nothing)
    return item;
  error(Code::W0317, expr.place, "this if has no value where one is needed")
      .advise("every side, also `else`, must end with an expression");
  return Item::poison();
}

Item ModelChecker::checkNumber(const ast::Expr &expr) {
  FormulaRef formula = makeFormula(FK::Number, {}, expr.place);
  auto written = std::const_pointer_cast<Formula>(formula);
  written->number = expr.number;
  if (expr.text.find('.') != std::string::npos && expr.number == std::floor(expr.number))
    written->name = expr.text;
  return Item::of(formula);
}

Item ModelChecker::checkName(const ast::Expr &expr) {
  if (expr.text == "full")
    return Item::of(makeFormula(FK::Full, {}, expr.place));
  if (expr.text == "position" || expr.text == "document")
    return emitValue(expr.text == "position" ? NodeKind::Position : NodeKind::Document, expr.place, {},
                     {TensorType::Element::Int, {"batch", "pos"}});
  Found found = lookUp(expr.text);
  if (!found.symbol) {
    reportUnknown(expr.text, expr.place);
    return Item::poison();
  }
  if (found.symbol->kind == Symbol::Kind::Def) {
    error(Code::W0206, expr.place,
          absl::StrCat(expr.text, " is a def, expected its arguments in parentheses"))
        .note(found.symbol->place, absl::StrCat(expr.text, " is declared here"));
    return Item::poison();
  }
  const Item &item = found.symbol->item;
  indexUse(wordIn(expr.place, expr.text), expr.text, *found.symbol, item);
  if (item.isFormula() && item.formula->kind == FK::Name)
    return Item::of(makeFormula(FK::Name, {}, expr.place, item.formula->name));
  return item;
}

Item ModelChecker::checkChain(const ast::Expr &expr) {
  const std::string &op = expr.operators[0].text;
  if (op == "is" || op == "is not")
    return checkEquality(expr);
  if (isTest(op) || isLogic(op))
    return checkLogic(expr);
  Item result = checkExpr(*expr.items[0]);
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    Item right = checkExpr(*expr.items[i + 1]);
    const Place whole = spanOf(expr.place, expr.items[i + 1]->place);
    result = checkBinary(expr.operators[i].text, result, right, whole);
    indexTerm(NameKind::Operator, expr.operators[i].place, expr.operators[i].text, result, whole);
  }
  return result;
}

Item ModelChecker::checkBinary(const std::string &op, Item a, Item b, const Place &place) {
  if (a.isPoison() || b.isPoison())
    return Item::poison();
  if (a.isFormula() && b.isFormula() && op != "@") {
    FormulaRef formula = makeFormula(formulaKind(op), {a.formula, b.formula}, place);
    return formula ? Item::of(formula) : Item::poison();
  }
  if (op == "mod") {
    error(Code::W0316, place, "`mod` works on numbers known before anything runs, found a tensor");
    return Item::poison();
  }
  if (op == "@" && (a.isFormula() || b.isFormula())) {
    error(Code::W0326, place,
          absl::StrCat("expected tensors on both sides of `@`, found ",
                       print(a.isFormula() ? *a.formula : *b.formula)))
        .advise("`*` multiplies by a number");
    return Item::poison();
  }
  std::optional<ValueId> left = tensorOf(a, place, "arithmetic");
  std::optional<ValueId> right = left ? tensorOf(b, place, "arithmetic") : std::nullopt;
  if (!right)
    return Item::poison();
  return op == "@" ? contract(*left, *right, place) : alignedBinary(op, *left, *right, place);
}

Item ModelChecker::checkPower(const ast::Expr &expr) {
  Item base = checkExpr(*expr.items[0]);
  Item exponent = checkExpr(*expr.items[1]);
  return checkBinary("**", base, exponent, expr.place);
}

Item ModelChecker::checkNegation(const ast::Expr &expr) {
  Item item = checkExpr(*expr.items[0]);
  if (item.isFormula()) {
    const Formula &operand = *item.formula;
    FormulaRef formula;
    if (operand.kind == FK::Number && operand.name.empty() && operand.number > 0) {
      formula = makeFormula(FK::Number, {}, expr.place);
      std::const_pointer_cast<Formula>(formula)->number = -operand.number;
    } else {
      formula = makeFormula(FK::Neg, {item.formula}, expr.place);
    }
    return formula ? Item::of(formula) : Item::poison();
  }
  if (!item.isTensor() || !needsFloat(item.value, expr.place, "arithmetic"))
    return Item::poison();
  return emitValue(NodeKind::Unary, expr.place, {item.value}, typeOf(item.value), "neg");
}

/// <, <=, >, >=, and, or, not: formulas only.
Item ModelChecker::checkLogic(const ast::Expr &expr) {
  FormulaRef result;
  for (size_t i = 0; i < expr.items.size(); ++i) {
    FormulaRef side = formulaOf(*expr.items[i], "a test");
    if (!side)
      return Item::poison();
    if (expr.kind == ast::Expr::Kind::Not)
      result = makeFormula(FK::Not, {side}, expr.place);
    else
      result =
          i == 0 ? side : makeFormula(formulaKind(expr.operators[i - 1].text), {result, side}, expr.place);
    if (!result)
      return Item::poison();
  }
  return Item::of(result);
}

/// `is` and `is not`: a name that is no name here is a word, which must be a
/// choice of the setting on the other side.
Item ModelChecker::checkEquality(const ast::Expr &expr) {
  std::vector<FormulaRef> sides;
  auto isWord = [&](const ast::Expr &side) {
    return side.kind == ast::Expr::Kind::Name && side.text != "full" && !lookUp(side.text).symbol;
  };
  for (size_t i = 0; i < 2; ++i) {
    const ast::Expr &side = *expr.items[i], &other = *expr.items[1 - i];
    if (!isWord(side)) {
      sides.push_back(formulaOf(side, "a test"));
    } else {
      auto setting =
          std::find_if(model.settings.begin(), model.settings.end(), [&](const Setting &candidate) {
            return candidate.name == other.text && !candidate.words.empty();
          });
      if (other.kind != ast::Expr::Kind::Name || setting == model.settings.end()) {
        reportUnknown(side.text, side.place);
        return Item::poison();
      }
      if (std::find(setting->words.begin(), setting->words.end(), side.text) == setting->words.end()) {
        std::string close = nearest(side.text, setting->words);
        error(Code::W0211, side.place,
              absl::StrCat(side.text, " is no choice of ", setting->name, ", expected ",
                           absl::StrJoin(setting->words, ", ")))
            .note(setting->place, absl::StrCat(setting->name, " is declared here"))
            .advise(close.empty() ? "" : absl::StrCat("did you mean ", close, "?"));
        return Item::poison();
      }
      sides.push_back(makeFormula(FK::Name, {}, side.place, side.text));
      indexChoice(side, setting->name);
    }
    if (!sides.back())
      return Item::poison();
  }
  FormulaRef formula = makeFormula(formulaKind(expr.operators[0].text), std::move(sides), expr.place);
  return formula ? Item::of(formula) : Item::poison();
}

Item ModelChecker::checkBranch(const ast::Expr &expr) {
  if (!claimPath({expr.text, expr.place}, "branch"))
    return Item::poison();
  ast::Name name{expr.text, expr.place}; // the place runs from `branch` to the end of the name
  const auto length = static_cast<int32_t>(name.text.size());
  name.place = sources.placeAt(expr.place.file, expr.place.offset + expr.place.length - length, length);
  indexStep(NameKind::Branch, name, spanOf(expr.place, expr.body->place));
  Scope inner{Scope::Kind::Branch, expr.text, scope, {}, {}};
  PathNames innerPaths{{}, stepPath(expr.text)};
  Block body;
  Block *outerBlock = block;
  PathNames *outerPaths = paths;
  block = &body;
  paths = &innerPaths;
  std::optional<ValueId> value;
  inScope(inner, [&] {
    Item item = checkBlock(*expr.body, true);
    if (item.kind == Item::Kind::Nothing)
      error(Code::W0317, expr.place, absl::StrCat("branch ", expr.text, " has no value"))
          .advise("its last statement must be an expression: the value of the branch");
    else if (!item.isPoison())
      value = tensorOf(item, expr.body->statements.back().place, "the value of a branch");
  });
  block = outerBlock;
  paths = outerPaths;
  if (!value || !axesKnown(*value, absl::StrCat("the value of branch ", expr.text)))
    return Item::poison();
  body.yields = {*value};
  Item result = emitValue(NodeKind::Branch, expr.place, {}, typeOf(*value), expr.text);
  block->nodes.back().blocks.push_back(std::move(body));
  return result;
}

} // namespace weft::lang
