//===- Machine.h - A loaded executable with its state -----------*- C++ -*-===//
//
// The training loop, evaluation and generation know a device only as this. The
// CPU runs compiled kernels (runtime/cpu); the reference interprets IR in
// float64 (tools/weft/ReferenceMachine).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Executable.h"

#include <memory>
#include <span>

namespace weft::rt {

class Machine {
public:
  virtual ~Machine() = default;

  /// States, programs and ports; kernels may be empty (reference).
  virtual const Executable &executable() const = 0;

  /// Runs `program`. `inputs` and `results` follow its ports; each tensor must
  /// have its port's type and shape. Errors: NotFound, InvalidArgument.
  virtual absl::Status run(std::string_view program, std::span<const Tensor> inputs,
                           std::span<Tensor> results) = 0;

  /// Like `run`, but a machine that works beside the host may return before the
  /// work is done: `results` hold their values after `wait` for the number that is
  /// given back, and must stay where they are until then; `inputs` may change at
  /// once. Runs end in the order of their starts. Number 0: it is done.
  virtual absl::StatusOr<uint64_t> start(std::string_view program, std::span<const Tensor> inputs,
                                         std::span<Tensor> results) {
    if (absl::Status status = run(program, inputs, results); !status.ok())
      return status;
    return 0;
  }
  /// Waits for the run of this number and those before it, or for the read of this number. Errors: of these.
  virtual absl::Status wait(uint64_t /*number*/) { return absl::OkStatus(); }

  /// Copies a state entry out or in. Errors: NotFound; InvalidArgument with
  /// both types or shapes.
  virtual absl::StatusOr<Tensor> readState(std::string_view name) const = 0;
  /// Like `readState`, but behind what was started so far, and like `start`: `to` holds the entry,
  /// whatever is started next, after `wait` for the number that is given back. It may end before the
  /// runs that were started before it do: where none of them writes the entry any more.
  virtual absl::StatusOr<uint64_t> startRead(std::string_view name, Tensor &to) {
    absl::StatusOr<Tensor> value = readState(name);
    if (!value.ok())
      return value.status();
    to = *std::move(value);
    return 0;
  }
  virtual absl::Status writeState(std::string_view name, const Tensor &value) = 0;
};

/// Loads `executable` on the host CPU with `threads` workers (0: as many as
/// cores). State is allocated and zero. Errors: ResourceExhausted names the
/// largest buffers; InvalidArgument names a kernel that can't be loaded.
absl::StatusOr<std::unique_ptr<Machine>> makeCpuMachine(Executable executable, int threads);

} // namespace weft::rt
