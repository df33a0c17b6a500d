//===- CheckIf.cpp - Choices made now, and choices that stay --------------===//
//
// A test on settings is decided here: the chosen side is pasted as if the
// other had not been written. A test that asks for a layer's index, or for
// what decides how often a layer repeats, stays in the model.
//
//===----------------------------------------------------------------------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {

Item ModelChecker::checkIf(const ast::Expr &expr, bool wantsValue, size_t arm) {
  DepthGuard guard(*this, expr.place);
  if (!guard.ok)
    return Item::poison();
  for (; arm < expr.arms.size(); ++arm) {
    const ast::Arm &side = expr.arms[arm];
    if (!side.test)
      return checkBlock(*side.body, wantsValue);
    FormulaRef test = formulaOf(*side.test, "a test");
    if (!test)
      return Item::poison();
    if (isSymbolic(*test))
      return checkSymbolicIf(expr, wantsValue, arm, test);
    std::optional<Value> value = evaluateNow(*test, side.test->place);
    if (!value)
      return Item::poison();
    if (value->kind != Value::Kind::Truth) {
      error(Code::W0325, side.test->place,
            absl::StrCat("expected a test, found ", print(*test), ", which is ", value->text()))
          .advise("compare it: `... > 0`, `... is on`");
      return Item::poison();
    }
    if (value->number != 0)
      return checkBlock(*side.body, wantsValue);
  }
  return Item::nothing();
}

/// Checks one side into a block of its own and takes its assignments back.
ModelChecker::Side ModelChecker::checkSide(const std::function<Item()> &body) {
  Side side;
  Scope inner{Scope::Kind::Side, "", scope, {}, {}};
  Block *outer = block;
  block = &side.block;
  inScope(inner, [&] { side.item = body(); });
  block = outer;
  for (const auto &[symbol, before] : inner.before) {
    side.after[symbol] = symbol->item;
    symbol->item = before;
  }
  side.before = std::move(inner.before);
  return side;
}

Item ModelChecker::checkSymbolicIf(const ast::Expr &expr, bool wantsValue, size_t arm, FormulaRef test) {
  auto outerNames = paths->names;
  Side first = checkSide([&] { return checkBlock(*expr.arms[arm].body, wantsValue); });
  std::swap(outerNames, paths->names);
  Side second = checkSide([&] { return checkIf(expr, wantsValue, arm + 1); });
  // Only one side will be there: both may declare the same parameter.
  paths->names.insert(outerNames.begin(), outerNames.end());
  return joinSides(expr, wantsValue, std::move(test), std::move(first), std::move(second));
}

/// The node of an `if` that stays: its results are what either side assigned,
/// and the value when one is wanted.
Item ModelChecker::joinSides(const ast::Expr &expr, bool wantsValue, FormulaRef test, Side first,
                             Side second) {
  if (wantsValue && (first.item.isPoison() || second.item.isPoison()))
    return Item::poison();
  if (wantsValue && (first.item.kind == Item::Kind::Nothing || second.item.kind == Item::Kind::Nothing))
    return Item::nothing();
  bool empty = first.block.nodes.empty() && second.block.nodes.empty();
  if (wantsValue && empty && first.item.isFormula() && second.item.isFormula()) {
    FormulaRef select =
        makeFormula(Formula::Kind::Select, {test, first.item.formula, second.item.formula}, expr.place);
    return select ? Item::of(select) : Item::poison();
  }
  Node node;
  node.kind = NodeKind::If;
  node.place = expr.place;
  node.formulas["test"] = std::move(test);
  Block *outer = block;
  auto yield = [&](Side &side, const Item &item) {
    block = &side.block;
    std::optional<ValueId> value = tensorOf(item, expr.place, "a side of this if");
    block = outer;
    if (value && !axesKnown(*value, "the value of a side of this if"))
      value.reset();
    if (value)
      side.block.yields.push_back(*value);
    return value;
  };
  auto join = [&](const Item &a, const Item &b, const std::string &what) {
    std::optional<ValueId> left = a.isPoison() ? std::nullopt : yield(first, a);
    std::optional<ValueId> right = b.isPoison() || !left ? std::nullopt : yield(second, b);
    if (left && right && typeOf(*left) == typeOf(*right)) {
      node.results.push_back(newValue(typeOf(*left)));
      valuePlaces[static_cast<size_t>(node.results.back())] = expr.place;
      model.valueNames[static_cast<size_t>(node.results.back())] = what;
      return Item::of(node.results.back());
    }
    if (left && right)
      error(Code::W0311, expr.place,
            absl::StrCat(what.empty() ? "the value" : what, " is ", shapeText(typeOf(*left)),
                         " on one side of this if and ", shapeText(typeOf(*right)), " on the other"))
          .advise("both sides must give the same axes in the same order");
    // The yields of both sides stay of one length.
    if (left && !right)
      first.block.yields.pop_back();
    if (left && right) {
      first.block.yields.pop_back();
      second.block.yields.pop_back();
    }
    return Item::poison();
  };
  std::map<Symbol *, Item> changed = first.before;
  changed.insert(second.before.begin(), second.before.end());
  std::vector<std::pair<Found, Item>> assigned;
  // By scope and name, not by address: results have one order.
  for (Scope *at = scope; at; at = at->parent) {
    for (auto &[name, symbol] : at->symbols) {
      auto before = changed.find(&symbol);
      if (before == changed.end())
        continue;
      Item left = first.after.contains(&symbol) ? first.after.at(&symbol) : before->second;
      Item right = second.after.contains(&symbol) ? second.after.at(&symbol) : before->second;
      bool same = left.kind == right.kind && left.value == right.value && left.formula == right.formula;
      assigned.emplace_back(Found{&symbol, at, nullptr}, same ? left : join(left, right, name));
    }
  }
  Item value = wantsValue ? join(first.item, second.item, "") : Item::nothing();
  node.blocks.push_back(std::move(first.block));
  node.blocks.push_back(std::move(second.block));
  bool needed = !node.results.empty() || !node.blocks[0].nodes.empty() || !node.blocks[1].nodes.empty();
  if (needed)
    block->nodes.push_back(std::move(node));
  for (const auto &[found, item] : assigned)
    setSymbol(found, item);
  return value;
}

} // namespace weft::lang
