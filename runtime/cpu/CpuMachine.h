//===- CpuMachine.h - Executables on the host CPU ---------------*- C++ -*-===//
//
// Everything a call needs is worked out when the executable is loaded: a run
// only patches the caller's tensors into pointer tables and calls kernels, with
// no allocation.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/cpu/Memory.h"
#include "runtime/cpu/ObjectImage.h"
#include "runtime/cpu/Profile.h"
#include "runtime/cpu/ThreadPool.h"

#include <map>

namespace weft::rt {

class CpuMachine final : public Machine {
public:
  static absl::StatusOr<std::unique_ptr<CpuMachine>> make(Executable executable, int threads,
                                                          uint64_t availableBytes);

  const Executable &executable() const override { return exe; }
  absl::Status run(std::string_view program, std::span<const Tensor> inputs,
                   std::span<Tensor> results) override;
  absl::StatusOr<Tensor> readState(std::string_view name) const override;
  absl::Status writeState(std::string_view name, const Tensor &value) override;
  Profile &times() { return profile; }

private:
  /// A call with pointers. Operands of ports are patched at each run.
  struct Step {
    uint32_t kernel = 0;
    int64_t grid = 0;
    size_t firstPointer = 0;
    uint64_t bytes = 0; // of operand 0: what Zero and Copy move
  };
  struct Patch {
    size_t pointer = 0, port = 0;
    bool input = false;
    uint64_t start = 0;
  };
  struct Prepared {
    const Program *program = nullptr;
    std::vector<Step> steps;
    std::vector<void *> pointers;
    std::vector<Patch> patches;
    std::vector<uint64_t> inputStaging, resultStaging; // places of ports, for tensors not aligned
  };

  CpuMachine(Executable executable, int threads);
  absl::Status loadKernels();
  absl::Status allocate(uint64_t available);
  void prepare(const Program &program);
  void *pointerOf(const Operand &operand) const;
  void bind(Prepared &prepared, std::span<const Tensor> inputs, std::span<Tensor> results);
  void call(const Step &step, void *const *operands);
  void callCode(const Step &step, void *const *operands);
  absl::StatusOr<const StateEntry *> stateOf(std::string_view name) const;

  Executable exe;
  ObjectImage image;
  std::vector<KernelFunction> functions; // by kernel; null for the runtime's own
  MappedMemory state, arena, scratch, staging;
  uint64_t scratchBytes = 0; // of one worker
  std::map<std::string, Prepared, std::less<>> programs;
  std::map<std::string, size_t, std::less<>> stateNumbers;
  ThreadPool pool;
  Profile profile;
};

} // namespace weft::rt
