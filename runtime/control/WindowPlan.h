//===- WindowPlan.h - Windows as a plan gives them --------------*- C++ -*-===//
//
// What the runtime knows of the `windows` statements of plans: plain data, with
// every address resolved to heads and every time to a step. A head is its number
// among the query heads of a site, row-major, in the model as written.
//
// Steps count from 0 here, as in AAH: update number n of the training loop is
// step n - 1.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::rt {

/// The window without a bound, as int32 state holds it.
constexpr int64_t kNoBound = 2147483647;

/// A control step every so many steps, where a statement does not say.
constexpr int64_t kControlInterval = 5;

/// An attend by its path (`block.3.attn`).
struct WindowSite {
  std::string path;
  int64_t heads = 0, kvHeads = 0;          // query heads; key-value heads, a divisor
  int64_t channels = 0, valueChannels = 0; // of a head: q and k; v
  std::vector<int64_t> windows;            // by head: what the model itself says
  /// Heads that left the control, with their window for good (pruned: 0).
  std::map<int64_t, int64_t> left;
  /// Of frozen heads that have some: first places of a document in sight behind the window.
  std::map<int64_t, int64_t> firstPlaces = {};

  /// Those of each head.
  std::vector<int64_t> placesOfHeads() const;

  /// Heads still under control, in order.
  std::vector<int64_t> live() const;
};

/// Options of `windows adaptive`, as docs/language.md lists them.
struct WindowOptions {
  int64_t every = kControlInterval;
  bool applySame = false, control = true;
  int64_t start = kNoBound; // kNoBound: the last candidate
  int64_t least = 0;        // 0: the first candidate
  enum class Grouping { Features, None, Random, Index } grouping = Grouping::Features;
  std::vector<int64_t> hierarchy{2, 2, 2, 2}; // children of a parent, bottom level first
  bool capped = true;
  int64_t keptUpdate = 0; // counted from 1; 0: at the end of the rate's warm-up
  enum class Topology { Refresh, Freeze, ReuseHeads } topology = Topology::Refresh;
  double threshold = 0.99, penalty = 16;
  double featureKeep = 0.9;
  bool joint = true, sharedScorers = false;
  int64_t baseWidth = 64, jointWidth = 256;
  bool relu = false;
  bool clampToParent = true;
  double resolutionKeep = 0.15;
  bool shuffle = false;
  std::optional<std::pair<int64_t, int64_t>> ramp;
  std::optional<int64_t> passthrough;
  bool kvGroups = false, live = false;
};

struct WindowRule {
  enum class Kind { Fixed, Listed, Random, File, Adaptive };
  Kind kind = Kind::Fixed;
  std::vector<int64_t> windows;              // Fixed: one; Random, Adaptive: candidates
  std::vector<std::vector<int64_t>> heads;   // by site: heads in force, ascending
  std::vector<std::vector<int64_t>> targets; // Listed, File: by site, a window for each of `heads`
  bool permuted = false;                     // File: dealt out anew inside each site
  std::string problem;                       // File: why it could not be read; a checkpoint may have it
  std::vector<double> share;                 // Random
  bool redraw = false;                       // Random
  int64_t from = 0;                          // first step with these windows
  uint64_t seed = 0;
  WindowOptions adaptive;
};

struct WindowPlan {
  std::vector<WindowSite> sites; // every attend of the model, in order of the unrolled text
  std::vector<WindowRule> rules;
  int64_t positions = 0;   // T: of a training row
  int64_t warmupSteps = 0; // of the rate
};

} // namespace weft::rt
