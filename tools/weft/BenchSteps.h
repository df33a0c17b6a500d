//===- BenchSteps.h - Programs that weft bench times ------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/control/WindowControl.h"

#include <map>
#include <string>
#include <vector>

namespace weft {

/// 0 for none.
double median(std::vector<double> values);

/// How long documents are in rows that are drawn.
struct DrawnDocuments {
  int64_t positions = 0; // 0: one document a row
  bool mean = false;     // lengths 1 + the whole part of an exponential draw, on average about `positions`
};

/// `512` or `~512`. Errors: InvalidArgument.
absl::StatusOr<DrawnDocuments> parseDocuments(const std::string &text);

/// What ports are filled with.
struct DrawnInputs {
  int64_t vocabulary = 2, targets = 1;
  DrawnDocuments documents;
};

/// One program with drawn tensors for all its ports: tokens and targets below
/// `vocabulary`, documents, an inverse count of 1 / targets, a small rate;
/// decoding stands at the end of its cache.
class BenchProgram {
public:
  BenchProgram(rt::Machine &machine, const std::string &name, const DrawnInputs &drawn);
  absl::Status run() { return machine.run(name, inputs, results); }
  absl::Status start();
  absl::Status wait() { return machine.wait(number); }
  /// Whether the last start came back before the work was done.
  bool underWay() const { return number != 0; }

private:
  rt::Machine &machine;
  std::string name;
  std::vector<rt::Tensor> inputs, results;
  uint64_t number = 0;
};

/// Steps of training, control steps among them, and what each took, from the end of
/// the one before to its own. In the training loop's order (runtime/train/Trainer.h):
/// on a machine that works beside the host the next step's gradients are begun before
/// this step's end is waited for.
class BenchSteps {
public:
  BenchSteps(rt::Machine &machine, rt::WindowControl *control, bool chooses, int64_t micros,
             const DrawnInputs &drawn)
      : control(control), chooses(chooses), micros(micros), machine(machine), micro(machine, "micro", drawn),
        update(machine, "update", drawn), observe(machine, "observe", drawn) {}

  /// Each program once, uncounted.
  absl::Status warmUp();
  /// Once more, where a second run makes graphs.
  absl::Status warmGraphs();
  absl::Status run();
  /// Waits for what was begun behind the last step.
  absl::Status finish() { return machine.wait(~uint64_t{0}); }

  std::vector<double> seconds, plain, controlled;
  /// Of control steps: how long windows took to come and be decided, and how long before the
  /// step's end the next one was begun.
  std::vector<double> decided, ahead;
  /// Of each program, where a GPU times it: between its own events, without the copies around it.
  std::map<std::string, std::vector<double>> deviceSeconds;

private:
  /// Of step `number`: whether the next is begun before its end, and is a control step.
  bool goesOn() const { return !chooses || control->rehearsals(number + 1) == 0; }
  bool observesNext() const { return chooses && control->observes(number + 1); }
  absl::Status begin(bool observes);
  absl::Status step(bool observes, int64_t of, bool goesOn, bool observesNext);
  void timeProgram(const std::string &program);

  rt::WindowControl *control;
  const bool chooses;
  const int64_t micros; // of a step
  bool begun = false;   // the next step's gradients
  rt::Machine &machine;
  BenchProgram micro, update, observe;
  int64_t number = 1;
};

} // namespace weft
