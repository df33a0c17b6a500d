#include "frontend/Watch.h"

#include "frontend/PlanSites.h"
#include "frontend/Recipe.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>

namespace weft::lang {
namespace {

/// Params of one name and axes share a text, whatever layer they are in.
std::string keyOf(std::string_view name, const std::vector<std::string> &axes) {
  std::string key(name);
  for (const std::string &axis : axes)
    absl::StrAppend(&key, " ", axis);
  return key;
}

std::string_view lastOf(std::string_view path) {
  return path.substr(path.rfind('.') + 1); // npos + 1 is 0
}

class Products {
public:
  explicit Products(const Model &model) : model(model) {
    each(model.body, [&](const Node &node) {
      if (node.kind == NodeKind::Param)
        names[node.results[0]] = node.name;
      if (node.kind == NodeKind::Input)
        for (ValueId value : node.results)
          data.insert(axesOf(value).begin(), axesOf(value).end());
    });
    each(model.body, [&](const Node &node) {
      if (node.kind == NodeKind::Contract)
        for (size_t i : {0, 1})
          note(node.operands[i], node.operands[1 - i]);
    });
  }

  std::map<std::string, int64_t> rowAxes; // by keyOf

private:
  template <typename F> static void each(const Block &block, const F &visit) {
    for (const Node &node : block.nodes) {
      visit(node);
      for (const Block &inner : node.blocks)
        each(inner, visit);
    }
  }

  const std::vector<std::string> &axesOf(ValueId value) const {
    return model.values[static_cast<size_t>(value)].axes;
  }

  void note(ValueId parameter, ValueId other) {
    auto name = names.find(parameter);
    if (name == names.end())
      return;
    const std::vector<std::string> &axes = axesOf(parameter), &theirs = axesOf(other);
    auto summed = [&](const std::string &axis) {
      return !data.contains(axis) && std::ranges::find(theirs, axis) != theirs.end();
    };
    int64_t leading = 0;
    while (leading < static_cast<int64_t>(axes.size()) && summed(axes[static_cast<size_t>(leading)]))
      ++leading;
    // Where the first axis is kept, the last ones are summed: what is left of them are rows.
    if (leading == 0)
      leading = std::ranges::count_if(axes, [&](const std::string &axis) { return !summed(axis); });
    rowAxes.emplace(keyOf(name->second, axes), leading);
  }

  const Model &model;
  std::map<ValueId, std::string> names;
  std::set<std::string> data;
};

bool inItem(const WatchItem &item, std::string_view set, const ParameterInfo &parameter,
            const std::set<std::string> &matrices) {
  const bool matrix = parameter.axes.size() >= 2 && matrices.contains(parameter.path);
  if (item.function == "stable_rank" && !matrix)
    return false;
  if (set == "matrices")
    return matrix;
  if (set == "kernels")
    return matrix && parameter.inLayer;
  return set == "all" || lastOf(parameter.path) == set || addressCovers(set, parameter.path);
}

} // namespace

std::map<std::string, int64_t> matrixRowAxes(const Model &model) {
  Products products(model);
  std::map<std::string, int64_t> result;
  for (const ParameterInfo &parameter : parametersOf(model)) {
    auto found = products.rowAxes.find(keyOf(lastOf(parameter.path), parameter.axes));
    result[parameter.path] = found == products.rowAxes.end() ? 1 : found->second;
  }
  return result;
}

std::vector<WatchItem> watchItems(const rt::Recipe &recipe, const Model &model) {
  const std::set<std::string> matrices = matricesOf(model);
  std::vector<WatchItem> items;
  for (const std::string &text : recipe.watch) {
    size_t open = text.find('('), close = text.rfind(')');
    WatchItem item{text, text.substr(0, open), {}};
    std::string set = text.substr(open + 1, close - open - 1);
    std::erase(set, ' ');
    for (const ParameterInfo &parameter : parametersOf(model))
      if (inItem(item, set, parameter, matrices))
        item.paths.push_back(parameter.path);
    items.push_back(std::move(item));
  }
  return items;
}

} // namespace weft::lang
