//===- BoundProgram.h - A program with tensors for its ports ----*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/core/Floats.h"

#include <string>
#include <vector>

namespace weft::rt {

/// One program of a machine with a tensor for each port, allocated once and
/// reused by every run. Runs that are under way at once have results of their own,
/// by slot; slots are counted from 0.
class BoundProgram {
public:
  /// `machine` must outlive the result. Errors: NotFound lists the programs that
  /// the executable has.
  static absl::StatusOr<BoundProgram> bind(Machine &machine, const std::string &name);

  bool hasInput(const std::string &port) const;
  /// Errors: NotFound lists the ports; InvalidArgument with both types and shapes.
  absl::Status setInput(const std::string &port, Tensor value);
  /// Sets a float scalar or vector of F32 or F64, as the port's type asks.
  absl::Status setFloats(const std::string &port, const std::vector<double> &values);
  absl::Status run();
  /// Starts it; inputs may be set anew at once. Results of `slot` are there after `wait`.
  absl::Status start(size_t slot);
  absl::Status wait(size_t slot);
  /// Whether the last start came back before the work was done.
  bool underWay() const { return lastStarted != 0; }
  absl::StatusOr<const Tensor *> result(const std::string &port, size_t slot = 0) const;
  /// A result of one float.
  absl::StatusOr<double> number(const std::string &port, size_t slot = 0) const;

  const Program &program() const { return *description; }

private:
  BoundProgram(Machine &machine, const Program &program);
  void addSlot();
  Machine *machine;
  const Program *description;
  std::vector<Tensor> inputs;
  std::vector<std::vector<Tensor>> results; // by slot
  std::vector<uint64_t> started;            // number of a slot's last run
  uint64_t lastStarted = 0;
};

/// The program `name` of `executable`, or null.
const Program *findProgram(const Executable &executable, const std::string &name);

/// Whether all elements are finite; other than float types always are.
bool allFinite(const Tensor &tensor);

} // namespace weft::rt
