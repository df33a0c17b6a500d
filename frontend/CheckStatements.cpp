//===- CheckStatements.cpp - Statements of a model ------------------------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {

Item ModelChecker::checkBlock(const ast::Block &source, bool wantsValue) {
  DepthGuard guard(*this, source.place);
  if (!guard.ok)
    return Item::poison();
  statements.push_back({source.place, source.place});
  struct Leave {
    ModelChecker &checker;
    ~Leave() { checker.statements.pop_back(); }
  } leave{*this};
  for (size_t i = 0; i < source.statements.size(); ++i) {
    const ast::Stmt &statement = source.statements[i];
    statements.back().place = statement.place;
    bool isValue = wantsValue && i + 1 == source.statements.size();
    if (statement.kind == ast::Stmt::Kind::If) {
      Item item = checkIf(*statement.expr, isValue);
      if (isValue)
        return item;
    } else if (statement.kind == ast::Stmt::Kind::Value) {
      Item item = checkExpr(*statement.expr);
      if (isValue)
        return item;
      error(Code::W0107, statement.place, "this value is used by nobody")
          .advise(wantsValue ? "the value of a block is its last statement; give other values names"
                             : "give it a name: `NAME = ...`, or `output NAME = ...`");
    } else {
      checkStatement(statement);
    }
  }
  return Item::nothing();
}

void ModelChecker::checkStatement(const ast::Stmt &statement) {
  switch (statement.kind) {
  case ast::Stmt::Kind::Input:
    return checkInput(statement);
  case ast::Stmt::Kind::Param:
    return checkParam(statement);
  case ast::Stmt::Kind::Let:
    return checkLet(statement);
  case ast::Stmt::Kind::Def:
    declare(statement.names[0], {Symbol::Kind::Def, statement.names[0].place, Item::nothing(), &statement});
    return;
  case ast::Stmt::Kind::Layer:
    return checkLayer(statement);
  case ast::Stmt::Kind::Assign:
    return checkAssign(statement);
  case ast::Stmt::Kind::Output:
    return checkOutput(statement);
  case ast::Stmt::Kind::Loss:
    return checkLoss(statement);
  case ast::Stmt::Kind::If:
  case ast::Stmt::Kind::Value:
    return; // checkBlock has them: they can be a block's value
  }
}

bool ModelChecker::onlyOutermost(const ast::Stmt &statement, std::string_view what) {
  if (scope->kind == Scope::Kind::Model && block == &model.body)
    return true;
  error(Code::W0107, statement.place,
        absl::StrCat(std::string(what), " must stand in the model's outermost block"));
  return false;
}

void ModelChecker::checkInput(const ast::Stmt &statement) {
  if (!onlyOutermost(statement, "an input"))
    return;
  TensorType type;
  type.element = statement.element == "int" ? TensorType::Element::Int : TensorType::Element::Float;
  for (const ast::Name &axis : statement.axes)
    type.axes.push_back(axis.text);
  if (type.axes != std::vector<std::string>{"batch", "pos"}) {
    error(Code::W0307, statement.axes.empty() ? statement.place : statement.axes[0].place,
          absl::StrCat("expected the axes [batch, pos], found ", shapeText(type)));
    type.axes = {"batch", "pos"};
  }
  for (const ast::Name &name : statement.names) {
    Item item = emitValue(NodeKind::Input, name.place, {}, type, name.text);
    model.valueNames[static_cast<size_t>(item.value)] = name.text;
    declare(name, {Symbol::Kind::Input, name.place, item, nullptr});
  }
}

/// The size that an axis of a parameter is named after.
std::optional<std::string> ModelChecker::axisName(const ast::Name &axis) {
  Found found = lookUp(axis.text);
  if (!found.symbol) {
    if (isData(axis.text))
      error(Code::W0308, axis.place,
            absl::StrCat(axis.text, " is an axis of the data, a parameter cannot have it"));
    else
      reportUnknown(axis.text, axis.place);
    return std::nullopt;
  }
  const Item &item = found.symbol->item;
  indexUse(axis.place, axis.text, *found.symbol, item);
  if (item.isPoison())
    return std::nullopt;
  auto known = item.isFormula() ? statics.find(item.formula->name) : statics.end();
  bool isWord = known != statics.end() && known->second.kind == Value::Kind::Word;
  if (item.isFormula() && item.formula->kind == Formula::Kind::Name && !isWord)
    return item.formula->name;
  Diagnostic &entry =
      error(Code::W0308, axis.place,
            item.isFormula() && !isWord
                ? absl::StrCat(axis.text, " stands for ", print(*item.formula), " here, expected a name")
                : absl::StrCat(axis.text, " is no size, expected a setting or a let"));
  entry.note(found.symbol->place, absl::StrCat(axis.text, " is declared here"));
  if (item.isFormula() && !isWord)
    entry.advise(absl::StrCat("name the size before the call: `let NAME = ", print(*item.formula), "`"));
  return std::nullopt;
}

bool ModelChecker::checkAxes(const ast::Stmt &statement, TensorType &type) {
  bool ok = true;
  for (const ast::Name &axis : statement.axes) {
    std::optional<std::string> name = axisName(axis);
    ok = ok && name.has_value();
    if (!name)
      continue;
    if (std::find(type.axes.begin(), type.axes.end(), *name) != type.axes.end()) {
      error(Code::W0305, axis.place, absl::StrCat("the axis ", *name, " stands twice in this parameter"))
          .advise(absl::StrCat("give the second one its own name: `let ", *name, "2 = ", *name, "`"));
      ok = false;
    }
    type.axes.push_back(*name);
  }
  return ok;
}

/// `0`, `1 - base`, `normal(std)`, `uniform(bound)`, `uniform(low, high)`,
/// `truncated(std)`, `orthogonal(gain)`, `orthogonal()`.
std::optional<Init> ModelChecker::checkInit(const ast::Expr &expr) {
  Init init;
  static const std::map<std::string, Init::Kind, std::less<>> kinds = {
      {"normal", Init::Kind::Normal},
      {"uniform", Init::Kind::Uniform},
      {"truncated", Init::Kind::Truncated},
      {"orthogonal", Init::Kind::Orthogonal}};
  auto kind = expr.kind == ast::Expr::Kind::Call ? kinds.find(expr.text) : kinds.end();
  if (kind == kinds.end()) {
    init.a = formulaOf(expr, "an initialiser");
    return init.a ? std::optional(init) : std::nullopt;
  }
  init.kind = kind->second;
  size_t least = init.kind == Init::Kind::Orthogonal ? 0 : 1, most = init.kind == Init::Kind::Uniform ? 2 : 1;
  if (expr.items.size() < least || expr.items.size() > most) {
    error(Code::W0206, expr.place,
          absl::StrCat(expr.text, " takes ",
                       least == most ? absl::StrCat(most) : absl::StrCat(least, " or ", most),
                       most == 1 ? " number" : " numbers", ", found ", expr.items.size()));
    return std::nullopt;
  }
  init.a = expr.items.empty() ? Formula::ofNumber(1) : formulaOf(*expr.items[0], "an initialiser");
  if (expr.items.size() == 2)
    init.b = formulaOf(*expr.items[1], "an initialiser");
  return init.a && (expr.items.size() < 2 || init.b) ? std::optional(init) : std::nullopt;
}

void ModelChecker::checkParam(const ast::Stmt &statement) {
  TensorType type;
  bool ok = checkAxes(statement, type);
  std::optional<Init> init = checkInit(*statement.expr);
  for (const ast::Name &name : statement.names) {
    bool claimed = claimPath(name, "parameter");
    indexStep(NameKind::Param, name, statement.place);
    Item item = Item::poison();
    if (ok && init && claimed) {
      item = emitValue(NodeKind::Param, name.place, {}, type, name.text);
      block->nodes.back().init = *init;
      model.valueNames[static_cast<size_t>(item.value)] = name.text;
    }
    if (claimed || !lookUp(name.text).symbol)
      declare(name, {Symbol::Kind::Param, name.place, item, nullptr});
  }
}

void ModelChecker::checkLet(const ast::Stmt &statement) {
  const ast::Name &name = statement.names[0];
  FormulaRef formula = formulaOf(*statement.expr, "a let");
  Item item = Item::poison();
  auto active = activeLets.find(name.text);
  if (lookUp(name.text).symbol) {
    declare(name, {Symbol::Kind::Let, name.place, item, nullptr}); // says what is in the way
    return;
  }
  if (formula && active != activeLets.end() && print(*active->second) != print(*formula)) {
    error(Code::W0202, name.place,
          absl::StrCat(name.text, " would have two values here: ", print(*formula), " and ",
                       print(*active->second)))
        .note(letPlaces.at(name.text), "the other one is declared here")
        .advise("choose another name, or wrap the call in a branch");
  } else if (formula) {
    bool depends = isSymbolic(*formula);
    std::optional<Value> value = depends ? std::nullopt : evaluateNow(*formula, name.place);
    if (value)
      statics[name.text] = *value;
    if (depends)
      symbolic.insert(name.text);
    if (depends || value)
      item = Item::of(makeFormula(Formula::Kind::Name, {}, name.place, name.text));
    if (active == activeLets.end() && !item.isPoison()) {
      if (block == &model.body)
        model.lets.emplace_back(name.text, formula);
      else {
        Node &node = emit(NodeKind::Let, name.place, {});
        node.name = name.text;
        node.formulas["value"] = formula;
      }
      activeLets[name.text] = formula;
      letPlaces[name.text] = name.place;
    }
  }
  declare(name, {Symbol::Kind::Let, name.place, item, nullptr});
}

void ModelChecker::checkAssign(const ast::Stmt &statement) {
  const ast::Name &name = statement.names[0];
  Item item = checkExpr(*statement.expr);
  if (statement.adds) {
    Found found = lookUp(name.text);
    if (!found.symbol) {
      reportUnknown(name.text, name.place);
      return;
    }
    item = found.symbol->kind == Symbol::Kind::Def
               ? Item::poison()
               : checkBinary("+", found.symbol->item, item, statement.place);
  }
  std::optional<ValueId> value =
      item.isPoison() ? std::nullopt : tensorOf(item, statement.expr->place, "an assignment");
  assign(name, value ? Item::of(*value) : Item::poison());
}

void ModelChecker::checkOutput(const ast::Stmt &statement) {
  produces = true;
  Item item = checkExpr(*statement.expr);
  const ast::Name &name = statement.names[0];
  ast::Name claimed = {absl::StrCat("output ", name.text), name.place};
  bool fresh = claimPath(claimed, "output");
  std::optional<ValueId> value = tensorOf(item, statement.expr->place, "an output");
  bool ok = value && needsFloat(*value, statement.expr->place, "an output");
  // An output is a name like any other: the loss is made of `logits`.
  if (fresh)
    declare(name, {Symbol::Kind::Value, name.place, ok ? Item::of(*value) : Item::poison(), nullptr});
  if (!fresh || !ok)
    return;
  model.valueNames[static_cast<size_t>(*value)] = name.text;
  emit(NodeKind::Output, name.place, {*value}).name = name.text;
}

void ModelChecker::checkLoss(const ast::Stmt &statement) {
  produces = true;
  if (!onlyOutermost(statement, "the loss"))
    return;
  if (hasLoss) {
    error(Code::W0209, statement.place, "a second loss")
        .note(lossPlace, "the first is here")
        .advise("add them up");
    return;
  }
  hasLoss = true;
  lossPlace = statement.place;
  Item item = checkExpr(*statement.expr);
  std::optional<ValueId> value =
      item.isPoison() ? std::nullopt : tensorOf(item, statement.expr->place, "the loss");
  if (!value)
    return;
  const TensorType &type = typeOf(*value);
  if (type.element != TensorType::Element::Float || !type.axes.empty())
    error(Code::W0314, statement.expr->place,
          absl::StrCat("expected a loss without axes, found ", shapeText(type)))
        .advise("cross_entropy(logits, targets) gives one number");
  else
    emit(NodeKind::Loss, statement.place, {*value});
}

} // namespace weft::lang
