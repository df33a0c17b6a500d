//===- Model.cpp - Bindings and parameters of a checked model -------------===//

#include "frontend/Model.h"
#include "frontend/Unroll.h"

namespace weft::lang {
namespace {

class ParameterWalk : public UnrolledWalk {
public:
  using UnrolledWalk::UnrolledWalk;
  std::vector<ParameterInfo> parameters;

protected:
  bool visit(const Node &node) override {
    if (node.kind != NodeKind::Param)
      return true;
    ParameterInfo info;
    info.path = pathOf(node.name);
    info.axes = model.values[static_cast<size_t>(node.results[0])].axes;
    for (const std::string &axis : info.axes) {
      auto size = names.find(axis);
      info.shape.push_back(size == names.end() ? 0 : static_cast<int64_t>(size->second.number));
    }
    info.init = node.init.kind;
    std::optional<Value> a = node.init.a ? valueOf(node, *node.init.a) : std::nullopt;
    std::optional<Value> b = node.init.b ? valueOf(node, *node.init.b) : std::nullopt;
    info.initA = a ? a->number : 0;
    info.initB = b ? b->number : 0;
    if (info.init == Init::Kind::Uniform && !b) {
      info.initB = info.initA;
      info.initA = -info.initB;
    }
    info.inLayer = layerDepth > 0;
    info.place = node.place;
    parameters.push_back(std::move(info));
    return true;
  }
  // The checker has evaluated every formula of a model once.
  void failed(const Node &, const FormulaError &) override {}
};

} // namespace

Bindings Model::bindings() const {
  Bindings names;
  for (const Setting &setting : settings) {
    if (!setting.words.empty())
      names[setting.name] = Value::ofWord(setting.value->name);
    else if (std::optional<Value> value = evaluate(*setting.value, names))
      names[setting.name] = *value;
  }
  for (const auto &[name, formula] : lets)
    if (std::optional<Value> value = evaluate(*formula, names))
      names[name] = *value;
  return names;
}

std::vector<ParameterInfo> parametersOf(const Model &model) {
  ParameterWalk walk(model);
  walk.walk();
  return std::move(walk.parameters);
}

} // namespace weft::lang
