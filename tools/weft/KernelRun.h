//===- KernelRun.h - One kernel on a device ---------------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"
#include "passes/Tile/GpuTarget.h"
#include "tools/weft/Session.h"

namespace weft {

/// A kernel's name, with its form where it has one of its own (passes/Codegen/Gpu/Attend.h).
std::string nameOf(KernelOp kernel);

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

/// What a check must find: what the kernel computes is a little else (`Body`), or documents that begin inside a
/// tile's last rows are hidden from it (`Documents`).
enum class PlantedFault : uint8_t { None, Body, Documents };

/// Runs kernels, each as an executable of its own on `request.device`.
struct KernelRun {
  Request request;
  GpuTarget target;

  /// Beside the float64 interpreter, on drawn inputs. With `plant` the machine's
  /// kernel has a fault that the interpreter's has not: a check must find it.
  absl::StatusOr<KernelVerdict> check(KernelOp kernel, uint64_t seed,
                                      PlantedFault plant = PlantedFault::None) const;
  /// Seconds of one call: a program of 1 + `repeats` calls against one of 1, median of five
  /// each. Operands are state: runs copy nothing.
  absl::StatusOr<KernelVerdict> time(KernelOp kernel, llvm::ArrayRef<Array> inputs, int repeats) const;
};

} // namespace weft
