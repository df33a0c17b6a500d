//===- WindowController.cpp - Choosing the windows of one layer -----------===//
#include "runtime/control/WindowController.h"

#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace weft::rt {
namespace {

Scorer makeScorer(const WindowOptions &options, const std::string &path, uint64_t seed, int64_t candidates,
                  bool joint) {
  const std::string stream =
      "windows/" + (options.sharedScorers ? "shared" : path) + (joint ? "/joint" : "/base");
  return joint ? Scorer(kJointInputs, options.jointWidth, 2 * candidates, options.relu, seed, stream)
               : Scorer(kControllerInputs, options.baseWidth, candidates, options.relu, seed, stream);
}

/// Adjacent pairs of `items`; an odd last one has none.
template <typename Visit> void forPairs(const std::vector<int64_t> &items, const Visit &visit) {
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    visit(items[i], items[i + 1]);
}

/// [a, b, a - b, b - a]: AAH section 5.6.
std::vector<double> jointInput(const std::vector<double> &a, const std::vector<double> &b) {
  std::vector<double> input(a);
  input.insert(input.end(), b.begin(), b.end());
  for (size_t i = 0; i < a.size(); ++i)
    input.push_back(a[i] - b[i]);
  for (size_t i = 0; i < a.size(); ++i)
    input.push_back(b[i] - a[i]);
  return input;
}

} // namespace

std::vector<int64_t> permutation(int64_t count, uint64_t seed, const std::string &stream, int64_t index) {
  const Philox numbers(seed, stream);
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = count - 1; i > 0; --i) { // Fisher and Yates
    const double draw = numbers.uniform(static_cast<uint64_t>(index * count + i));
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(draw * static_cast<double>(i + 1))]);
  }
  return order;
}

WindowController::WindowController(const WindowOptions &options, std::vector<int64_t> candidateWindows,
                                   const WindowSite &site, std::vector<int64_t> heads, uint64_t seed)
    : options(options), candidates(std::move(candidateWindows)), controlled(std::move(heads)),
      path(site.path), seed(seed),
      base(makeScorer(options, path, seed, static_cast<int64_t>(candidates.size()), false)),
      joint(makeScorer(options, path, seed, static_cast<int64_t>(candidates.size()), true)) {
  std::map<int64_t, std::vector<int64_t>> byUnit;
  const int64_t group = options.kvGroups ? site.heads / std::max<int64_t>(site.kvHeads, 1) : 1;
  for (size_t place = 0; place < controlled.size(); ++place)
    byUnit[controlled[place] / group].push_back(static_cast<int64_t>(place));
  for (auto &[unit, places] : byUnit)
    units.push_back(std::move(places));
  memory.smoothed.resize(static_cast<size_t>(site.heads));
  const auto start = std::find(candidates.begin(), candidates.end(), options.start);
  const int64_t first =
      start == candidates.end() ? static_cast<int64_t>(candidates.size()) - 1 : start - candidates.begin();
  memory.index.assign(static_cast<size_t>(site.heads), first);
}

std::vector<Feature> WindowController::unitFeatures() const {
  std::vector<Feature> features;
  for (const std::vector<int64_t> &unit : units) {
    Feature mean{};
    for (int64_t place : unit) {
      const Feature &head = *memory.smoothed[static_cast<size_t>(controlled[static_cast<size_t>(place)])];
      for (int i = 0; i < kFeatureCount; ++i)
        mean[i] += head[i] / static_cast<double>(unit.size());
    }
    features.push_back(mean);
  }
  return features;
}

std::vector<int64_t> WindowController::groupsFor(const std::vector<Feature> &features, int64_t target) const {
  const auto count = static_cast<int64_t>(units.size());
  std::vector<int64_t> order(units.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  switch (options.grouping) {
  case WindowOptions::Grouping::None:
    return order;
  case WindowOptions::Grouping::Index:
    return equalGroups(order, target);
  case WindowOptions::Grouping::Random:
    return equalGroups(permutation(count, seed, "windows/" + path + "/groups", 0), target);
  case WindowOptions::Grouping::Features:
    break;
  }
  return clusterUnits(features, options.threshold, target);
}

/// The kept levels over the units there are now: items whose heads all left are
/// gone, the order of the others stays.
std::optional<Hierarchy> WindowController::restored() const {
  if (memory.kept.empty())
    return std::nullopt;
  Hierarchy hierarchy;
  for (const std::vector<int64_t> &level : memory.kept) {
    std::map<int64_t, int64_t> number;
    for (const std::vector<int64_t> &unit : units)
      number[level[static_cast<size_t>(controlled[static_cast<size_t>(unit[0])])]];
    int64_t next = 0;
    for (auto &[old, now] : number)
      now = next++;
    std::vector<int64_t> of;
    for (const std::vector<int64_t> &unit : units)
      of.push_back(number[level[static_cast<size_t>(controlled[static_cast<size_t>(unit[0])])]]);
    hierarchy.itemOf.push_back(std::move(of));
  }
  return hierarchy;
}

void WindowController::keep(const Hierarchy &hierarchy) {
  const bool upper = options.topology == WindowOptions::Topology::Freeze;
  const int64_t levels = upper ? hierarchy.levels() : 1;
  for (int64_t level = 0; level < levels; ++level) {
    std::vector<int64_t> of(memory.index.size(), -1);
    for (size_t unit = 0; unit < units.size(); ++unit)
      for (int64_t place : units[unit])
        of[static_cast<size_t>(controlled[static_cast<size_t>(place)])] =
            hierarchy.itemOf[static_cast<size_t>(level)][unit];
    memory.kept.push_back(std::move(of));
  }
}

Hierarchy WindowController::hierarchyFor(const std::vector<Feature> &features, bool mayKeep) {
  const bool grouped = options.grouping != WindowOptions::Grouping::None;
  const auto count = static_cast<int64_t>(units.size());
  std::vector<LevelShape> shapes = grouped ? levelShapes(options.hierarchy, count, options.capped)
                                           : std::vector<LevelShape>{{count, count}};
  std::optional<Hierarchy> hierarchy = restored();
  if (hierarchy && options.topology == WindowOptions::Topology::Freeze)
    return *hierarchy;
  const bool fresh = !hierarchy;
  if (fresh)
    hierarchy = Hierarchy{{groupsFor(features, shapes[0].items)}};
  buildUpperLevels(*hierarchy, features, shapes, options.penalty);
  const bool due = options.keptUpdate > 0 ? memory.updates >= options.keptUpdate : mayKeep;
  if (fresh && due && options.topology != WindowOptions::Topology::Refresh)
    keep(*hierarchy);
  return *hierarchy;
}

std::vector<std::vector<double>> WindowController::inputs(const Hierarchy &hierarchy,
                                                          const std::vector<std::vector<Feature>> &features,
                                                          int64_t level) {
  const std::vector<Feature> &items = features[static_cast<size_t>(level)];
  const bool top = level + 1 == hierarchy.levels();
  const std::vector<std::vector<int64_t>> members = hierarchy.members(level);
  std::vector<int64_t> parent(items.size());
  if (!top)
    for (size_t unit = 0; unit < hierarchy.itemOf[0].size(); ++unit)
      parent[static_cast<size_t>(hierarchy.itemOf[static_cast<size_t>(level)][unit])] =
          hierarchy.itemOf[static_cast<size_t>(level + 1)][unit];
  Feature mean{};
  double below = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    below += static_cast<double>(members[i].size());
    for (int f = 0; f < kFeatureCount; ++f)
      mean[f] += items[i][f] / static_cast<double>(items.size());
  }
  const double place =
      static_cast<double>(level) / static_cast<double>(std::max<int64_t>(1, hierarchy.levels() - 1));
  std::vector<std::vector<double>> result;
  for (size_t i = 0; i < items.size(); ++i) {
    const Feature &above =
        top ? items[i] : features[static_cast<size_t>(level + 1)][static_cast<size_t>(parent[i])];
    std::vector<double> input(items[i].begin(), items[i].end());
    input.push_back(place);
    for (int f = 0; f < kFeatureCount; ++f)
      input.push_back(items[i][f] - above[f]);
    for (int f = 0; f < kFeatureCount; ++f)
      input.push_back(items[i][f] - mean[f]);
    input.push_back(static_cast<double>(members[i].size()) / below);
    result.push_back(std::move(input));
  }
  return result;
}

/// The raw choice of each item of `level`; -1: a logit was NaN.
std::vector<int64_t> WindowController::choicesAt(const Hierarchy &hierarchy,
                                                 const std::vector<std::vector<Feature>> &features,
                                                 int64_t level) const {
  const auto count = static_cast<int64_t>(candidates.size());
  const std::vector<std::vector<double>> input = inputs(hierarchy, features, level);
  constexpr int64_t kUnscored = -2;
  std::vector<int64_t> choice(input.size(), kUnscored);
  if (options.joint && options.grouping != WindowOptions::Grouping::None) {
    std::vector<std::vector<int64_t>> families;
    if (level + 1 < hierarchy.levels()) {
      families = hierarchy.members(level + 1);
    } else { // items of the top level are siblings: [2] has a joint decision, too
      families.emplace_back(input.size());
      std::iota(families[0].begin(), families[0].end(), int64_t{0});
    }
    for (const std::vector<int64_t> &family : families)
      forPairs(family, [&](int64_t a, int64_t b) {
        const std::vector<double> logits =
            joint.score(jointInput(input[static_cast<size_t>(a)], input[static_cast<size_t>(b)]));
        choice[static_cast<size_t>(a)] = bestIndex(logits.data(), count);
        choice[static_cast<size_t>(b)] = bestIndex(logits.data() + count, count);
      });
  }
  for (size_t i = 0; i < input.size(); ++i)
    if (choice[i] == kUnscored)
      choice[i] = bestIndex(base.score(input[i]).data(), count);
  return choice;
}

/// The choice of each unit, top level first, bound by the parent's (AAH section 5.7).
std::vector<int64_t> WindowController::choose(const Hierarchy &hierarchy,
                                              const std::vector<Feature> &features) const {
  const std::vector<std::vector<Feature>> levels = levelFeatures(hierarchy, features);
  std::vector<int64_t> bound(units.size(), static_cast<int64_t>(candidates.size()) - 1), chosen(units.size());
  for (int64_t level = hierarchy.levels() - 1; level >= 0; --level) {
    const std::vector<int64_t> choice = choicesAt(hierarchy, levels, level);
    for (size_t unit = 0; unit < units.size(); ++unit) {
      chosen[unit] = choice[static_cast<size_t>(hierarchy.itemOf[static_cast<size_t>(level)][unit])];
      if (options.clampToParent && chosen[unit] >= 0)
        bound[unit] = chosen[unit] = std::min(chosen[unit], bound[unit]);
    }
  }
  return chosen;
}

bool WindowController::update(const std::vector<std::optional<Feature>> &observed, int64_t step,
                              bool mayKeep) {
  bool good = true;
  for (size_t place = 0; place < controlled.size(); ++place) {
    std::optional<Feature> &average = memory.smoothed[static_cast<size_t>(controlled[place])];
    good &= observed[place].has_value();
    if (observed[place] && average)
      smooth(*average, *observed[place], options.featureKeep);
    else if (observed[place])
      average = observed[place]; // starts at the first observation
    else if (!average)
      return false; // nothing is known of a head yet
  }
  ++memory.updates;
  const std::vector<Feature> features = unitFeatures();
  const Hierarchy hierarchy = hierarchyFor(features, mayKeep);
  memory.levels = hierarchy.levels();
  const std::vector<int64_t> chosen = choose(hierarchy, features);
  const auto full = static_cast<double>(candidates.size() - 1);
  for (size_t unit = 0; unit < units.size(); ++unit)
    for (int64_t place : units[unit]) {
      int64_t &index = memory.index[static_cast<size_t>(controlled[static_cast<size_t>(place)])];
      if (chosen[unit] < 0) {
        good = false;
        continue;
      }
      auto choice = static_cast<double>(chosen[unit]);
      if (options.ramp) { // AAH section 5.8
        const auto [from, to] = *options.ramp;
        const double share =
            std::clamp(static_cast<double>(step - from) / static_cast<double>(to - from), 0.0, 1.0);
        choice = std::nearbyint(full + share * (choice - full));
      }
      // Half to even, as torch.round; the rounded value is what is kept.
      const double kept =
          options.resolutionKeep * static_cast<double>(index) + (1 - options.resolutionKeep) * choice;
      index = static_cast<int64_t>(std::clamp(std::nearbyint(kept), 0.0, full));
    }
  return good;
}

std::vector<int64_t> WindowController::windows() const {
  std::vector<int64_t> from(units.size());
  std::iota(from.begin(), from.end(), int64_t{0});
  if (options.shuffle && memory.updates > 0) // never fed back into the average
    from =
        permutation(static_cast<int64_t>(units.size()), seed, "windows/" + path + "/shuffle", memory.updates);
  const int64_t least = options.least > 0 ? options.least : candidates.front();
  std::vector<int64_t> result(controlled.size());
  for (size_t unit = 0; unit < units.size(); ++unit)
    for (int64_t place : units[unit]) {
      const auto source = static_cast<size_t>(units[static_cast<size_t>(from[unit])][0]);
      const int64_t index = memory.index[static_cast<size_t>(controlled[source])];
      result[static_cast<size_t>(place)] = std::max(candidates[static_cast<size_t>(index)], least);
    }
  return result;
}

} // namespace weft::rt
