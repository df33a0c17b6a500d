//===- Device.h - Which machine a command runs on ---------------*- C++ -*-===//
#pragma once

#include "runtime/cuda/Cuda.h"
#include "tools/weft/Session.h"

namespace weft {

/// What `--device` came to on this machine.
struct Device {
  rt::DeviceChoice::Kind kind = rt::DeviceChoice::Kind::Cpu; // never Auto
  int index = 0;                                             // of CUDA devices
  std::string chip;                                          // sm_90a, of CUDA devices
};

/// `auto` takes the first CUDA device that kernels can be made for, else the CPU.
/// Errors: InvalidArgument for an unknown word; for a device that was asked for and
/// is not there, what was needed and what was found.
absl::StatusOr<Device> chooseDevice(const std::string &device);

/// The GPU that kernels are made for on a device of this compute capability's
/// chip: sm_90a on sm_90a, sm_80 on sm_80 and later ones below sm_90. Errors:
/// FailedPrecondition names the oldest.
absl::StatusOr<std::string> kernelChip(const rt::CudaDevice &device);

/// Loads an executable where its target says. Errors: as of the machines; a CUDA
/// executable without a CUDA device.
absl::StatusOr<std::unique_ptr<rt::Machine>> openMachine(rt::Executable executable, const Request &request);

} // namespace weft
