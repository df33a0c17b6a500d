//===- CheckLayers.cpp - Layers and the values they carry -----------------===//

#include "frontend/CheckerImpl.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace weft::lang {
namespace {

void replaceValue(Block &block, ValueId from, ValueId to) {
  for (Node &node : block.nodes) {
    std::replace(node.operands.begin(), node.operands.end(), from, to);
    for (Block &inner : node.blocks)
      replaceValue(inner, from, to);
  }
  std::replace(block.yields.begin(), block.yields.end(), from, to);
}

/// Names that a block assigns, in branches and defs excepted: those assign
/// their own.
void collectAssigned(const ast::Block &block, std::vector<ast::Name> &names);

void collectAssigned(const ast::Expr &expr, std::vector<ast::Name> &names) {
  for (const ast::Expr *item : expr.items)
    collectAssigned(*item, names);
  for (const ast::Arm &arm : expr.arms)
    collectAssigned(*arm.body, names);
}

void collectAssigned(const ast::Block &block, std::vector<ast::Name> &names) {
  for (const ast::Stmt &statement : block.statements) {
    if (statement.kind == ast::Stmt::Kind::Assign)
      names.push_back(statement.names[0]);
    if (statement.kind == ast::Stmt::Kind::Def)
      continue;
    if (statement.expr)
      collectAssigned(*statement.expr, names);
    if (statement.body)
      collectAssigned(*statement.body, names);
  }
}

} // namespace

std::vector<ast::Name> ModelChecker::assignedIn(const ast::Block &source) const {
  std::vector<ast::Name> names;
  collectAssigned(source, names);
  std::sort(names.begin(), names.end(),
            [](const ast::Name &a, const ast::Name &b) { return a.text < b.text; });
  names.erase(std::unique(names.begin(), names.end(),
                          [](const ast::Name &a, const ast::Name &b) { return a.text == b.text; }),
              names.end());
  return names;
}

void ModelChecker::checkLayer(const ast::Stmt &statement) {
  const ast::Name &name = statement.names[0];
  claimPath(name, "layer");
  indexStep(NameKind::Layer, name, statement.place);
  FormulaRef count = formulaOf(*statement.expr, "the number of repeats");
  if (!statement.index.text.empty() && activeLets.contains(statement.index.text) &&
      !lookUp(statement.index.text).symbol)
    error(
        Code::W0202, statement.index.place,
        absl::StrCat("the index ", statement.index.text, " would have two meanings where this def is pasted"))
        .advise("choose another name");
  Node node;
  node.kind = NodeKind::Layer;
  node.name = name.text;
  node.index = statement.index.text;
  node.place = name.place;
  node.formulas["count"] = count ? count : Formula::ofNumber(1);
  node.blocks.emplace_back();
  Block body;
  std::vector<Found> carried;
  std::vector<Item> outer;
  for (const ast::Name &assigned : assignedIn(*statement.body)) {
    Found found = lookUp(assigned.text);
    bool variable = found.symbol && (found.symbol->kind == Symbol::Kind::Value ||
                                     found.symbol->kind == Symbol::Kind::Argument);
    if (!variable || found.crossed || found.symbol->item.isPoison())
      continue;
    std::optional<ValueId> value = tensorOf(found.symbol->item, assigned.place, "a carried value");
    if (!value)
      continue;
    ValueId argument = newValue(typeOf(*value));
    model.valueNames[static_cast<size_t>(argument)] = assigned.text;
    valuePlaces[static_cast<size_t>(argument)] = valuePlaces[static_cast<size_t>(*value)];
    body.arguments.push_back(argument);
    outer.push_back(Item::of(*value));
    setSymbol(found, Item::of(argument));
    carried.push_back(found);
  }
  Scope inner{Scope::Kind::Layer, name.text, scope, {}, {}};
  PathNames innerPaths{{}, stepPath(name.text)};
  Block *outerBlock = block;
  PathNames *outerPaths = paths;
  block = &body;
  paths = &innerPaths;
  inScope(inner, [&] {
    if (!statement.index.text.empty()) {
      FormulaRef index = makeFormula(Formula::Kind::Name, {}, statement.index.place, statement.index.text);
      declare(statement.index, {Symbol::Kind::Index, statement.index.place, Item::of(index), nullptr});
      symbolic.insert(statement.index.text);
      statics.erase(statement.index.text);
      activeLets[statement.index.text] = index;
      letPlaces[statement.index.text] = statement.index.place;
      indexCount(statement, count);
    }
    checkBlock(*statement.body, false);
  });
  block = outerBlock;
  paths = outerPaths;
  node.blocks[0] = std::move(body);
  finishLayer(node, carried, outer);
}

/// Sets what the layer yields; what it only might have assigned is not carried.
void ModelChecker::finishLayer(Node &node, const std::vector<Found> &carried,
                               const std::vector<Item> &outer) {
  Block body = std::move(node.blocks[0]);
  std::vector<ValueId> arguments = std::move(body.arguments);
  std::vector<Item> next = outer;
  std::map<ValueId, ValueId> replaced;
  body.arguments.clear();
  for (size_t i = 0; i < carried.size(); ++i) {
    const Item &yielded = carried[i].symbol->item;
    if (yielded.isPoison() || yielded.value == arguments[i]) {
      replaceValue(body, arguments[i], outer[i].value);
      replaced[arguments[i]] = outer[i].value;
    }
    if (yielded.isPoison())
      next[i] = Item::poison();
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    if (replaced.contains(arguments[i]))
      continue;
    ValueId yielded = carried[i].symbol->item.value;
    const TensorType type = typeOf(arguments[i]);
    const std::string name = model.valueNames[static_cast<size_t>(arguments[i])];
    if (typeOf(yielded) != type) {
      error(Code::W0310, valuePlaces[static_cast<size_t>(yielded)],
            absl::StrCat(name, " enters layer ", node.name, " as ", shapeText(type), " and leaves it as ",
                         shapeText(typeOf(yielded))))
          .note(valuePlaces[static_cast<size_t>(arguments[i])], absl::StrCat(name, " comes from here"))
          .advise("a value that a layer carries along keeps its axes");
      next[i] = Item::poison();
      continue;
    }
    node.operands.push_back(outer[i].value);
    body.arguments.push_back(arguments[i]);
    body.yields.push_back(replaced.contains(yielded) ? replaced.at(yielded) : yielded);
    ValueId result = newValue(type);
    model.valueNames[static_cast<size_t>(result)] = name;
    valuePlaces[static_cast<size_t>(result)] = valuePlaces[static_cast<size_t>(yielded)];
    node.results.push_back(result);
    next[i] = Item::of(result);
  }
  for (size_t i = 0; i < carried.size(); ++i)
    setSymbol(carried[i], next[i]);
  node.blocks[0] = std::move(body);
  block->nodes.push_back(std::move(node));
}

} // namespace weft::lang
