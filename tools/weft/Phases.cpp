//===- Phases.cpp - Training a model whose plan decides on the way --------===//

#include "tools/weft/Phases.h"

#include "tools/weft/WindowPlans.h"

#include "runtime/core/File.h"
#include "runtime/cuda/StateCopy.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Migrate.h"
#include "runtime/train/State.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cmath>

using namespace weft;

namespace {

class Phases {
public:
  Phases(const PhaseSetup &setup, rt::TrainOptions train)
      : setup(setup), program(setup.program), train(std::move(train)), total(setup.data.steps()) {}

  absl::StatusOr<rt::TrainSummary> go();

private:
  absl::Status compile();
  absl::Status fillFromDisk();
  absl::Status carryOut(const Statement &statement);
  absl::StatusOr<bool> withinBudget(const Statement &statement, FreezeOutcome &outcome, rt::Machine &before,
                                    rt::Machine &after);
  absl::Status logDecision(FreezeOutcome &outcome, rt::Machine &before, rt::Machine &after);
  void setOptions();
  bool observe(int64_t number, double loss);

  const PhaseSetup &setup;
  Program &program;
  rt::TrainOptions train;
  int64_t total, step = 0;
  std::string checkpoint; // that a resumed run starts from
  std::unique_ptr<rt::Machine> machine, previous;
  std::map<std::string, rt::Tensor> given; // of the last decision, with `previous`
  bool filled = false;                     // the machine holds the state of `step`
  bool fresh = false;                      // compiled for a decision that is not on disk yet
  std::map<std::string, rt::LossTrigger> triggers;
  std::unique_ptr<rt::WindowControl> control;
};

absl::Status Phases::compile() {
  MachineReport report;
  absl::StatusOr<std::unique_ptr<rt::Machine>> made = makeMachine(
      program, setup.options, setup.request, {step == 0 && !train.resume ? setup.run.trail() : ""}, &report);
  if (!made.ok())
    return made.status();
  machine = std::move(*made);
  filled = false;
  setup.describe(*machine, report);
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> windows = makeWindowControl(program, total);
  if (!windows.ok())
    return windows.status();
  control = std::move(*windows);
  if (control)
    countWorkOf(*control, *machine);
  train.control = control.get();
  return absl::OkStatus();
}

/// The state of `step`, where no phase of this call has left it in memory.
absl::Status Phases::fillFromDisk() {
  if (filled)
    return absl::OkStatus();
  if (absl::Status status = rt::initializeState(*machine, setup.recipe.seed); !status.ok())
    return status;
  absl::Status status;
  if (!checkpoint.empty())
    status = rt::loadCheckpoint(checkpoint, *machine, rt::LoadPart::ParametersAndMoments);
  else if (!train.from.empty())
    status = rt::loadCheckpoint(train.from, *machine, rt::LoadPart::Parameters);
  filled = status.ok();
  return status;
}

/// What the loss of a step means to statements that wait for it.
bool Phases::observe(int64_t number, double loss) {
  bool fired = false;
  if (!std::isfinite(loss)) // a skipped step
    return false;
  for (const Statement &statement : statementsOf(program)) {
    rt::FreezeProgress &progress = program.freeze.statements[statement.name];
    if (statement.rule->schedule != lang::FreezeRule::Schedule::Trigger || progress.done || progress.due >= 0)
      continue;
    auto [found, isNew] = triggers.emplace(statement.name, lossTrigger(*statement.rule, total));
    if (isNew)
      found->second.restore(progress.trigger).IgnoreError(); // it was checked when it was read
    const bool fires = found->second.add(loss);
    progress.trigger = found->second.toJson();
    if (fires)
      progress.due = number;
    fired |= fires;
  }
  return fired;
}

void Phases::setOptions() {
  train.trigger = [this](int64_t number, double loss) { return observe(number, loss); };
  train.decisionsNow = [this] {
    rt::Json decisions = train.decisions.is_object() ? train.decisions : rt::Json::object();
    decisions["freeze"] = rt::toJson(program.freeze);
    return decisions;
  };
  train.fill = nullptr;
  if (fresh)
    train.fill = [this](rt::Machine &into) {
      return rt::migrateState(*previous, into, given, rt::copyStateOnDevice);
    };
}

absl::StatusOr<rt::TrainSummary> Phases::go() {
  const std::optional<int64_t> asked = train.until;
  if (train.resume) {
    absl::StatusOr<Standing> standing = standingOf(setup.run.path(), program);
    if (!standing.ok())
      return standing.status();
    checkpoint = standing->checkpoint;
    step = standing->step;
  }
  if (absl::Status status = compile(); !status.ok())
    return status;
  while (true) {
    std::optional<FreezeEvent> event = nextEvent(program, program.freeze, total);
    if (event && event->step <= step && step < total) {
      if (absl::Status status = carryOut(event->statement); !status.ok())
        return status;
      continue;
    }
    train.until = asked;
    if (event && event->step < total)
      train.until = std::min(asked.value_or(total), event->step);
    setOptions();
    absl::StatusOr<rt::TrainSummary> summary =
        rt::train(*machine, runtimeRecipe(program), setup.data, setup.held, setup.run, train);
    if (!summary.ok())
      return summary;
    step = summary->step;
    checkpoint = summary->checkpoint;
    filled = true;
    fresh = false;
    previous.reset();
    train.resume = true;
    if (summary->interrupted || step >= asked.value_or(total) || step >= total)
      return summary;
  }
}

absl::Status Phases::carryOut(const Statement &statement) {
  if (absl::Status status = fillFromDisk(); !status.ok())
    return status;
  FreezeContext context{program, setup.request, *machine, setup.split, step, total, nullptr, &setup.console};
  absl::StatusOr<FreezeOutcome> outcome = decide(context, statement);
  if (!outcome.ok())
    return outcome.status();
  const rt::FreezeRecord before = program.freeze;
  std::unique_ptr<rt::Machine> old = std::move(machine);
  adoptRecord(program, outcome->record);
  if (absl::Status status = compile(); !status.ok())
    return status;
  if (absl::Status status = rt::initializeTables(*machine); !status.ok())
    return status;
  if (absl::Status status = rt::migrateState(*old, *machine, outcome->given, rt::copyStateOnDevice);
      !status.ok())
    return status;
  filled = true;
  if (statement.rule->schedule == lang::FreezeRule::Schedule::Budget) {
    absl::StatusOr<bool> fits = withinBudget(statement, *outcome, *old, *machine);
    if (!fits.ok())
      return fits.status();
    if (!*fits) { // the heads stay; the next group is tried later
      const rt::FreezeProgress tried = program.freeze.statements[statement.name];
      adoptRecord(program, before);
      rt::FreezeProgress &progress = program.freeze.statements[statement.name];
      progress.tried = tried.tried;
      progress.planned = tried.planned;
      const bool wasFresh = fresh;
      if (absl::Status status = compile(); !status.ok())
        return status;
      machine = std::move(old);
      filled = true;
      fresh = wasFresh;
      return absl::OkStatus();
    }
  }
  if (absl::Status status = logDecision(*outcome, *old, *machine); !status.ok())
    return status;
  previous = std::move(old);
  given = std::move(outcome->given);
  fresh = true;
  return absl::OkStatus();
}

/// Whether the rise of perplexity on the budget's split, with those before it,
/// stays within the limit; counts it when it does.
absl::StatusOr<bool> Phases::withinBudget(const Statement &statement, FreezeOutcome &outcome,
                                          rt::Machine &before, rt::Machine &after) {
  absl::StatusOr<rt::EvalResult> old = rt::evaluate(before, *setup.split->budget),
                                 now = rt::evaluate(after, *setup.split->budget);
  if (!old.ok() || !now.ok())
    return old.ok() ? now.status() : old.status();
  const double rise = now->perplexity / old->perplexity - 1;
  rt::FreezeProgress &progress = program.freeze.statements[statement.name];
  ++progress.tried;
  const bool fits = progress.spent + rise <= statement.rule->limit;
  const rt::OrderedJson line = {{"kind", "freeze_budget"},
                                {"step", step},
                                {"statement", statement.name},
                                {"rise", rise},
                                {"spent", progress.spent},
                                {"limit", statement.rule->limit},
                                {"installed", fits}};
  if (fits)
    progress.spent += rise;
  setup.console.line(absl::StrFormat("step %d: budget of %s: perplexity %+.3f%%, %.3f%% spent of %.3f%%: %s",
                                     step, statement.name, 100 * rise, 100 * progress.spent,
                                     100 * statement.rule->limit, fits ? "installed" : "left as they were"));
  outcome.report["budget"] = {{"rise", rise}, {"spent", progress.spent}};
  absl::Status status = setup.run.log(line);
  return status.ok() ? absl::StatusOr<bool>(fits) : status;
}

absl::Status Phases::logDecision(FreezeOutcome &outcome, rt::Machine &before, rt::Machine &after) {
  if (setup.held) {
    absl::StatusOr<rt::EvalResult> old = rt::evaluate(before, *setup.held),
                                   now = rt::evaluate(after, *setup.held);
    if (!old.ok() || !now.ok())
      return old.ok() ? now.status() : old.status();
    outcome.report["cost"] = {{"loss_before", old->loss},
                              {"loss_after", now->loss},
                              {"perplexity_rise", now->perplexity / old->perplexity - 1}};
    outcome.table += absl::StrFormat("  held-out loss %.4f before, %.4f after: perplexity %+.2f%%\n",
                                     old->loss, now->loss, 100 * (now->perplexity / old->perplexity - 1));
  }
  rt::OrderedJson line = outcome.report;
  program.freeze.events.push_back(rt::Json(outcome.report));
  if (!outcome.times.empty())
    setup.console.line(outcome.times);
  setup.console.line(outcome.table.substr(0, outcome.table.size() - 1));
  if (absl::Status status = setup.run.log(line); !status.ok())
    return status;
  return rt::writeFileAtomic(setup.run.path() + "/heads.json", headsFile(program.freeze).dump(2) + "\n");
}

} // namespace

absl::StatusOr<Standing> weft::standingOf(const std::string &run, Program &program) {
  absl::StatusOr<std::string> checkpoint = rt::findCheckpoint(run);
  if (!checkpoint.ok())
    return absl::IsNotFound(checkpoint.status()) ? absl::StatusOr<Standing>(Standing()) : checkpoint.status();
  absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(*checkpoint);
  if (!info.ok())
    return info.status();
  absl::StatusOr<rt::FreezeRecord> record = rt::readFreezeRecord(info->decisions);
  if (!record.ok())
    return record.status();
  // Files of statements were read when the run began; a checkpoint remembers what they said.
  for (auto &[name, progress] : program.freeze.statements)
    record->statements.emplace(name, progress);
  adoptRecord(program, *std::move(record));
  return Standing{*checkpoint, info->step};
}

absl::StatusOr<rt::TrainSummary> weft::trainInPhases(const PhaseSetup &setup, rt::TrainOptions train) {
  return Phases(setup, std::move(train)).go();
}
