//===- FreezeRecord.h - What freezing and pruning decided -------*- C++ -*-===//
//
// The decision record of `freeze` and `prune`: which heads, with which windows,
// and how far each statement is. It is the member "freeze" of a checkpoint's
// decisions; the patterns themselves are state, `pattern/SITE/a` and `/r`, or `/p`.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/FreezeSelect.h"

#include <deque>

namespace weft::rt {

/// Heads of a site that are frozen, ascending; rows of its pattern tables follow them.
struct FrozenHeads {
  std::vector<int64_t> heads;
  std::vector<int64_t> windows;     // one a head; kNoWindow without a bound
  std::vector<int64_t> firstPlaces; // one a head: places that stay in sight behind the window
  bool trained = false;
  bool dense = false; // a number a pair (WholePattern.h): the table is `pattern/SITE/p`
};

/// When the smoothed training loss stops to improve (SAF, "trigger"): with
/// ema = 0.98 ema + 0.02 loss, started at the first loss, it fires at step s when
/// ema[s - span] - ema[s] < limit x ema[s - span].
class LossTrigger {
public:
  LossTrigger(int64_t span, double limit) : span(span), limit(limit) {}
  /// True when it fires after this loss.
  bool add(double loss);
  Json toJson() const;
  absl::Status restore(const Json &saved);

private:
  int64_t span;
  double limit;
  std::deque<double> averages; // the newest last, at most span + 1
};

/// How far one statement of a plan is.
struct FreezeProgress {
  int64_t installed = 0; // groups that are in force
  int64_t tried = 0;     // groups that a budget was asked for
  int64_t due = -1;      // the step whose end a trigger fired at
  double spent = 0;      // of a budget: sum of the rises of perplexity
  bool done = false;
  std::vector<NamedHead> planned; // heads that this and later groups take, in rank order
  Json trigger;                   // of LossTrigger, or null
};

struct FreezeRecord {
  int64_t positions = 0;                              // T of the patterns, 0 without any
  std::map<std::string, FrozenHeads> frozen;          // by site
  std::map<std::string, std::vector<int64_t>> pruned; // by site, ascending
  std::map<std::string, FreezeProgress> statements;   // by PLAN/NUMBER of the statement in it
  Json events = Json::array();                        // reports, oldest first

  bool empty() const { return frozen.empty() && pruned.empty(); }
  bool isLive(const std::string &site, int64_t head) const;
  /// Heads of `site` of `heads` that are neither frozen nor pruned, ascending.
  std::vector<int64_t> liveHeads(const std::string &site, int64_t heads) const;
};

Json toJson(const FreezeRecord &record);

/// Reads decisions["freeze"]; null gives an empty record. Errors: DataLoss.
absl::StatusOr<FreezeRecord> readFreezeRecord(const Json &decisions);

} // namespace weft::rt
