//===- Plan.h - A checked plan ----------------------------------*- C++ -*-===//
//
// What the checker makes of `plan NAME for MODEL { ... }`: every option typed
// and in range, every address resolved to heads of the model as it is after
// dropping, and one statement in force for each head.
//
// A head's number is Plan::firstHead[site] + its place among the query heads
// of that site, counted row-major.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Ast.h"
#include "frontend/Model.h"
#include "frontend/PlanSites.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

/// The window without a bound.
constexpr int64_t kFullWindow = std::numeric_limits<int64_t>::max();

/// `step 200` or `50% of steps`.
struct When {
  bool fraction = false;
  double amount = 0; // steps, or a share (0.5)
  bool operator==(const When &) const = default;
};

/// Options of `windows adaptive`, with the defaults of docs/language.md.
struct AdaptiveOptions {
  int64_t every = 5; // steps
  bool applySame = false, control = true;
  int64_t start = kFullWindow;
  int64_t least = 0; // 0: the smallest candidate
  enum class Grouping { Features, None, Random, Index } grouping = Grouping::Features;
  std::vector<int64_t> hierarchy; // children a parent, bottom level first
  bool capped = true;
  int64_t keptUpdate = 0; // 0: at the end of warm-up
  enum class Topology { Refresh, Freeze, ReuseHeads } topology = Topology::Refresh;
  double threshold = 0.99, penalty = 16;
  double featureKeep = 0.9; // 0: latest
  bool joint = true, sharedScorers = false;
  int64_t baseWidth = 64, jointWidth = 256;
  bool relu = false;
  bool clampToParent = true;
  double resolutionKeep = 0.15; // 0: latest
  bool shuffle = false;
  std::optional<std::pair<int64_t, int64_t>> ramp; // steps
  std::optional<int64_t> passthrough;              // after this many steps
  bool kvGroups = false, live = false;
  std::optional<uint64_t> seed; // nullopt: the run's
};

struct WindowsRule {
  enum class Kind { Fixed, Listed, Random, File, Adaptive };
  Kind kind = Kind::Fixed;
  std::vector<int64_t> windows; // Fixed: one; Listed: one a head of a site; Random, Adaptive: candidates
  std::string file;
  bool permuted = false;     // File
  std::vector<double> share; // Random: one a candidate, sum 1
  bool redraw = false;       // Random
  std::optional<uint64_t> seed;
  When from; // step 0: from the start
  AdaptiveOptions adaptive;
  std::vector<int64_t> addressed; // heads that the address names, sorted
  std::vector<int64_t> heads;     // those that no narrower statement takes
  Place place;
};

/// `freeze` and `prune`.
struct FreezeRule {
  bool prune = false;
  enum class Amount { Share, Count, Named, File };
  Amount amount = Amount::Share;
  double share = 0.25;
  int64_t count = 0;
  std::string file;
  When at{true, 0.5};
  std::string by = "variance"; // a word of the table, or random(matched), random(unmatched)
  bool highest = false, perLayer = false, kvGroups = false;
  std::string pattern = "mean"; // dirichlet and file carry the fields below
  double dirichlet = 0;
  std::string patternFile;
  bool dense = false;                    // as the drawn patterns always are
  std::optional<double> tolerance = 0.2; // nats a row
  int64_t calibrateRows = 16;
  int64_t rounds = 200;
  double stop = 1e-4;
  enum class Schedule { Once, Groups, Budget, Trigger } schedule = Schedule::Once;
  int64_t groups = 1;
  When groupsFrom, groupsTo;
  double limit = 0; // Budget, Trigger: a share
  bool trained = false;
  double negligible = 0.00048828125; // 2 ** -11
  bool cutMiddle = false;            // leave it out behind a document's first places
  std::optional<uint64_t> seed;
  std::vector<int64_t> addressed, heads;
  Place place;
};

struct DropRule {
  std::string layer, branch;    // block, ffn
  std::vector<int64_t> indices; // layers that lose it, before dropping
  enum class Match { Depth, Params, Flops, Explicit } match = Match::Depth;
  std::string count = "full"; // full | causal | executed
  int64_t length = 0;         // of flops
  bool nearest = false;
  double tolerance = 0.001;
  int64_t oldDepth = 0, newDepth = 0;
  double mismatch = 0; // reached, as a share: new / old - 1
  Place place;
};

struct Plan {
  std::string name, model;
  std::string text; // of the plan and those it uses, for run.weft
  std::vector<DropRule> drops;
  std::vector<WindowsRule> windows;
  std::vector<FreezeRule> freezes;
  std::string depthSetting;       // what dropping changes, or empty
  std::vector<HeadSite> sites;    // after dropping
  std::vector<int64_t> firstHead; // by site

  /// By path of a site that a statement names (`block.3.attn`): one window a
  /// query head from step 0 on, kFullWindow without a bound. Heads under
  /// statements that decide later have their window of the model.
  std::map<std::string, std::vector<int64_t>, std::less<>> fixedWindows;
};

/// Checks plan `name` of `file` against `model`. Every independent error goes
/// to `diagnostics` (W04xx); with any there is no plan.
std::optional<Plan> checkPlan(const ast::File &file, const SourceFiles &sources, std::string_view name,
                              const Model &model, Diagnostics &diagnostics);

/// What a plan and the length and accumulation of a recipe can have against one
/// another: candidates beyond the length (a warning), `apply = same` with
/// micro-batches, dense patterns at more than 2048 positions.
void checkPlanAgainst(const Plan &plan, int64_t positions, int64_t microBatches, Diagnostics &diagnostics);

/// `model` after the plan's `drop` statements: at its new depth, and without the
/// branches that they take.
Model afterDrops(const Plan &plan, Model model);

/// The table layer x head of `weft plan show`.
std::string printPlan(const Plan &plan);

} // namespace weft::lang
