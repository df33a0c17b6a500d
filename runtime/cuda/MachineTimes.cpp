//===- MachineTimes.cpp - Times of kernels, whichever machine runs them ---===//
//
// Apart from CudaMachine.cpp, so that a program that runs on a GPU alone links
// nothing of the CPU's kernels.
//
//===----------------------------------------------------------------------===//
#include "runtime/cpu/CpuMachine.h"
#include "runtime/cuda/CudaMachine.h"

namespace weft::rt {

absl::Status timeKernels(Machine &machine) {
  if (auto *cuda = dynamic_cast<cuda::CudaMachine *>(&machine))
    return cuda->timeKernels();
  if (Profile *profile = kernelTimes(machine))
    profile->turnOn();
  return absl::OkStatus();
}

Profile *kernelTimes(Machine &machine) {
  if (auto *cuda = dynamic_cast<cuda::CudaMachine *>(&machine))
    return &cuda->times();
  auto *cpu = dynamic_cast<CpuMachine *>(&machine);
  return cpu ? &cpu->times() : nullptr;
}

} // namespace weft::rt
