//===- Train.h - The training loop ------------------------------*- C++ -*-===//
//
// A step: program `micro` once for each micro-batch (it adds gradients into the
// state), then `update` with 1 / targets of the whole step, so that unequal
// micro-batches weigh by their targets. Steps count from 1; batches, rates and
// bias corrections are pure functions of the step number and the count of
// skipped steps, which is all a resumed run needs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/Recipe.h"
#include "runtime/data/Batches.h"
#include "runtime/measure/Watch.h"
#include "runtime/train/Control.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Interrupt.h"
#include "runtime/train/RunDirectory.h"

#include <functional>
#include <optional>
#include <set>
#include <string>

namespace weft::rt {

struct TrainOptions {
  /// Go on from the latest checkpoint; without one, from step 0.
  bool resume = false;
  /// A checkpoint whose parameters a new run starts from; its moments start at 0.
  /// Saved as step 0 at once, so that a resumed run starts there too.
  std::string from;
  /// Paths of branches that plans drop: a checkpoint may still have their tensors.
  std::set<std::string, std::less<>> dropped;
  /// Return, saved, after this step; the rest is for a later call.
  std::optional<int64_t> until;
  /// Asked after every step: true saves and returns.
  std::function<bool()> stop = InterruptGuard::requested;
  /// Where lines for people go; null: nowhere.
  Console *console = nullptr;
  /// Reported at every evaluation, a line each.
  std::vector<Watched> watch;
  /// Of the held-out tokens: evaluations report the loss by region.
  std::shared_ptr<const RegionLabels> regions;
  /// Chooses windows as the run goes on; null: they stay. Outlives the call. Where
  /// it has control steps, the machine needs program `observe`.
  Control *control = nullptr;
  /// What plans decided so far; kept in checkpoints.
  Json decisions;
  /// Asked after every step with its loss: true saves and returns, `triggered`.
  std::function<bool(int64_t step, double loss)> trigger;
  /// Where decisions change while steps are made (a trigger's average): asked at
  /// every save in place of `decisions`.
  std::function<Json()> decisionsNow;
  /// Fills parameters, moments and patterns in place of what initialisation or
  /// the checkpoint would bring: another executable held this state before
  /// (runtime/train/Migrate.h). A resumed run then saves its checkpoint anew.
  std::function<absl::Status(Machine &)> fill;
};

struct TrainSummary {
  int64_t step = 0, totalSteps = 0;
  int64_t tokens = 0, skipped = 0; // since the run's start
  double loss = 0;                 // of the last step done by this call; NaN if none was
  double tokensPerSecond = 0;      // of this call's steps, saving and evaluating left out
  double seconds = 0;              // since the run's start
  std::optional<EvalResult> eval;  // after the last step of the run
  bool interrupted = false;        // exit with kInterruptedExit
  bool triggered = false;          // by TrainOptions::trigger
  std::string checkpoint;          // the last one written or found
};

/// Trains until data.steps(), options.until or options.stop. Without resume, the
/// state is initialised from recipe.seed. `eval` may be null. A step whose
/// gradient norm is not finite changes no weight, is named with its first broken
/// gradient, and counts as skipped. Lines go to log.jsonl as runtime/train/Log.h
/// says. Same machine, recipe and data give the same bytes in the checkpoint.
///
/// Errors: of machine, data and files; ResourceExhausted before the first step
/// when there is no room for a checkpoint; FailedPrecondition after 50 skipped
/// steps in a row, or when the checkpoint does not fit.
absl::StatusOr<TrainSummary> train(Machine &machine, const Recipe &recipe, const TrainData &data,
                                   const EvalData *eval, RunDirectory &run, const TrainOptions &options);

} // namespace weft::rt
