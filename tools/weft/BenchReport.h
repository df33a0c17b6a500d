//===- BenchReport.h - What weft bench says of a machine --------*- C++ -*-===//
#pragma once

#include "runtime/core/Json.h"
#include "runtime/cuda/Cuda.h"

#include <set>
#include <string>

namespace weft {

/// Kernels of some kinds (none given: of all), over `runs` runs: one line each and
/// one a kind. Milliseconds and shares of time are a run's; GB/s and TFLOP/s a
/// kernel's own; its last column is the larger of both over what the device reaches.
std::string kernelTable(const rt::Profile &profile, const std::set<std::string> &kinds, int64_t runs);
/// {"copy_bytes_per_s", "product_flops_per_s", "kernels": [...], "kinds": [...]}
rt::OrderedJson kernelJson(const rt::Profile &profile, const std::set<std::string> &kinds, int64_t runs);

/// What a CUDA machine planned to hold beside what the device reports.
std::string memoryText(const rt::CudaMemory &memory);
rt::OrderedJson memoryJson(const rt::CudaMemory &memory);

} // namespace weft
