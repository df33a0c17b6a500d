//===- GpuTarget.h - The GPU that kernels are made for ----------*- C++ -*-===//
#pragma once

#include <string>

namespace weft {

/// `chip`: "sm_90a" or "sm_80". `ptxVersion`: PTX ISA, 80 for 8.0, the oldest
/// that knows sm_90a.
struct GpuTarget {
  std::string chip = "sm_90a";
  int ptxVersion = 80;
};

} // namespace weft
