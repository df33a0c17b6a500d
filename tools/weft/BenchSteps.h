//===- BenchSteps.h - Programs that weft bench times ------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/control/WindowControl.h"

#include <string>
#include <vector>

namespace weft {

/// 0 for none.
double median(std::vector<double> values);

/// One program with drawn tensors for all its ports: tokens and targets below
/// `vocabulary`, one document a row, an inverse count of 1 / targets, a small rate;
/// decoding stands at the end of its cache.
class BenchProgram {
public:
  BenchProgram(rt::Machine &machine, const std::string &name, int64_t vocabulary, int64_t targets);
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
  BenchSteps(rt::Machine &machine, rt::WindowControl *control, bool chooses, int64_t vocabulary,
             int64_t tokens)
      : control(control), chooses(chooses), machine(machine), micro(machine, "micro", vocabulary, tokens),
        update(machine, "update", vocabulary, tokens), observe(machine, "observe", vocabulary, tokens) {}

  /// Each program once, uncounted.
  absl::Status warmUp();
  /// Once more, where a second run makes graphs.
  absl::Status warmGraphs();
  absl::Status run();
  /// Waits for what was begun behind the last step.
  absl::Status finish() { return machine.wait(~uint64_t{0}); }

  std::vector<double> seconds, plain, controlled;

private:
  absl::Status begin(bool observes);
  absl::Status step(bool observes, int64_t of, bool goesOn);

  rt::WindowControl *control;
  const bool chooses;
  bool begun = false; // the next step's gradients
  rt::Machine &machine;
  BenchProgram micro, update, observe;
  int64_t number = 1;
};

} // namespace weft
