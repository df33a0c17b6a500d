//===- WindowHierarchy.cpp - Groups of heads and groups of groups ---------===//
#include "runtime/control/WindowHierarchy.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace weft::rt {
namespace {

using Groups = std::vector<std::vector<int64_t>>; // members ascending, by least member

/// The group of each of `count` members.
std::vector<int64_t> numberOf(Groups groups, int64_t count) {
  for (std::vector<int64_t> &group : groups)
    std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  std::vector<int64_t> number(static_cast<size_t>(count));
  for (size_t i = 0; i < groups.size(); ++i)
    for (int64_t member : groups[i])
      number[static_cast<size_t>(member)] = static_cast<int64_t>(i);
  return number;
}

struct Clusters {
  Groups groups;
  std::vector<Feature> centroids;
};

Clusters onePass(const std::vector<Feature> &features, double threshold) {
  Clusters made;
  for (size_t unit = 0; unit < features.size(); ++unit) {
    size_t best = 0;
    double bestCosine = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < made.groups.size(); ++i)
      if (double found = cosine(features[unit], made.centroids[i]); found > bestCosine)
        best = i, bestCosine = found;
    if (made.groups.empty() || bestCosine < threshold) {
      made.groups.push_back({static_cast<int64_t>(unit)});
      made.centroids.push_back(features[unit]);
      continue;
    }
    made.groups[best].push_back(static_cast<int64_t>(unit));
    smooth(made.centroids[best], features[unit], 1 - 1 / static_cast<double>(made.groups[best].size()));
  }
  return made;
}

/// Merges the two groups whose centroids are most similar.
void mergeNearest(Clusters &clusters) {
  size_t first = 0, second = 1;
  double best = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < clusters.groups.size(); ++i)
    for (size_t j = i + 1; j < clusters.groups.size(); ++j)
      if (double found = cosine(clusters.centroids[i], clusters.centroids[j]); found > best)
        first = i, second = j, best = found;
  std::vector<int64_t> &into = clusters.groups[first];
  const auto joined = static_cast<double>(clusters.groups[second].size());
  smooth(clusters.centroids[first], clusters.centroids[second],
         static_cast<double>(into.size()) / (static_cast<double>(into.size()) + joined));
  into.insert(into.end(), clusters.groups[second].begin(), clusters.groups[second].end());
  std::sort(into.begin(), into.end());
  clusters.groups.erase(clusters.groups.begin() + static_cast<std::ptrdiff_t>(second));
  clusters.centroids.erase(clusters.centroids.begin() + static_cast<std::ptrdiff_t>(second));
}

/// Splits the group that holds the least similar pair, with that pair as anchors.
void splitFarthest(Groups &groups, const std::vector<Feature> &features) {
  double least = std::numeric_limits<double>::infinity();
  size_t chosen = groups.size();
  std::pair<int64_t, int64_t> anchors;
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = 0; i < groups[g].size(); ++i)
      for (size_t j = i + 1; j < groups[g].size(); ++j) {
        const std::pair pair(groups[g][i], groups[g][j]);
        const double found = cosine(features[pair.first], features[pair.second]);
        if (std::tie(found, pair) < std::tie(least, anchors) || chosen == groups.size())
          least = found, chosen = g, anchors = pair;
      }
  if (chosen == groups.size())
    return; // all groups have one member
  std::vector<int64_t> stay, leave;
  for (int64_t unit : groups[chosen]) {
    const bool second = unit == anchors.second ||
                        (unit != anchors.first && cosine(features[unit], features[anchors.second]) >
                                                      cosine(features[unit], features[anchors.first]));
    (second ? leave : stay).push_back(unit);
  }
  groups[chosen] = std::move(stay);
  groups.push_back(std::move(leave));
}

} // namespace

std::vector<int64_t> WindowSite::live() const {
  std::vector<int64_t> result;
  for (int64_t head = 0; head < heads; ++head)
    if (!left.contains(head))
      result.push_back(head);
  return result;
}

std::vector<int64_t> WindowSite::placesOfHeads() const {
  std::vector<int64_t> result(static_cast<size_t>(heads));
  for (const auto &[head, places] : firstPlaces)
    result[static_cast<size_t>(head)] = places;
  return result;
}

std::vector<LevelShape> levelShapes(const std::vector<int64_t> &hierarchy, int64_t units, bool capped) {
  const int64_t cap = capped ? std::min(units, std::max<int64_t>(2, units / 2)) : units;
  std::vector<LevelShape> shapes;
  for (size_t level = 0; level < hierarchy.size(); ++level) {
    int64_t items = 1;
    for (size_t above = level; above < hierarchy.size() && items < cap; ++above)
      items *= hierarchy[above];
    items = std::min(items, cap);
    if (shapes.empty() || items < shapes.back().items)
      shapes.push_back({items, level == 0 ? units : hierarchy[level - 1]});
  }
  if (shapes.empty() || units == 1)
    return {{1, units}};
  return shapes;
}

int64_t Hierarchy::items(int64_t level) const {
  const std::vector<int64_t> &of = itemOf[static_cast<size_t>(level)];
  return of.empty() ? 0 : *std::max_element(of.begin(), of.end()) + 1;
}

std::vector<std::vector<int64_t>> Hierarchy::members(int64_t level) const {
  std::vector<std::vector<int64_t>> result(static_cast<size_t>(items(level)));
  const std::vector<int64_t> &of = itemOf[static_cast<size_t>(level)];
  for (size_t unit = 0; unit < of.size(); ++unit) {
    const int64_t member =
        level == 0 ? static_cast<int64_t>(unit) : itemOf[static_cast<size_t>(level - 1)][unit];
    std::vector<int64_t> &list = result[static_cast<size_t>(of[unit])];
    if (std::find(list.begin(), list.end(), member) == list.end())
      list.push_back(member);
  }
  for (std::vector<int64_t> &list : result)
    std::sort(list.begin(), list.end());
  return result;
}

std::vector<int64_t> clusterUnits(const std::vector<Feature> &features, double threshold, int64_t target) {
  Clusters clusters = onePass(features, threshold);
  while (static_cast<int64_t>(clusters.groups.size()) > target)
    mergeNearest(clusters);
  for (auto left = target - static_cast<int64_t>(clusters.groups.size()); left > 0; --left)
    splitFarthest(clusters.groups, features);
  return numberOf(std::move(clusters.groups), static_cast<int64_t>(features.size()));
}

std::vector<int64_t> equalGroups(const std::vector<int64_t> &order, int64_t target) {
  const auto count = static_cast<int64_t>(order.size());
  Groups groups(static_cast<size_t>(target));
  for (int64_t group = 0; group < target; ++group)
    groups[static_cast<size_t>(group)].assign(order.begin() + group * count / target,
                                              order.begin() + (group + 1) * count / target);
  return numberOf(std::move(groups), count);
}

std::vector<int64_t> joinItems(const std::vector<Feature> &items, const LevelShape &shape, double penalty) {
  struct Pair {
    double likeness;
    size_t first, second;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < items.size(); ++i)
    for (size_t j = i + 1; j < items.size(); ++j)
      pairs.push_back({similarity(items[i], items[j], penalty), i, j});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair &a, const Pair &b) { return a.likeness > b.likeness; });
  std::vector<size_t> parent(items.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  auto left = static_cast<int64_t>(items.size());
  for (const Pair &pair : pairs) {
    if (left <= shape.items)
      break;
    const size_t first = parent[pair.first], second = parent[pair.second];
    const auto together =
        std::count(parent.begin(), parent.end(), first) + std::count(parent.begin(), parent.end(), second);
    if (first == second || together > shape.children)
      continue;
    std::replace(parent.begin(), parent.end(), second, first);
    --left;
  }
  Groups groups(items.size());
  for (size_t item = 0; item < items.size(); ++item)
    groups[parent[item]].push_back(static_cast<int64_t>(item));
  std::erase_if(groups, [](const std::vector<int64_t> &group) { return group.empty(); });
  return numberOf(std::move(groups), static_cast<int64_t>(items.size()));
}

std::vector<std::vector<Feature>> levelFeatures(const Hierarchy &hierarchy,
                                                const std::vector<Feature> &units) {
  std::vector<std::vector<Feature>> levels;
  for (int64_t level = 0; level < hierarchy.levels(); ++level) {
    const std::vector<Feature> &below = level == 0 ? units : levels.back();
    std::vector<Feature> features;
    for (const std::vector<int64_t> &members : hierarchy.members(level)) {
      Feature sum{};
      for (int64_t member : members)
        for (int i = 0; i < kFeatureCount; ++i)
          sum[i] += below[static_cast<size_t>(member)][i];
      for (double &number : sum)
        number /= static_cast<double>(members.size());
      features.push_back(sum);
    }
    levels.push_back(std::move(features));
  }
  return levels;
}

void buildUpperLevels(Hierarchy &hierarchy, const std::vector<Feature> &units,
                      const std::vector<LevelShape> &shapes, double penalty) {
  for (size_t level = 1; level < shapes.size(); ++level) {
    const std::vector<Feature> items = levelFeatures(hierarchy, units).back();
    const std::vector<int64_t> parent = joinItems(items, shapes[level], penalty);
    std::vector<int64_t> of = hierarchy.itemOf.back();
    for (int64_t &item : of)
      item = parent[static_cast<size_t>(item)];
    hierarchy.itemOf.push_back(std::move(of));
  }
}

} // namespace weft::rt
