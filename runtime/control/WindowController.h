//===- WindowController.h - Choosing the windows of one layer ---*- C++ -*-===//
//
// AAH sections 5.3 to 5.8: one control update of the heads of one site that one
// `windows adaptive` statement controls. Features are smoothed and grouped, each
// item of each level is scored, the argmax is bound by the parent's choice, and
// the choice of a level-0 group goes to its heads, is ramped, averaged over time
// and looked up.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/WindowHierarchy.h"
#include "runtime/control/WindowScorers.h"

#include <optional>
#include <string>
#include <vector>

namespace weft::rt {

/// What a controller carries from update to update, by head of the site as
/// written; heads that are not under control keep what they had last.
struct ControllerState {
  std::vector<std::optional<Feature>> smoothed;
  std::vector<int64_t> index;             // after the resolution average
  std::vector<std::vector<int64_t>> kept; // by level: item of each head, or -1; empty: nothing kept
  int64_t updates = 0;
  int64_t levels = 0; // used by the last update
};

class WindowController {
public:
  /// `heads` are under control, ascending; `candidates` increase; `seed` draws
  /// scorers, random groups and shuffles.
  WindowController(const WindowOptions &options, std::vector<int64_t> candidates, const WindowSite &site,
                   std::vector<int64_t> heads, uint64_t seed);

  /// One update at `step` from `observed`, one a head of `heads()`. `mayKeep`:
  /// the rate's warm-up is over. False when a logit or a feature was NaN: those
  /// heads keep their index.
  bool update(const std::vector<std::optional<Feature>> &observed, int64_t step, bool mayKeep);

  /// Windows of `heads()` in force after the last update: candidates looked up
  /// at the averaged index (dealt out anew where heads are shuffled), at least
  /// the least window.
  std::vector<int64_t> windows() const;

  const std::vector<int64_t> &heads() const { return controlled; }
  const ControllerState &state() const { return memory; }
  void setState(ControllerState state) { memory = std::move(state); }
  Scorer &baseScorer() { return base; }
  Scorer &jointScorer() { return joint; }
  const Scorer &baseScorer() const { return base; }
  const Scorer &jointScorer() const { return joint; }

  /// The controller input of each item of `level` (AAH section 5.5): feature, level's
  /// place in 0..1, less the parent, less the level's mean, share of members.
  static std::vector<std::vector<double>>
  inputs(const Hierarchy &hierarchy, const std::vector<std::vector<Feature>> &features, int64_t level);

private:
  std::vector<Feature> unitFeatures() const;
  Hierarchy hierarchyFor(const std::vector<Feature> &features, bool mayKeep);
  std::optional<Hierarchy> restored() const;
  std::vector<int64_t> groupsFor(const std::vector<Feature> &features, int64_t target) const;
  void keep(const Hierarchy &hierarchy);
  std::vector<int64_t> choose(const Hierarchy &hierarchy, const std::vector<Feature> &features) const;
  std::vector<int64_t> choicesAt(const Hierarchy &hierarchy,
                                 const std::vector<std::vector<Feature>> &features, int64_t level) const;

  WindowOptions options;
  std::vector<int64_t> candidates, controlled;
  std::vector<std::vector<int64_t>> units; // places in `controlled`
  std::string path;
  uint64_t seed;
  Scorer base, joint;
  ControllerState memory;
};

/// A permutation of 0..count-1, number `index` of stream `stream` under `seed`.
std::vector<int64_t> permutation(int64_t count, uint64_t seed, const std::string &stream, int64_t index);

} // namespace weft::rt
