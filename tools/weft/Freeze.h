//===- Freeze.h - Carrying out `freeze` and `prune` --------------*- C++ -*-===//
//
// A statement of a plan has events, each after a step; an event calibrates the
// model as it stands, chooses heads, fits their patterns and adds them to the
// record of decisions (runtime/control/FreezeRecord.h). What follows is compiled
// with the new record, and the state goes over by name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/weft/Session.h"

#include "runtime/control/FreezeRecord.h"
#include "runtime/control/Ranking.h"
#include "runtime/data/CalibrationSplit.h"
#include "runtime/train/Log.h"

namespace weft {

/// A `freeze` or `prune` of all plans in force, in their order.
struct Statement {
  std::string name; // PLAN/NUMBER: its key in FreezeRecord::statements
  const lang::Plan *plan = nullptr;
  const lang::FreezeRule *rule = nullptr;
};
std::vector<Statement> statementsOf(const Program &program);

/// What a statement needs of the text before training starts.
bool needsCalibration(const lang::FreezeRule &rule);
/// Rows of calibration that all statements need, and whether one has a budget.
struct CalibrationNeed {
  int64_t rows = 0;
  bool budget = false;
};
CalibrationNeed calibrationNeed(const Program &program);

/// Reads the files that statements name into `record`, which gets an entry for
/// each statement, and checks what a plan alone does not show; of a run of
/// `totalSteps`, that none comes too late. Errors name the statement and what to
/// change.
absl::Status prepareFreezing(const Program &program, const std::string &folder,
                             std::optional<int64_t> totalSteps, rt::FreezeRecord &record);

/// Whether something of a statement was decided, counted or read.
bool hasBegun(const rt::FreezeProgress &progress);

/// Where a model is used as it stands: statements that only training decides, and
/// that no run has taken up, are refused rather than left out. Errors: InvalidArgument.
absl::Status refuseUndecided(const Program &program);

/// As loadDecided, for what is only timed: heads of statements that nothing has decided
/// are drawn, their patterns weigh all keys alike, and a remark says so.
absl::StatusOr<std::unique_ptr<Program>> loadDrawn(const Request &request);

/// The earliest event that is left, with the step after whose end it comes.
struct FreezeEvent {
  Statement statement;
  int64_t step = 0;
};
std::optional<FreezeEvent> nextEvent(const Program &program, const rt::FreezeRecord &record,
                                     int64_t totalSteps);

/// What an event works on. `program.freeze` is the record so far.
struct FreezeContext {
  const Program &program;
  const Request &request;
  const rt::Machine &trained;
  const rt::CalibrationSplit *split = nullptr; // null where none is needed
  int64_t step = 0, totalSteps = 0;
  const rt::Ranking *earlier = nullptr; // to compare with, or null
  rt::Console *console = nullptr;       // shows how far calibration is, or null
};

struct FreezeOutcome {
  rt::FreezeRecord record;
  std::map<std::string, rt::Tensor> given; // patterns, and moments of trained ones
  rt::OrderedJson report;                  // the line of log.jsonl, kind "freeze"
  std::string table;                       // the same for people
  std::string times;                       // where its seconds went, for people; empty without calibration
};
absl::StatusOr<FreezeOutcome> decide(const FreezeContext &context, const Statement &statement);

/// The planned heads of the group that comes next, and whether none is left.
std::vector<rt::NamedHead> groupOf(const lang::FreezeRule &rule, const rt::FreezeProgress &progress);
bool isLastGroup(const lang::FreezeRule &rule, const rt::FreezeProgress &progress);

/// Heads of all statements as ranked last: what heads.json holds.
rt::OrderedJson headsFile(const rt::FreezeRecord &record);

/// Of a statement with schedule trigger: 5% of the steps, and the last step it may
/// wait for, 75% of them.
rt::LossTrigger lossTrigger(const lang::FreezeRule &rule, int64_t totalSteps);

} // namespace weft
