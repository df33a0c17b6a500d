//===- Unroll.h - A model as if its layers were written out -----*- C++ -*-===//
#pragma once

#include "frontend/Model.h"

#include <string>

namespace weft::lang {

/// Visits every node of `model` once for each repeat of the layers around it,
/// in order, with the names that the node sees. Of an `if` only the side that
/// holds is visited.
class UnrolledWalk {
public:
  explicit UnrolledWalk(const Model &model) : model(model), names(model.bindings()) {}
  virtual ~UnrolledWalk() = default;

  void walk() { walkBlock(model.body); }

protected:
  /// Every node, layers and ifs before what they hold; false stops the walk.
  virtual bool visit(const Node &node) = 0;
  /// A formula of `node` had no usable value; the walk goes on behind the node.
  virtual void failed(const Node &node, const FormulaError &error) = 0;

  /// The value of `formula` here; calls `failed` when there is none.
  std::optional<Value> valueOf(const Node &node, const Formula &formula);
  /// `block.3.attn.` for what is inside, empty outside.
  std::string pathOf(const std::string &name) const { return path + name; }

  const Model &model;
  Bindings names;
  std::string path;   // with a dot at its end
  int layerDepth = 0; // layers around the node
  int64_t layers = 0; // repeats so far

private:
  bool walkBlock(const Block &block);
  bool walkNode(const Node &node);
  bool walkLayer(const Node &node);
};

} // namespace weft::lang
