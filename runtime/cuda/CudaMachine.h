//===- CudaMachine.h - Executables on an NVIDIA GPU -------------*- C++ -*-===//
//
// Everything a call needs is worked out when the executable is loaded: addresses,
// tensor maps, algorithms of products. A program's first run starts its calls one
// by one (the driver may still load code then); its second is captured into a
// graph, which is replayed from there on: a run copies inputs to pinned memory,
// starts the graph, waits once, and copies results from pinned memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/cpu/Profile.h"
#include "runtime/cuda/Modules.h"
#include "runtime/cuda/Products.h"

#include <map>

namespace weft::rt::cuda {

class CudaMachine final : public Machine {
public:
  static absl::StatusOr<std::unique_ptr<CudaMachine>> make(Executable executable, const CudaOptions &options);
  ~CudaMachine() override;

  const Executable &executable() const override { return exe; }
  absl::Status run(std::string_view program, std::span<const Tensor> inputs,
                   std::span<Tensor> results) override;
  absl::StatusOr<Tensor> readState(std::string_view name) const override;
  absl::Status writeState(std::string_view name, const Tensor &value) override;
  const CudaCounters &counters() const { return gpu->counters; }
  std::vector<CudaKernel> kernels() const;

private:
  /// A call with its addresses.
  struct Step {
    uint32_t kernel = 0;
    unsigned blocks = 0;
    std::vector<DevicePointer> operands; // with scratch: one more
    std::vector<EncodedTensorMap> maps;
    std::vector<void *> parameters; // into the two above
    size_t product = 0;
    uint64_t bytes = 0; // of operand 0: what Zero and Copy move
  };
  struct Prepared {
    const Program *program = nullptr;
    std::vector<uint64_t> inputs, results; // places of ports in `ports` and `pinned`
    uint64_t inputBytes = 0, endBytes = 0; // inputs, then results
    std::vector<Step> steps;
    std::vector<Event> events; // one before each step and one after all; with a profile
    GraphExec graph = nullptr;
    bool warm = false; // has run once
  };

  CudaMachine(Executable executable, const CudaOptions &options, std::unique_ptr<Gpu> gpu);
  // Loading (CudaPrepare.cpp).
  absl::Status load();
  void placePorts();
  uint64_t scratchBytes() const;
  absl::Status checkRoom(uint64_t scratch);
  absl::Status allocate(uint64_t scratch);
  absl::Status prepare(Prepared &prepared);
  absl::StatusOr<Step> prepareStep(const Call &call, const Prepared &prepared);
  void setParameters(Step &step) const;
  absl::Status checkParameters(const Step &step) const;
  unsigned blocksOf(const Call &call) const;
  DevicePointer addressOf(const Operand &operand, const Prepared &prepared) const;
  // Running (CudaRun.cpp).
  absl::Status enqueue(Prepared &prepared);
  absl::Status start(const Step &step);
  absl::Status startCode(const Step &step);
  absl::Status afterCall(const Prepared &prepared, const Step &step);
  absl::Status capture(Prepared &prepared);
  absl::Status finish(Prepared &prepared);
  absl::StatusOr<const StateEntry *> stateOf(std::string_view name) const;

  Executable exe;
  CudaOptions options;
  std::unique_ptr<Gpu> gpu; // outlives what follows
  Modules modules;
  Products products;
  DevicePointer state = 0, arena = 0, ports = 0, scratch = 0;
  std::byte *pinned = nullptr;
  uint64_t portBytes = 0;
  std::map<std::string, Prepared, std::less<>> programs;
  std::map<std::string, size_t, std::less<>> stateNumbers;
  Profile profile;
};

} // namespace weft::rt::cuda
