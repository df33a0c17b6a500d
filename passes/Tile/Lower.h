//===- Lower.h - tile kernels to PTX -----------------------------*- C++ -*-===//
//
// tile dialect -> LLVM and NVVM dialects -> LLVM IR -> PTX, in process. Several
// threads may translate at once, each with an MLIR context of its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Tile/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace weft::tile {
class KernelOp;
} // namespace weft::tile

namespace weft {

/// A kernel of tiles as a module in the LLVM and NVVM dialects, with one entry of
/// the kernel's name. Parameters: an address in global memory for each global,
/// then 128 bytes by value for each map. Dynamic shared memory of
/// KernelOp::sharedBytes() is asked for at the launch. Emits an error and fails
/// for what the chip lacks and for ops that a tile kernel can't hold.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> lowerTileToLLVM(tile::KernelOp kernel,
                                                                   const GpuTarget &target);

/// PTX of a module in the LLVM dialect (NVVM and arithmetic intrinsics as well).
/// Entries are the `llvm.func`s with `nvvm.kernel`; every other defined function
/// becomes internal and is inlined or dropped; declared ones stay `.extern`. The
/// same module gives the same bytes. Emits an error and fails for an unknown
/// chip, a module without an entry, or what LLVM can't select.
mlir::FailureOr<std::string> translateToPtx(mlir::ModuleOp module, const GpuTarget &target);

} // namespace weft
