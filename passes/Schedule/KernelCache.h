//===- KernelCache.h - Compiled kernels on disk ------------------*- C++ -*-===//
//
// One file a kernel: an executable that holds it alone, named by its key =
// hash of (structural hash, target, LLVM's version, Weft's build). Written
// atomically; a file that can't be read, or holds another kernel, is compiled
// again and replaced.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Codegen.h"
#include "passes/Tile/GpuTarget.h"

#include <optional>
#include <string>

namespace weft {

class KernelCache {
public:
  KernelCache(std::string folder, const CpuTarget &target);
  KernelCache(std::string folder, const GpuTarget &target);

  std::optional<rt::Kernel> find(const std::string &hash) const;
  void store(const rt::Kernel &kernel) const;
  /// The key's parts, one a line, for `weft cache explain`.
  std::string explain(const std::string &hash) const;

private:
  std::string pathOf(const std::string &hash) const;
  std::string folder, suffix;
};

/// What a compiled kernel depends on beside itself: changes with every build of Weft.
std::string buildStamp();

} // namespace weft
