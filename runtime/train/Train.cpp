//===- Train.cpp - The training loop: start, order, end ---------*- C++ -*-===//
#include "runtime/train/Train.h"

#include "runtime/core/File.h"
#include "runtime/train/State.h"
#include "runtime/train/Trainer.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::rt {

Trainer::Trainer(Machine &machine, const Recipe &recipe, const TrainData &data, const EvalData *eval,
                 RunDirectory &run, const TrainOptions &options, Console &console, BoundProgram micro,
                 BoundProgram update, std::optional<BoundProgram> observe)
    : machine(machine), recipe(recipe), data(data), eval(eval), run(run), options(options), console(console),
      micro(std::move(micro)), update(std::move(update)), observe(std::move(observe)),
      progress(console, data.steps()) {
  summary.totalSteps = data.steps();
  summary.loss = std::nan("");
}

double Trainer::elapsed() const {
  return secondsBefore + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

CheckpointInfo Trainer::info() const {
  CheckpointInfo info;
  info.model = machine.executable().model;
  info.build = machine.executable().build;
  info.step = summary.step;
  info.totalSteps = summary.totalSteps;
  info.tokens = summary.tokens;
  info.skipped = summary.skipped;
  info.seconds = elapsed();
  info.seed = recipe.seed;
  info.rows = data.tokensPerStep() / data.positions();
  info.positions = data.positions();
  info.source = run.source();
  info.decisions = options.decisionsNow ? options.decisionsNow() : options.decisions;
  if (options.control)
    info.control = options.control->state();
  return info;
}

/// Every hyper.G that `update` reads must have an optimiser in the recipe.
absl::Status Trainer::checkGroups() const {
  for (const Port &port : update.program().inputs) {
    size_t group = 0;
    if (absl::StartsWith(port.name, "hyper.") &&
        (!absl::SimpleAtoi(port.name.substr(6), &group) || group >= recipe.optimizers.size()))
      return absl::InvalidArgumentError(absl::StrCat("program 'update' reads '", port.name,
                                                     "', the recipe has ", recipe.optimizers.size(),
                                                     " optimisers"));
  }
  return absl::OkStatus();
}

/// A full disk is better found now than after the first epoch.
absl::Status Trainer::checkRoom() const {
  const uint64_t needed = checkpointBytes(machine.executable(), info());
  absl::StatusOr<uint64_t> available = freeBytes(run.checkpoints());
  if (!available.ok() || *available >= needed)
    return available.status();
  return absl::ResourceExhaustedError(absl::StrCat("no room for a checkpoint in '", run.checkpoints(),
                                                   "': needed ", describeBytes(needed), ", free ",
                                                   describeBytes(*available), "; choose another --out"));
}

absl::Status Trainer::begin() {
  if (absl::Status status = checkGroups(); !status.ok())
    return status;
  if (absl::Status status = checkRoom(); !status.ok())
    return status;
  // Before a checkpoint is read, too: it brings parameters and moments, but no tables.
  if (absl::Status status = initializeState(machine, recipe.seed); !status.ok())
    return status;
  if (options.resume) {
    absl::StatusOr<std::string> checkpoint = findCheckpoint(run.path());
    if (checkpoint.ok())
      return resumeFrom(*checkpoint);
    console.line(absl::StrCat("no checkpoint in '", run.path(), "' yet: starting from step 0"));
    if (absl::Status status = run.trimLog(-1); !status.ok())
      return status;
  }
  if (!options.from.empty())
    if (absl::Status status = loadCheckpoint(options.from, machine, LoadPart::Parameters, options.dropped);
        !status.ok())
      return status;
  if (options.fill)
    if (absl::Status status = options.fill(machine); !status.ok())
      return status;
  if (absl::Status status = beginControl(options.from); !status.ok())
    return status;
  if (!options.from.empty()) {
    if (absl::Status status = save(); !status.ok())
      return status;
    console.line(absl::StrCat("starting from the weights of '", options.from, "'"));
  }
  if (data.droppedTokens() == 0)
    return absl::OkStatus();
  console.line(absl::StrCat("long = drop left out ", data.droppedTokens(),
                            " tokens of documents longer than ", data.positions(), " positions"));
  return run.log({{"kind", "data"}, {"step", 0}, {"dropped_tokens", data.droppedTokens()}});
}

/// Windows as they stood at `checkpoint`; as they start without one, or in one
/// that was trained without a controller.
absl::Status Trainer::beginControl(const std::string &checkpoint) {
  if (!options.control)
    return absl::OkStatus();
  std::optional<ControlState> saved;
  if (!checkpoint.empty()) {
    absl::StatusOr<std::optional<ControlState>> read = readControlState(checkpoint);
    if (!read.ok())
      return read.status();
    saved = *std::move(read);
  }
  return options.control->begin(machine, saved ? &*saved : nullptr, summary.step);
}

absl::Status Trainer::resumeFrom(const std::string &checkpoint) {
  absl::StatusOr<CheckpointInfo> saved = readCheckpointInfo(checkpoint);
  if (!saved.ok())
    return saved.status();
  if (absl::Status status =
          options.fill ? options.fill(machine)
                       : loadCheckpoint(checkpoint, machine, LoadPart::ParametersAndMoments, options.dropped);
      !status.ok())
    return status;
  const CheckpointInfo now = info();
  if (saved->totalSteps != now.totalSteps)
    console.line(absl::StrCat("warning: the run was planned for ", saved->totalSteps, " steps, now for ",
                              now.totalSteps, ": rates of the schedule change from here on"));
  if (saved->seed != now.seed)
    console.line(absl::StrCat("warning: the seed was ", saved->seed, ", now ", now.seed,
                              ": the order of the data changes from here on"));
  if (saved->rows != now.rows || saved->positions != now.positions)
    console.line(
        absl::StrFormat("warning: a batch was %d x %d, now %d x %d: rows already seen may come again",
                        saved->rows, saved->positions, now.rows, now.positions));
  summary.step = saved->step;
  savedStep = options.fill ? -1 : saved->step;
  summary.tokens = saved->tokens;
  summary.skipped = saved->skipped;
  summary.checkpoint = checkpoint;
  secondsBefore = saved->seconds;
  console.line(absl::StrCat("resuming '", checkpoint, "' at step ", saved->step, " of ", now.totalSteps));
  if (absl::Status status = beginControl(checkpoint); !status.ok())
    return status;
  return run.trimLog(saved->step);
}

absl::StatusOr<TrainSummary> Trainer::go() {
  if (absl::Status status = begin(); !status.ok())
    return status;
  if (options.resume && options.fill) // what was decided is on disk before the next step
    if (absl::Status status = save(); !status.ok())
      return status;
  end = std::min(summary.totalSteps, options.until.value_or(summary.totalSteps));
  while (summary.step < end) {
    absl::StatusOr<Step> done = step(summary.step + 1);
    if (!done.ok())
      return done.status();
    const bool last = summary.step == end;
    if (stepsDone == 1 || last || done->skipped || summary.step % std::max<int64_t>(recipe.logEvery, 1) == 0)
      if (absl::Status status = logStep(*done); !status.ok())
        return status;
    if (recipe.evalEvery > 0 && summary.step % recipe.evalEvery == 0)
      if (absl::Status status = runEval(); !status.ok())
        return status;
    if (recipe.saveEvery > 0 && summary.step % recipe.saveEvery == 0)
      if (absl::Status status = save(); !status.ok())
        return status;
    if (options.trigger && options.trigger(summary.step, done->loss)) {
      summary.triggered = true;
      break;
    }
    if (!last && options.stop && options.stop()) {
      summary.interrupted = true;
      break;
    }
  }
  // The evaluation comes after the save: what it takes to lose is then on disk.
  if (absl::Status status = save(); !status.ok())
    return status;
  if (summary.step == summary.totalSteps)
    if (absl::Status status = runEval(); !status.ok())
      return status;
  summary.seconds = elapsed();
  if (stepSeconds > 0)
    summary.tokensPerSecond = static_cast<double>(stepsDone * data.tokensPerStep()) / stepSeconds;
  return summary;
}

absl::Status Trainer::logStep(const Step &step) {
  TrainLine line;
  line.step = summary.step;
  line.tokens = summary.tokens;
  line.loss = step.loss;
  line.rate = step.rate;
  line.gradNorm = step.gradNorm;
  line.skipped = summary.skipped;
  const double interval = stepSeconds - secondsLogged;
  line.tokensPerSecond =
      static_cast<double>((stepsDone - stepsLogged) * data.tokensPerStep()) / std::max(interval, 1e-9);
  line.seconds = elapsed();
  stepsLogged = stepsDone;
  secondsLogged = stepSeconds;
  if (absl::Status status = run.log(toJson(line)); !status.ok() || !options.control)
    return status;
  return run.log(options.control->line(summary.step));
}

absl::Status Trainer::runEval() {
  if (evaluatedStep == summary.step)
    return absl::OkStatus();
  if (absl::Status status = logWatched(); !status.ok())
    return status;
  if (!eval)
    return absl::OkStatus();
  absl::StatusOr<EvalResult> result = evaluate(machine, *eval, options.regions.get(), options.control);
  if (!result.ok())
    return result.status();
  summary.eval = *result;
  console.line(absl::StrFormat("step %d: held-out loss %.4f, perplexity %.2f, %d targets, %s", summary.step,
                               result->loss, result->perplexity, result->targets,
                               describeSeconds(result->seconds)));
  OrderedJson line =
      toJson(EvalLine{summary.step, result->loss, result->perplexity, result->targets, result->seconds});
  if (!result->regions.empty())
    line["regions"] = regionsJson(*result);
  return run.log(line);
}

absl::Status Trainer::logWatched() {
  evaluatedStep = summary.step;
  for (const Watched &watched : options.watch) {
    absl::StatusOr<WatchValues> values = watch(watched, machine);
    if (!values.ok())
      return values.status();
    if (absl::Status status = run.log(toJson(summary.step, watched, *values)); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Trainer::save() {
  if (savedStep == summary.step)
    return absl::OkStatus();
  absl::StatusOr<std::string> saved = saveCheckpoint(run.checkpoints(), machine, info(), recipe.saveKeep);
  if (!saved.ok())
    return saved.status();
  savedStep = summary.step;
  summary.checkpoint = *saved;
  if (options.control)
    for (const auto &[name, text] : options.control->files())
      if (absl::Status status = writeFileAtomic(absl::StrCat(run.path(), "/", name), text); !status.ok())
        return status;
  return absl::OkStatus();
}

absl::StatusOr<TrainSummary> train(Machine &machine, const Recipe &recipe, const TrainData &data,
                                   const EvalData *eval, RunDirectory &run, const TrainOptions &options) {
  absl::StatusOr<BoundProgram> micro = BoundProgram::bind(machine, "micro");
  if (!micro.ok())
    return micro.status();
  absl::StatusOr<BoundProgram> update = BoundProgram::bind(machine, "update");
  if (!update.ok())
    return update.status();
  std::optional<BoundProgram> observe;
  if (options.control && findProgram(machine.executable(), "observe")) {
    absl::StatusOr<BoundProgram> bound = BoundProgram::bind(machine, "observe");
    if (!bound.ok())
      return bound.status();
    observe = *std::move(bound);
  }
  Console silent(nullptr);
  Trainer trainer(machine, recipe, data, eval, run, options, options.console ? *options.console : silent,
                  *std::move(micro), *std::move(update), std::move(observe));
  absl::StatusOr<TrainSummary> summary = trainer.go();
  absl::Status settled = trainer.settle();
  return summary.ok() && !settled.ok() ? settled : summary;
}

} // namespace weft::rt
