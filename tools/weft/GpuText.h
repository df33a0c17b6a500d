//===- GpuText.h - GPU kernels as text --------------------------*- C++ -*-===//
#pragma once

#include "passes/Tile/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"

#include "absl/status/statusor.h"

namespace weft {

/// tile: attention's kernels in the tile dialect; nvvm: each kernel in the LLVM
/// and NVVM dialects; ptx.
enum class GpuStage { Tile, Nvvm, Ptx };

/// Every kernel of `module` at this stage, one after another; a line for those
/// that have none there. Errors: Internal names the kernel.
absl::StatusOr<std::string> gpuKernelText(mlir::ModuleOp module, GpuStage stage, const GpuTarget &target);

} // namespace weft
