//===- Gpu.h - From a weft.kernel to PTX ------------------------*- C++ -*-===//
//
// A kernel for the GPU is a body in f32 between converts: those of arguments
// first, those of results before the yield. Its types tell how operands are
// stored, f32 or bf16. Entry parameters: one global address an operand
// (arguments, then results), then the tensor maps, then the scratch's address
// where there is some. Work items are counted by gpuGridOf; any number of blocks
// works through them, and no result depends on that number.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "passes/Tile/GpuTarget.h"
#include "runtime/Executable.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace weft {

/// The whole way. Safe to call from several threads, also on kernels of one
/// module: the kernel is copied into a context of its own. A product that
/// cuBLASLt can do becomes a Gemm (its `init`, if any, is operand 2 and may lie
/// elsewhere), all else PTX. A kernel without a fast form runs as on a CPU, one
/// thread a work item, and a remark `slow-path` says why. Errors are reported at
/// the kernel's location.
llvm::FailureOr<rt::Kernel> compileGpuKernel(KernelOp kernel, const GpuTarget &target);

/// Work items of a call; depends on the kernel alone.
int64_t gpuGridOf(KernelOp kernel, const GpuTarget &target = {});

/// The product that a kernel of one contract is, or of one and what
/// weft-fold-activations folds into it, when cuBLASLt can do it as it is stored.
std::optional<rt::Gemm> gpuGemmOf(KernelOp kernel);

/// On a kernel of a product and what follows it element by element: tiles do both. Without it
/// the product is cuBLASLt's.
inline constexpr llvm::StringLiteral kOnTilesAttr = "weft.on_tiles";

/// Work items of such a kernel and steps of each, of 64 columns that are summed over; with the
/// attribute or without. None where tiles don't do it.
struct FoldedSize {
  int64_t items = 0, steps = 0;
  bool plain = false; // the right factor is stored [k, n], and what follows reads the product alone
};
std::optional<FoldedSize> gpuFoldedSize(KernelOp kernel, const GpuTarget &target);

/// A kernel written out: one entry in the LLVM and NVVM dialects, or before
/// lowering in scf, arith and vector.
struct GpuCode {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  int64_t items = 1, threads = 128, scratchBytes = 0; // scratch of a block
  int64_t sharedBytes = 0;                            // dynamic
  std::string slow;                                   // why there is no fast form
};

/// Stages of compileGpuKernel for a kernel that is no product and no attention.
llvm::FailureOr<GpuCode> buildGpuKernel(KernelOp kernel, const GpuTarget &target = {});
llvm::LogicalResult lowerGpuKernel(GpuCode &code);

} // namespace weft
