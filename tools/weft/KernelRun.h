//===- KernelRun.h - One kernel on a device ---------------------*- C++ -*-===//
#pragma once

#include "passes/Tile/GpuTarget.h"
#include "tools/weft/Session.h"

namespace weft {

/// What came of running one kernel.
struct KernelVerdict {
  struct Result {
    double error = 0; // ||found - expected|| / ||expected||, over all elements
    double worst = 0; // the same over the worst block of 4096 elements, in units of the largest block's norm
    double bound = 0;
    std::string hash; // of the bytes found
  };
  std::string kernel, problem; // empty: good
  std::vector<Result> results; // of a check
  double seconds = 0;          // median; of a timing
  double bytes = 0, flops = 0; // of one run
  std::string text() const;
  std::string json() const;
};

/// Runs kernels, each as an executable of its own on `request.device`.
struct KernelRun {
  Request request;
  GpuTarget target;

  /// Beside the float64 interpreter, on drawn inputs. With `plant` the machine's
  /// kernel has a fault that the interpreter's has not: a check must find it.
  absl::StatusOr<KernelVerdict> check(KernelOp kernel, uint64_t seed, bool plant = false) const;
  /// Seconds of one run: a program of `repeats` calls against one of none, median of five.
  absl::StatusOr<KernelVerdict> time(KernelOp kernel, uint64_t seed, int repeats) const;
};

} // namespace weft
