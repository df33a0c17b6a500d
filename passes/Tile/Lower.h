//===- Lower.h - tile kernels to PTX -----------------------------*- C++ -*-===//
//
// tile dialect -> LLVM and NVVM dialects -> LLVM IR -> PTX, in process. Several
// threads may translate at once, each with an MLIR context of its own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Tile/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace weft {

/// PTX of a module in the LLVM dialect (NVVM and arithmetic intrinsics as well).
/// Entries are the `llvm.func`s with `nvvm.kernel`; every other defined function
/// becomes internal and is inlined or dropped; declared ones stay `.extern`. The
/// same module gives the same bytes. Emits an error and fails for an unknown
/// chip, a module without an entry, or what LLVM can't select.
mlir::FailureOr<std::string> translateToPtx(mlir::ModuleOp module, const GpuTarget &target);

} // namespace weft
