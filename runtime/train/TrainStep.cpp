//===- TrainStep.cpp - The training loop: one step --------------*- C++ -*-===//
#include "runtime/train/Feed.h"
#include "runtime/train/LearningRate.h"
#include "runtime/train/Reducer.h"
#include "runtime/train/State.h"
#include "runtime/train/Trainer.h"

#include "runtime/core/Philox.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr int64_t kMaxSkippedInRow = 50;
/// Naming a broken gradient costs a step; after a few it is known.
constexpr int64_t kMaxSkipsReported = 3;

} // namespace

/// hyper.G = rate, 1 / (1 - beta1^t), 1 / (1 - beta2^t), of Muon the rate alone; t counts
/// the updates that were made, as moments of skipped steps stay what they were.
absl::Status Trainer::setRates(int64_t number) {
  const double share = rateShare(recipe.schedule, number, summary.totalSteps);
  const auto updates = static_cast<double>(number - summary.skipped);
  for (size_t group = 0; group < recipe.optimizers.size(); ++group) {
    const std::string port = absl::StrCat("hyper.", group);
    const Optimizer &optimizer = recipe.optimizers[group];
    if (!update.hasInput(port))
      continue; // no parameter belongs to it
    std::vector<double> numbers{optimizer.lr * share};
    if (optimizer.kind == Optimizer::Kind::AdamW)
      for (double beta : {optimizer.beta1, optimizer.beta2})
        numbers.push_back(1 / (1 - std::pow(beta, updates)));
    absl::Status status = update.setFloats(port, numbers);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// What dropout draws with: another number each micro-batch, the same in a resumed run.
int32_t Trainer::noiseOf(int64_t number, int64_t micro) const {
  const uint64_t index = static_cast<uint64_t>(number * data.microBatches() + micro);
  return static_cast<int32_t>(Philox(recipe.seed, "train/noise").bits(index) & 0x7fffffff);
}

/// Runs `observe` before the step, where windows are decided for the step itself.
absl::Status Trainer::rehearse(int64_t number) {
  for (int64_t i = 0, count = options.control->rehearsals(number); i < count; ++i) {
    if (absl::Status status = options.control->before(machine); !status.ok())
      return status;
    for (int64_t micro = 0; micro < data.microBatches(); ++micro) {
      absl::StatusOr<Batch> batch = data.at(number - 1, micro);
      if (!batch.ok())
        return batch.status();
      if (absl::StatusOr<double> sum = runOnBatch(*observe, *std::move(batch), noiseOf(number, micro));
          !sum.ok())
        return sum.status();
    }
    if (absl::Status status = zeroState(machine, StateEntry::Role::Gradient); !status.ok())
      return status;
    if (absl::Status status = options.control->rehearsed(machine, number, i); !status.ok())
      return status;
  }
  return options.control->before(machine);
}

/// `micro`, or at a control step `observe`, with statistics at zero.
absl::StatusOr<BoundProgram *> Trainer::programFor(int64_t number) {
  if (!options.control || !options.control->observes(number))
    return &micro;
  if (!observe)
    return absl::InternalError(absl::StrCat("step ", number, " is a control step, and the executable of '",
                                            machine.executable().model, "' has no program 'observe'"));
  if (absl::Status status = rehearse(number); !status.ok())
    return status;
  return &*observe;
}

/// Starts the micro-batches of a step.
absl::StatusOr<Trainer::Begun> Trainer::beginStep(int64_t number) {
  absl::StatusOr<BoundProgram *> program = programFor(number);
  if (!program.ok())
    return program.status();
  // Two steps may be under way: every other one has the same slots.
  Begun begun{*program, static_cast<size_t>(number % 2 * data.microBatches()), {}};
  for (int64_t i = 0; i < data.microBatches(); ++i) {
    absl::StatusOr<Batch> batch = data.at(number - 1, i);
    if (!batch.ok())
      return batch.status();
    begun.counted.push_back(batch->counted);
    if (absl::Status status = startOnBatch(**program, *std::move(batch), noiseOf(number, i),
                                           begun.first + static_cast<size_t>(i));
        !status.ok())
      return status;
  }
  return begun;
}

/// Whether the next step may begin before this one's results are read. Rates of its
/// update depend on them, its gradients do not. Where state is read behind this
/// step, the machine stands still anyway.
bool Trainer::goesAhead(int64_t number) const {
  auto reads = [&](int64_t every) { return every > 0 && number % every == 0; };
  return number < end && !reads(recipe.evalEvery) && !reads(recipe.saveEvery) &&
         !(options.control && options.control->rehearsals(number + 1) > 0);
}

absl::Status Trainer::startUpdate(int64_t number, int64_t targets) {
  if (absl::Status status = setRates(number); !status.ok())
    return status;
  if (absl::Status status = update.setFloats("inverse_count", {1 / static_cast<double>(targets)});
      !status.ok())
    return status;
  return update.start(0);
}

absl::Status Trainer::afterControl(int64_t number) {
  if (!options.control)
    return absl::OkStatus();
  absl::StatusOr<std::string> warning = options.control->after(machine, number);
  if (warning.ok() && !warning->empty())
    console.line(*warning);
  return warning.status();
}

/// Reads what the step's programs gave.
absl::Status Trainer::collect(const Begun &begun, bool updated, Step &step) {
  // Runs end in order: where the update is done, the rest is.
  if (absl::Status status = updated ? update.wait(0) : absl::OkStatus(); !status.ok())
    return status;
  Reducer reducer;
  for (size_t i = 0; i < begun.counted.size(); ++i) {
    if (absl::Status status = begun.program->wait(begun.first + i); !status.ok())
      return status;
    absl::StatusOr<double> sum = begun.program->number("loss_sum", begun.first + i);
    if (!sum.ok())
      return sum.status();
    reducer.add(*sum, begun.counted[i]);
  }
  step.loss = reducer.mean();
  step.skipped = !updated;
  if (!updated) // no gradient: an update would only decay weights and moments
    return absl::OkStatus();
  absl::StatusOr<double> norm = update.number("grad_norm");
  if (!norm.ok())
    return norm.status();
  step.gradNorm = *norm;
  step.skipped = !std::isfinite(*norm);
  return absl::OkStatus();
}

/// The step itself. A machine that works beside the host gets the next step's
/// micro-batches before this step's results are read, so that it never stands still.
absl::StatusOr<Trainer::Step> Trainer::takeStep(int64_t number) {
  absl::StatusOr<Begun> begun = ahead ? *std::exchange(ahead, std::nullopt) : beginStep(number);
  if (!begun.ok())
    return begun.status();
  Step step;
  step.rate = recipe.optimizers.empty()
                  ? 0
                  : recipe.optimizers[0].lr * rateShare(recipe.schedule, number, summary.totalSteps);
  const bool updates = begun->targets() > 0, beside = begun->program->underWay();
  if (options.control)
    if (absl::Status status = options.control->look(machine, number); !status.ok())
      return status;
  if (updates)
    if (absl::Status status = startUpdate(number, begun->targets()); !status.ok())
      return status;
  if (absl::Status status = afterControl(number); !status.ok())
    return status;
  if (updates && beside && goesAhead(number)) {
    absl::StatusOr<Begun> next = beginStep(number + 1);
    if (absl::Status status = collect(*begun, updates, step); !status.ok())
      return status;
    ahead = std::move(next);
    return step;
  }
  absl::Status status = collect(*begun, updates, step);
  return status.ok() ? absl::StatusOr<Step>(step) : status;
}

absl::Status Trainer::settle() {
  absl::Status status = machine.wait(std::numeric_limits<uint64_t>::max());
  if (!ahead)
    return status;
  ahead.reset();
  return status.ok() ? zeroState(machine, StateEntry::Role::Gradient) : status;
}

absl::StatusOr<Trainer::Step> Trainer::step(int64_t number) {
  const auto before = std::chrono::steady_clock::now();
  absl::StatusOr<Step> done = takeStep(number);
  if (!done.ok())
    return done;
  stepSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  ++stepsDone;
  summary.step = number;
  summary.tokens += data.tokensPerStep();
  summary.loss = done->loss;
  skippedInRow = done->skipped ? skippedInRow + 1 : 0;
  if (done->skipped) {
    ++summary.skipped;
    // The next update's rates depend on it, and its gradients' place is needed now.
    if (absl::Status status = settle(); !status.ok())
      return status;
    if (absl::Status status = reportSkip(number, *done); !status.ok())
      return status;
  }
  const double speed = static_cast<double>(stepsDone * data.tokensPerStep()) / std::max(stepSeconds, 1e-9);
  progress.update(number, done->loss, speed,
                  static_cast<double>((summary.totalSteps - number) * data.tokensPerStep()) / speed);
  return done;
}

absl::Status Trainer::reportSkip(int64_t number, const Step &step) {
  if (skippedInRow >= kMaxSkippedInRow)
    return absl::FailedPreconditionError(
        absl::StrCat("stopped at step ", number, ": ", skippedInRow,
                     " steps in a row without a usable gradient; weights are those of step ",
                     number - skippedInRow, "; lower the rate, or lengthen the warm-up"));
  if (++skipsReported > kMaxSkipsReported)
    return absl::OkStatus();
  std::string text = absl::StrCat("warning: step ", number, " skipped: ");
  if (std::isfinite(step.gradNorm)) {
    absl::StrAppend(&text, "it has no target");
  } else {
    absl::StatusOr<std::string> broken = firstBroken(number);
    if (!broken.ok())
      return broken.status();
    absl::StrAppend(&text, "gradient norm ", step.gradNorm, ", loss ", step.loss,
                    broken->empty() ? ", each gradient alone is finite"
                                    : absl::StrCat(", first broken gradient '", *broken, "'"));
  }
  console.line(absl::StrCat(text, "; weights unchanged, ", summary.skipped, " skipped so far"));
  return absl::OkStatus();
}

/// Computes the gradients of a skipped step again (the weights did not change)
/// to name the first that is not finite; empty when all are.
absl::StatusOr<std::string> Trainer::firstBroken(int64_t number) {
  for (int64_t i = 0; i < data.microBatches(); ++i) {
    absl::StatusOr<Batch> batch = data.at(number - 1, i);
    if (!batch.ok())
      return batch.status();
    if (absl::StatusOr<double> sum = runOnBatch(micro, *std::move(batch), noiseOf(number, i)); !sum.ok())
      return sum.status();
  }
  std::string name;
  for (const StateEntry &entry : machine.executable().states) {
    if (entry.role != StateEntry::Role::Gradient)
      continue;
    absl::StatusOr<Tensor> gradient = machine.readState(entry.name);
    if (!gradient.ok())
      return gradient.status();
    if (!allFinite(*gradient)) {
      name = entry.name;
      break;
    }
  }
  if (absl::Status status = zeroState(machine, StateEntry::Role::Gradient); !status.ok())
    return status;
  return name;
}

} // namespace weft::rt
