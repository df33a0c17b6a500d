//===- Control.h - What decides while a run trains --------------*- C++ -*-===//
//
// The training loop knows a controller of windows as this. A control step runs
// program `observe` in place of `micro`: the same gradients, and statistics of
// each head added into state `control/statistics/SITE`; what is decided from
// them goes into `control/windows/SITE` and is in force from the next step.
// Steps are numbered from 1, as in Train.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/core/Json.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::rt {

/// What a controller carries from step to step: checkpoints hold it.
struct ControlState {
  Json json;
  std::vector<std::pair<std::string, Tensor>> tensors;
};

class Control {
public:
  virtual ~Control() = default;

  /// After the machine's state was filled: goes on from `saved` after `step`
  /// steps, or (null) starts anew, and writes the windows of the next step.
  /// Errors: FailedPrecondition when `saved` belongs to another model or plan.
  virtual absl::Status begin(Machine &machine, const ControlState *saved, int64_t step) = 0;

  /// Whether step `number` is a control step.
  virtual bool observes(int64_t number) const = 0;
  /// How often a control step runs `observe` before the run that it learns from;
  /// more than 0 only where windows are decided from the step they apply to.
  virtual int64_t rehearsals(int64_t number) const = 0;
  /// Before each run of a control step: statistics start at zero.
  virtual absl::Status before(Machine &machine) = 0;
  /// After rehearsal `index` (from 0).
  virtual absl::Status rehearsed(Machine &machine, int64_t number, int64_t index) = 0;
  /// Behind the start of step `number`'s gradients and before its update: what `after` reads begins its
  /// way to the host, which it ends while the device works on the rest of the step. May be left out.
  virtual absl::Status look(Machine & /*machine*/, int64_t /*number*/) { return absl::OkStatus(); }
  /// After every step: decides if it was a control step, and writes the windows
  /// of the next. Gives a warning, or nothing.
  virtual absl::StatusOr<std::string> after(Machine &machine, int64_t number) = 0;

  /// Sum of the next step's windows over heads x positions (AAH section 5.10).
  virtual double acr() const = 0;
  /// A line for log.jsonl; means in it start anew.
  virtual OrderedJson line(int64_t step) = 0;
  virtual ControlState state() const = 0;
  /// Files for the run's folder at each save: name and contents.
  virtual std::map<std::string, std::string> files() const = 0;

  /// Whether evaluations let the controller run on the rows that they measure.
  virtual bool live() const = 0;
  virtual std::unique_ptr<Control> copy() const = 0;
};

} // namespace weft::rt
