//===- Bare.h - A kernel without the converts around its body ---*- C++ -*-===//
#pragma once

#include "passes/Codegen/Gpu/Block.h"
#include "passes/Tile/GpuTarget.h"

namespace weft {

/// The body as on the CPU, in f32, and how its operands are stored.
struct BareKernel {
  KernelOp kernel; // the one that was changed
  Storage storage; // of arguments, then results
  size_t argumentCount = 0;
  int64_t sharedBytes = 0; // that a block may have of shared memory
  mlir::Type argument(mlir::Value value) const {
    return storage[mlir::cast<mlir::BlockArgument>(value).getArgNumber()];
  }
  mlir::Type result(int64_t number) const { return storage[argumentCount + static_cast<size_t>(number)]; }
};

/// Takes the converts off `kernel`, in place, for a GPU of `target`. Errors, at the op: operands that
/// are neither f32, bf16 nor i32; bf16 that the body reads without a convert.
llvm::FailureOr<BareKernel> makeBare(KernelOp kernel, const GpuTarget &target);

} // namespace weft
