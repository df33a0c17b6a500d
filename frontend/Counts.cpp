//===- Counts.cpp - Parameters and FLOPs of parts of a model ---------------===//

#include "frontend/Counts.h"

#include "frontend/Unroll.h"

#include <algorithm>
#include <set>

namespace weft::lang {

double pairsOf(int64_t positions, int64_t window) {
  const auto places = static_cast<double>(positions);
  const double seen = static_cast<double>(std::clamp<int64_t>(window, 0, positions));
  return seen * (seen + 1) / 2 + (places - seen) * seen;
}

class CountingWalk : public UnrolledWalk {
public:
  CountingWalk(const Model &model, ModelCounts &counts) : UnrolledWalk(model), counts(counts) {}

  /// Sums of scopes with indices to those without.
  void finish() {
    for (const auto &[indexed, count] : byPath) {
      ScopeCount &scope = counts.scopes[withoutIndices(indexed)];
      if (scope.repeats++ == 0)
        scope.first = count;
      scope.alike =
          scope.alike && scope.first.parameters == count.parameters && scope.first.products == count.products;
      scope.parameters += count.parameters;
      scope.products += count.products;
    }
  }

protected:
  bool visit(const Node &node) override {
    Count count;
    count.repeats = 1;
    if (node.kind == NodeKind::Param)
      count.parameters = static_cast<int64_t>(elements(axesOf(node.results[0])));
    else if (node.kind == NodeKind::Contract)
      count.products = contraction(node);
    else if (node.kind == NodeKind::Attend)
      count.products = attention(node);
    if (node.kind == NodeKind::Branch)
      byPath[path + node.name];
    if (node.kind == NodeKind::Layer || node.kind == NodeKind::Branch || node.kind == NodeKind::If)
      return true;
    Count &term = counts.terms[{node.place.file, node.place.offset, node.place.length}];
    term.repeats += 1;
    term.parameters += count.parameters;
    term.products += count.products;
    addToScopes(count);
    return true;
  }

  void failed(const Node &, const FormulaError &) override {}

private:
  const std::vector<std::string> &axesOf(ValueId value) const {
    return model.values[static_cast<size_t>(value)].axes;
  }

  double sizeOf(const std::string &axis) const {
    if (axis == "batch" || axis == "pos")
      return axis == "pos" ? static_cast<double>(counts.length) : 1;
    auto size = names.find(axis);
    return size == names.end() ? 1 : size->second.number;
  }

  double elements(const std::vector<std::string> &axes) const {
    double count = 1;
    for (const std::string &axis : axes)
      count *= sizeOf(axis);
    return count;
  }

  double contraction(const Node &node) const {
    std::set<std::string> axes;
    for (ValueId operand : node.operands)
      axes.insert(axesOf(operand).begin(), axesOf(operand).end());
    double points = 1;
    for (const std::string &axis : axes)
      points *= sizeOf(axis);
    return 2 * points;
  }

  double attention(const Node &node) {
    const std::vector<std::string> &q = axesOf(node.operands[0]), &v = axesOf(node.operands[2]);
    const double heads = elements(q) / sizeOf(q.back()) / sizeOf("pos");
    std::optional<Value> window = valueOf(node, *node.formulas.at("window"));
    const bool full = !window || window->kind != Value::Kind::Number ||
                      window->number >= static_cast<double>(counts.length);
    const int64_t seen = full ? counts.length : static_cast<int64_t>(window->number);
    return 2 * heads * pairsOf(counts.length, seen) * (sizeOf(q.back()) + sizeOf(v.back()));
  }

  /// To every scope around: `block.3.attn.` is in block.3.attn, block.3 and the model.
  void addToScopes(const Count &count) {
    for (size_t end = 0; end != std::string::npos; end = path.find('.', end + 1)) {
      const std::string scope = path.substr(0, end);
      const size_t dot = path.find('.', end + 1);
      const bool isLayerName =
          end > 0 && dot != std::string::npos &&
          path.substr(end + 1, dot - end - 1).find_first_not_of("0123456789") == std::string::npos;
      if (isLayerName) // its repeats follow: block.3
        continue;
      Count &sum = byPath[scope];
      sum.parameters += count.parameters;
      sum.products += count.products;
    }
  }

  static std::string withoutIndices(const std::string &indexed) {
    std::string plain;
    for (size_t start = 0; start < indexed.size();) {
      const size_t end = std::min(indexed.find('.', start), indexed.size());
      const std::string step = indexed.substr(start, end - start);
      if (step.find_first_not_of("0123456789") != std::string::npos)
        plain += (plain.empty() ? "" : ".") + step;
      start = end + 1;
    }
    return plain;
  }

  ModelCounts &counts;
  std::map<std::string, Count> byPath;
};

ModelCounts::ModelCounts(const Model &model, int64_t positions) : length(positions) {
  CountingWalk walk(model, *this);
  walk.walk();
  walk.finish();
}

const ScopeCount *ModelCounts::scope(const std::string &path) const {
  auto found = scopes.find(path);
  return found == scopes.end() ? nullptr : &found->second;
}

const Count *ModelCounts::term(const Place &place) const {
  auto found = terms.find({place.file, place.offset, place.length});
  return found == terms.end() ? nullptr : &found->second;
}

} // namespace weft::lang
