//===- Unroll.cpp - A model as if its layers were written out -------------===//

#include "frontend/Unroll.h"

namespace weft::lang {

std::optional<Value> UnrolledWalk::valueOf(const Node &node, const Formula &formula) {
  FormulaError error;
  std::optional<Value> value = evaluate(formula, names, &error);
  if (!value)
    failed(node, error);
  return value;
}

bool UnrolledWalk::walkBlock(const Block &block) {
  Bindings outer;
  bool hasLet = false;
  for (const Node &node : block.nodes)
    hasLet = hasLet || node.kind == NodeKind::Let;
  if (hasLet)
    outer = names;
  bool goOn = true;
  for (size_t i = 0; goOn && i < block.nodes.size(); ++i)
    goOn = walkNode(block.nodes[i]);
  if (hasLet)
    names = std::move(outer);
  return goOn;
}

bool UnrolledWalk::walkNode(const Node &node) {
  if (!visit(node))
    return false;
  switch (node.kind) {
  case NodeKind::Let:
    if (std::optional<Value> value = valueOf(node, *node.formulas.at("value")))
      names[node.name] = *value;
    return true;
  case NodeKind::If: {
    std::optional<Value> test = valueOf(node, *node.formulas.at("test"));
    return !test || walkBlock(node.blocks[test->number != 0 ? 0 : 1]);
  }
  case NodeKind::Branch: {
    size_t length = path.size();
    if (!model.dropped.empty() && model.dropped.contains(path + node.name))
      return true;
    path += node.name + ".";
    bool goOn = walkBlock(node.blocks[0]);
    path.resize(length);
    return goOn;
  }
  case NodeKind::Layer:
    return walkLayer(node);
  default:
    return true;
  }
}

bool UnrolledWalk::walkLayer(const Node &node) {
  std::optional<Value> count = valueOf(node, *node.formulas.at("count"));
  if (!count || !count->isWhole())
    return true;
  size_t length = path.size();
  bool goOn = true;
  ++layerDepth;
  for (int64_t i = 0; goOn && i < static_cast<int64_t>(count->number); ++i) {
    ++layers;
    path += node.name + "." + std::to_string(i) + ".";
    if (!node.index.empty())
      names[node.index] = Value::ofNumber(static_cast<double>(i));
    goOn = walkBlock(node.blocks[0]);
    path.resize(length);
  }
  --layerDepth;
  if (!node.index.empty())
    names.erase(node.index);
  return goOn;
}

} // namespace weft::lang
