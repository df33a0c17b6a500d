//===- Phases.h - Training a model whose plan decides on the way -*- C++ -*-===//
//
// A phase is one executable. It ends where a statement of the plan freezes or
// prunes heads: the run saves, decides, compiles anew with what was decided, and
// goes on with the same state, less the slices of heads that left.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "tools/weft/Freeze.h"

#include "runtime/train/Train.h"

namespace weft {

struct PhaseSetup {
  Program &program; // its record of decisions grows
  const Request &request;
  PipelineOptions options;
  const rt::Recipe &recipe;
  const rt::TrainData &data;
  const rt::EvalData *held = nullptr;
  const rt::CalibrationSplit *split = nullptr;
  rt::RunDirectory &run;
  rt::Console &console;
  /// After each compilation.
  std::function<void(const rt::Machine &, const MachineReport &)> describe;
};

/// rt::train over all phases. `train` as for one phase; without resume the record
/// of `setup.program` is empty, or that of the run it starts from. A resumed run
/// takes the record out of its checkpoint before this is called. Writes heads.json
/// into the run and a line "freeze" into its log after each decision.
absl::StatusOr<rt::TrainSummary> trainInPhases(const PhaseSetup &setup, rt::TrainOptions train);

/// Where a resumed run stands: its checkpoint, or "" before the first.
struct Standing {
  std::string checkpoint;
  int64_t step = 0;
};
/// Reads the record of decisions of the run's newest checkpoint into `program`.
absl::StatusOr<Standing> standingOf(const std::string &run, Program &program);

} // namespace weft
