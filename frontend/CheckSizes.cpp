//===- CheckSizes.cpp - Every formula of every layer, once ----------------===//

#include "frontend/CheckerImpl.h"
#include "frontend/Unroll.h"

#include "absl/strings/str_cat.h"

#include <cmath>

namespace weft::lang {
namespace {

/// Elements of one parameter: beyond it offsets would not fit.
constexpr double kElementLimit = 1e13;

class SizeWalk : public UnrolledWalk {
public:
  SizeWalk(const Model &model, const std::function<std::string(const Formula &)> &provenance,
           const SourceFiles &sources, Diagnostics &diagnostics)
      : UnrolledWalk(model), provenance(provenance), sources(sources), diagnostics(diagnostics) {}

protected:
  bool visit(const Node &node) override {
    if (++nodes > kModelNodeLimit || layers > kLayerLimit) {
      bool tooManyLayers = layers > kLayerLimit;
      diagnostics
          .error(Code::W0324, node.place,
                 absl::StrCat("more than ", tooManyLayers ? kLayerLimit : kModelNodeLimit,
                              tooManyLayers ? " layers" : " operations", " once layers are written out"))
          .advise("lower the numbers of repeats");
      return false;
    }
    switch (node.kind) {
    case NodeKind::Param:
      checkParam(node);
      break;
    case NodeKind::Layer:
      checkLayer(node);
      break;
    case NodeKind::Constant:
      checkNumber(node, "value", -HUGE_VAL, HUGE_VAL);
      break;
    case NodeKind::LayerNorm:
    case NodeKind::RmsNorm:
      checkNumber(node, "eps", 0, HUGE_VAL);
      break;
    case NodeKind::Rope:
      checkRope(node);
      break;
    case NodeKind::Attend:
      checkWindow(node);
      checkNumber(node, "scale", -HUGE_VAL, HUGE_VAL);
      break;
    case NodeKind::Dropout:
      checkNumber(node, "rate", 0, std::nextafter(1.0, 0.0));
      break;
    case NodeKind::CrossEntropy:
      checkNumber(node, "z", 0, HUGE_VAL);
      checkNumber(node, "smoothing", 0, std::nextafter(1.0, 0.0));
      break;
    default:
      break;
    }
    return true;
  }

  void failed(const Node &node, const FormulaError &error) override {
    const Formula &at = *error.at;
    Place where = at.offset >= 0 ? sources.placeAt(node.place.file, at.offset, at.length) : node.place;
    report(Code::W0318, where, error.message, at);
  }

private:
  /// One error a code and place, at the first layer that has it.
  void report(Code code, const Place &place, const std::string &message, const Formula &at) {
    if (!reported.emplace(code, place.offset).second)
      return;
    std::string inner = path.empty() ? "" : absl::StrCat(", in ", path.substr(0, path.size() - 1));
    diagnostics.error(code, place, message + provenance(at) + inner);
  }

  Place placeOf(const Node &node, const Formula &formula) const {
    return formula.offset >= 0 ? sources.placeAt(node.place.file, formula.offset, formula.length)
                               : node.place;
  }

  std::optional<double> sizeOf(const Node &node, const std::string &axis) {
    auto size = names.find(axis);
    if (size == names.end())
      return std::nullopt; // its own formula was refused
    const Value &value = size->second;
    if (value.isWhole() && value.number >= 1)
      return value.number;
    report(Code::W0319, node.place,
           absl::StrCat("the axis ", axis, " of ", node.name, " has size ", value.text(),
                        ", expected a whole number of at least 1"),
           *Formula::ofName(axis));
    return std::nullopt;
  }

  void checkParam(const Node &node) {
    double elements = 1;
    for (const std::string &axis : model.values[static_cast<size_t>(node.results[0])].axes)
      elements *= sizeOf(node, axis).value_or(1);
    if (elements > kElementLimit)
      report(Code::W0324, node.place,
             absl::StrCat("the parameter ", node.name, " has ", elements, " elements"),
             *Formula::ofNumber(0));
    std::optional<double> a = initNumber(node, node.init.a), b = initNumber(node, node.init.b);
    bool spread = node.init.kind == Init::Kind::Normal || node.init.kind == Init::Kind::Truncated ||
                  (node.init.kind == Init::Kind::Uniform && !node.init.b);
    if (spread && a && *a < 0)
      report(Code::W0320, placeOf(node, *node.init.a),
             absl::StrCat(node.name, " starts with a spread of ", *a, ", expected 0 or more"), *node.init.a);
    if (a && b && *a > *b)
      report(Code::W0320, placeOf(node, *node.init.a),
             absl::StrCat(node.name, " starts between ", *a, " and ", *b, ", expected the lower bound first"),
             *node.init.a);
    bool matrix = model.values[static_cast<size_t>(node.results[0])].axes.size() >= 2;
    if (node.init.kind == Init::Kind::Orthogonal && !matrix)
      report(Code::W0320, node.place,
             absl::StrCat(node.name, " starts orthogonal, expected at least two axes"),
             *Formula::ofNumber(0));
  }

  std::optional<double> initNumber(const Node &node, const FormulaRef &formula) {
    std::optional<Value> value = formula ? valueOf(node, *formula) : std::nullopt;
    if (!value)
      return std::nullopt;
    if (value->kind == Value::Kind::Number)
      return value->number;
    report(Code::W0320, placeOf(node, *formula),
           absl::StrCat("expected a number to start ", node.name, " with, found ", value->text()), *formula);
    return std::nullopt;
  }

  void checkLayer(const Node &node) {
    const Formula &formula = *node.formulas.at("count");
    FormulaError error;
    std::optional<Value> count = evaluate(formula, names, &error);
    if (!count)
      return; // the walk reports it
    if (!count->isWhole() || count->number < 0)
      report(Code::W0319, placeOf(node, formula),
             absl::StrCat("layer ", node.name, " repeats ", count->text(),
                          " times, expected a whole number of at least 0"),
             formula);
  }

  /// The number `name` of a node, which must lie between `least` and `most`.
  std::optional<double> checkNumber(const Node &node, const std::string &name, double least, double most) {
    const Formula &formula = *node.formulas.at(name);
    std::optional<Value> value = valueOf(node, formula);
    if (!value)
      return std::nullopt;
    bool isNumber = value->kind == Value::Kind::Number;
    if (isNumber && value->number >= least && value->number <= most)
      return value->number;
    std::string range =
        most == HUGE_VAL ? absl::StrCat("at least ", least) : absl::StrCat("from ", least, " to below 1");
    report(Code::W0323, placeOf(node, formula),
           absl::StrCat(name, " is ", value->text(), ", expected a number", least == -HUGE_VAL ? "" : " ",
                        least == -HUGE_VAL ? "" : range),
           formula);
    return std::nullopt;
  }

  void checkRope(const Node &node) {
    checkNumber(node, "base", 1, HUGE_VAL);
    const std::string &axis = model.values[static_cast<size_t>(node.results[0])].axes.back();
    std::optional<double> size = sizeOf(node, axis);
    if (size && std::fmod(*size, 2) != 0)
      report(Code::W0322, node.place,
             absl::StrCat("rope pairs the halves of its last axis, found ", axis, " = ", *size,
                          ", expected an even size"),
             *Formula::ofName(axis));
  }

  void checkWindow(const Node &node) {
    const Formula &formula = *node.formulas.at("window");
    std::optional<Value> value = valueOf(node, formula);
    if (!value || value->kind == Value::Kind::Full || (value->isWhole() && value->number >= 1))
      return;
    report(Code::W0321, placeOf(node, formula),
           absl::StrCat("the window is ", value->text(),
                        ", expected full or a whole number of at least 1: it counts the query itself"),
           formula);
  }

  const std::function<std::string(const Formula &)> &provenance;
  const SourceFiles &sources;
  Diagnostics &diagnostics;
  std::set<std::pair<Code, int32_t>> reported;
  int64_t nodes = 0;
};

} // namespace

void checkSizes(const Model &model, const std::function<std::string(const Formula &)> &provenance,
                const SourceFiles &sources, Diagnostics &diagnostics) {
  SizeWalk(model, provenance, sources, diagnostics).walk();
}

} // namespace weft::lang
