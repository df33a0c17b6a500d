//===- Trainer.h - The training loop's own state ----------------*- C++ -*-===//
//
// Private to runtime/train: Train.h is the way in.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/train/BoundProgram.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/Progress.h"
#include "runtime/train/Train.h"

#include <numeric>

namespace weft::rt {

class Trainer {
public:
  Trainer(Machine &machine, const Recipe &recipe, const TrainData &data, const EvalData *eval,
          RunDirectory &run, const TrainOptions &options, Console &console, BoundProgram micro,
          BoundProgram update, std::optional<BoundProgram> observe);

  absl::StatusOr<TrainSummary> go();
  /// Waits for what is under way; of a step that was only begun nothing stays behind.
  absl::Status settle();

private:
  struct Step {
    double loss = 0, rate = 0, gradNorm = 0;
    bool skipped = false;
  };
  /// The micro-batches of a step, begun: losses lie in slots of `program`, from `first` on.
  struct Begun {
    BoundProgram *program = nullptr;
    size_t first = 0;
    std::vector<int64_t> counted; // targets of each
    int64_t targets() const { return std::reduce(counted.begin(), counted.end()); }
  };

  absl::Status checkGroups() const;
  absl::Status checkRoom() const;
  absl::Status begin();
  absl::Status resumeFrom(const std::string &checkpoint);
  absl::StatusOr<Step> step(int64_t number);
  absl::StatusOr<Begun> beginStep(int64_t number);
  bool goesAhead(int64_t number) const;
  absl::Status startUpdate(int64_t number, int64_t targets);
  absl::Status afterControl(int64_t number);
  absl::Status collect(const Begun &begun, bool updated, Step &step);
  int32_t noiseOf(int64_t number, int64_t micro) const;
  absl::StatusOr<Step> takeStep(int64_t number);
  absl::StatusOr<BoundProgram *> programFor(int64_t number);
  absl::Status rehearse(int64_t number);
  absl::Status beginControl(const std::string &checkpoint);
  absl::Status setRates(int64_t number);
  absl::Status reportSkip(int64_t number, const Step &step);
  absl::StatusOr<std::string> firstBroken(int64_t number);
  absl::Status logStep(const Step &step);
  absl::Status runEval();
  absl::Status logWatched();
  absl::Status save();
  CheckpointInfo info() const;
  double elapsed() const;

  Machine &machine;
  const Recipe &recipe;
  const TrainData &data;
  const EvalData *eval;
  RunDirectory &run;
  const TrainOptions &options;
  Console &console;
  BoundProgram micro, update;
  std::optional<BoundProgram> observe;        // micro with statistics of heads
  std::optional<absl::StatusOr<Begun>> ahead; // of the next step
  int64_t end = 0;                            // the last step of this call
  Progress progress;
  TrainSummary summary;
  int64_t savedStep = -1, evaluatedStep = -1;
  int64_t skippedInRow = 0, skipsReported = 0;
  int64_t stepsDone = 0, stepsLogged = 0; // of this call; up to the last log line
  double stepSeconds = 0, secondsLogged = 0;
  double secondsBefore = 0; // of the run before this call
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace weft::rt
