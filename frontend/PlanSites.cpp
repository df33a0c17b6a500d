#include "frontend/PlanSites.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <limits>

namespace weft::lang {
namespace {

constexpr int64_t kFull = std::numeric_limits<int64_t>::max();

class Walker {
public:
  Walker(const Model &model, const std::set<std::string, std::less<>> &dropped)
      : model(model), dropped(dropped) {
    findDataAxes(model.body);
  }

  absl::Status walk(const Block &block, Bindings names, OutlineScope &scope) {
    for (const Node &node : block.nodes)
      if (absl::Status status = visit(node, names, scope); !status.ok())
        return status;
    return absl::OkStatus();
  }

  std::vector<HeadSite> sites;
  std::set<std::string> matrices; // parameters that a product or a lookup reads

private:
  /// `(1 + gain) @ x` reads gain: a value made of parameters alone stands for them.
  void combine(const Node &node) {
    std::set<std::string> all;
    for (ValueId operand : node.operands) {
      auto found = roots.find(operand);
      if (found != roots.end())
        all.insert(found->second.begin(), found->second.end());
      else if (!typeOf(operand).axes.empty())
        return;
    }
    if (!all.empty() && !node.results.empty())
      roots[node.results[0]] = std::move(all);
  }

  void findDataAxes(const Block &block) {
    for (const Node &node : block.nodes)
      if (node.kind == NodeKind::Input)
        for (ValueId value : node.results)
          for (const std::string &axis : typeOf(value).axes)
            dataAxes.insert(axis);
  }

  const TensorType &typeOf(ValueId value) const { return model.values[static_cast<size_t>(value)]; }

  absl::StatusOr<Value> valueOf(const FormulaRef &formula, const Bindings &names) const {
    FormulaError error;
    if (std::optional<Value> value = evaluate(*formula, names, &error))
      return *value;
    return absl::InvalidArgumentError(error.message);
  }

  absl::Status visit(const Node &node, Bindings &names, OutlineScope &scope) {
    switch (node.kind) {
    case NodeKind::Let: {
      absl::StatusOr<Value> value = valueOf(node.formulas.at("value"), names);
      if (!value.ok())
        return value.status();
      names[node.name] = *value;
      return absl::OkStatus();
    }
    case NodeKind::Layer:
      return visitLayer(node, names, scope);
    case NodeKind::Branch:
      return visitBranch(node, names, scope);
    case NodeKind::If: {
      absl::StatusOr<Value> test = valueOf(node.formulas.at("test"), names);
      if (!test.ok())
        return test.status();
      size_t arm = test->number != 0 ? 0 : 1;
      return arm < node.blocks.size() ? walk(node.blocks[arm], names, scope) : absl::OkStatus();
    }
    case NodeKind::Attend:
      return visitAttend(node, names, scope);
    case NodeKind::Param:
      roots[node.results[0]] = {join(scope.path, node.name)};
      return absl::OkStatus();
    case NodeKind::Contract:
    case NodeKind::Gather:
      for (ValueId operand : node.operands)
        if (auto found = roots.find(operand); found != roots.end())
          matrices.insert(found->second.begin(), found->second.end());
      return absl::OkStatus();
    case NodeKind::Unary:
    case NodeKind::Binary:
      combine(node);
      return absl::OkStatus();
    default:
      return absl::OkStatus();
    }
  }

  absl::Status visitLayer(const Node &node, const Bindings &names, OutlineScope &scope) {
    absl::StatusOr<Value> count = valueOf(node.formulas.at("count"), names);
    if (!count.ok())
      return count.status();
    if (!count->isWhole() || count->number < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("the count of layer ", node.name, " is ", count->text()));
    for (int64_t i = 0, n = static_cast<int64_t>(count->number); i < n; ++i) {
      OutlineScope child{node.name, i, join(scope.path, absl::StrCat(node.name, ".", i)), {}, -1};
      Bindings inner = names;
      if (!node.index.empty())
        inner[node.index] = Value::ofNumber(static_cast<double>(i));
      if (absl::Status status = walk(node.blocks[0], std::move(inner), child); !status.ok())
        return status;
      scope.children.push_back(std::move(child));
    }
    return absl::OkStatus();
  }

  absl::Status visitBranch(const Node &node, const Bindings &names, OutlineScope &scope) {
    OutlineScope child{node.name, -1, join(scope.path, node.name), {}, -1};
    if (dropped.count(child.path) || model.dropped.count(child.path))
      return absl::OkStatus();
    if (absl::Status status = walk(node.blocks[0], names, child); !status.ok())
      return status;
    scope.children.push_back(std::move(child));
    return absl::OkStatus();
  }

  absl::Status visitAttend(const Node &node, const Bindings &names, OutlineScope &scope) {
    std::vector<int64_t> q, k, v;
    for (auto [operand, sizes] : {std::pair(node.operands[0], &q), std::pair(node.operands[1], &k),
                                  std::pair(node.operands[2], &v)})
      for (const std::string &axis : typeOf(operand).axes)
        if (!dataAxes.count(axis)) {
          auto size = names.find(axis);
          if (size == names.end())
            return absl::InvalidArgumentError(absl::StrCat("the size of axis ", axis, " is not known here"));
          sizes->push_back(static_cast<int64_t>(size->second.number));
        }
    int64_t window = kFull;
    if (auto formula = node.formulas.find("window"); formula != node.formulas.end() && formula->second) {
      absl::StatusOr<Value> value = valueOf(formula->second, names);
      if (!value.ok())
        return value.status();
      if (value->kind == Value::Kind::Number)
        window = static_cast<int64_t>(value->number);
    }
    addSite(scope, q, k, window);
    sites[static_cast<size_t>(scope.site)].valueChannels = v.empty() ? 0 : v.back();
    return absl::OkStatus();
  }

  void addSite(OutlineScope &scope, const std::vector<int64_t> &q, const std::vector<int64_t> &k,
               int64_t window) {
    int64_t heads = 1, kvHeads = 1;
    for (size_t i = 0; i + 1 < q.size(); ++i)
      heads *= q[i];
    for (size_t i = 0; i + 1 < k.size(); ++i)
      kvHeads *= k[i];
    if (scope.site < 0) {
      scope.site = static_cast<int32_t>(sites.size());
      sites.push_back({scope.path, 0, 0, q.empty() ? 0 : q.back(), {}, 0});
    }
    HeadSite &site = sites[static_cast<size_t>(scope.site)];
    site.heads += heads;
    site.kvHeads += kvHeads;
    site.windows.insert(site.windows.end(), static_cast<size_t>(heads), window);
  }

  static std::string join(const std::string &path, const std::string &name) {
    return path.empty() ? name : absl::StrCat(path, ".", name);
  }

  const Model &model;
  const std::set<std::string, std::less<>> &dropped;
  std::set<std::string> dataAxes;
  std::map<ValueId, std::set<std::string>> roots; // paths of the parameters that a value is made of
};

} // namespace

absl::StatusOr<Outline> outlineOf(const Model &model, const std::set<std::string, std::less<>> &dropped) {
  Walker walker(model, dropped);
  Outline outline;
  if (absl::Status status = walker.walk(model.body, model.bindings(), outline.root); !status.ok())
    return status;
  outline.sites = std::move(walker.sites);
  return outline;
}

std::string depthSettingOf(const Model &model, std::string_view layer) {
  for (const Node &node : model.body.nodes) {
    if (node.kind != NodeKind::Layer || node.name != layer)
      continue;
    const Formula &count = *node.formulas.at("count");
    if (count.kind != Formula::Kind::Name)
      return {};
    for (const Setting &setting : model.settings)
      if (setting.name == count.name)
        return setting.name;
  }
  return {};
}

Model withSetting(Model model, std::string_view name, double value) {
  for (Setting &setting : model.settings)
    if (setting.name == name)
      setting.value = Formula::ofNumber(value);
  return model;
}

std::set<std::string> matricesOf(const Model &model, const std::set<std::string, std::less<>> &dropped) {
  Walker walker(model, dropped);
  OutlineScope root;
  if (!walker.walk(model.body, model.bindings(), root).ok())
    return {};
  return std::move(walker.matrices);
}

int64_t layerMatrixWeights(const Model &model, const std::set<std::string, std::less<>> &dropped) {
  std::set<std::string> matrices = matricesOf(model, dropped);
  int64_t total = 0;
  for (const ParameterInfo &parameter : parametersOf(model)) {
    if (!parameter.inLayer || parameter.shape.size() < 2 || !matrices.count(parameter.path))
      continue;
    int64_t count = 1;
    for (int64_t size : parameter.shape)
      count *= size;
    total += count;
  }
  return total;
}

int64_t headWeights(const Model &model) {
  ValueId logits = kNoValue;
  for (const Node &node : model.body.nodes)
    if (node.kind == NodeKind::CrossEntropy)
      logits = node.operands[0];
  Bindings names = model.bindings();
  for (const Node &node : model.body.nodes) {
    if (node.kind != NodeKind::Contract || node.results.empty() || node.results[0] != logits)
      continue;
    // The table holds the vocabulary and the width; the row holds data axes too.
    int64_t count = 1;
    for (const std::string &axis : model.values[static_cast<size_t>(node.operands[1])].axes)
      if (auto size = names.find(axis); size != names.end())
        count *= static_cast<int64_t>(size->second.number);
    return count;
  }
  return 0;
}

} // namespace weft::lang
