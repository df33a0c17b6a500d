//===- WindowHierarchy.h - Groups of heads and groups of groups -*- C++ -*-===//
//
// AAH section 5.4. Level 0 clusters units (heads, or groups that share a key
// head) by cosine; upper levels join items by cosine less a penalty for unequal
// norms. Items of a level are numbered by their least unit. All ties go to the
// lower number.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/WindowFeatures.h"
#include "runtime/control/WindowPlan.h"

#include <cstdint>
#include <vector>

namespace weft::rt {

/// How many items a level has, and how many of the level below a parent holds.
struct LevelShape {
  int64_t items = 0, children = 0;
  bool operator==(const LevelShape &) const = default;
};

/// Levels of `hierarchy` = [s_1 .. s_R] over `units`, bottom first: n_r is the
/// product of s_(r+1) .. s_R, capped at max(2, units / 2) (or at `units`); a
/// level that is not smaller than the one below is left out. One unit: one item.
std::vector<LevelShape> levelShapes(const std::vector<int64_t> &hierarchy, int64_t units, bool capped);

/// For each level, bottom first, the item of each unit.
struct Hierarchy {
  std::vector<std::vector<int64_t>> itemOf;

  int64_t levels() const { return static_cast<int64_t>(itemOf.size()); }
  int64_t items(int64_t level) const;
  /// What each item holds: units at level 0, items of the level below above it; ascending.
  std::vector<std::vector<int64_t>> members(int64_t level) const;
};

/// Level 0 from features: one pass that joins a unit to the nearest centroid
/// with cosine >= threshold; then merges of the nearest centroids, or forced
/// bipartitions (anchors = least similar pair), until there are `target` groups.
std::vector<int64_t> clusterUnits(const std::vector<Feature> &features, double threshold, int64_t target);

/// Level 0 without features: `target` groups of equal size (+-1), of neighbours
/// in `order`, a permutation of the units.
std::vector<int64_t> equalGroups(const std::vector<int64_t> &order, int64_t target);

/// The parent of each item: pairs by similarity, highest first, joined while both
/// have room (a parent holds at most `shape.children`), until `shape.items` are left.
std::vector<int64_t> joinItems(const std::vector<Feature> &items, const LevelShape &shape, double penalty);

/// Feature of each item of each level: the mean of its members, each counting once.
std::vector<std::vector<Feature>> levelFeatures(const Hierarchy &hierarchy,
                                                const std::vector<Feature> &units);

/// Puts the upper levels of `shapes` on `hierarchy`, which has level 0 alone.
void buildUpperLevels(Hierarchy &hierarchy, const std::vector<Feature> &units,
                      const std::vector<LevelShape> &shapes, double penalty);

} // namespace weft::rt
