//===- Codegen.h - From a weft.kernel to an x86-64 object -------*- C++ -*-===//
//
// A kernel becomes a function of the type rt::KernelFunction: loops over raw
// pointers, vectors as wide as the target's, no allocation, no libm. Operands
// are the kernel's arguments, then its results. A result may share storage with
// an argument of equal shape that an elementwise or row function reads, with
// `init`, with the cache of cache_update and with the logits of
// cross_entropy_grad.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "runtime/Executable.h"

#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace weft {

/// What machine code is made for.
struct CpuTarget {
  std::string triple, cpu, features; // as LLVM spells them
  int vectorBits = 128;              // 128, 256 or 512
};

/// The machine that this runs on.
CpuTarget hostTarget();

/// The whole way. Safe to call from several threads, also on kernels of one
/// module: the kernel is copied into a context of its own. A contract that BLAS
/// can do becomes a Gemm (its C is the last operand), all else Code. Errors are
/// reported at the kernel's location.
llvm::FailureOr<rt::Kernel> compileKernel(KernelOp kernel, const CpuTarget &target);

/// The stages of compileKernel, for `--emit`. buildKernel: one func.func in
/// scf, arith, vector, math and llvm loads and stores; its attribute
/// `weft.scratch` counts the bytes of scratch that a worker needs.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> buildKernel(KernelOp kernel, const CpuTarget &target);
llvm::LogicalResult lowerToLLVM(mlir::ModuleOp module);
llvm::FailureOr<std::string> toLLVMText(mlir::ModuleOp module, const CpuTarget &target);
llvm::FailureOr<std::string> toAssembly(mlir::ModuleOp module, const CpuTarget &target);
llvm::FailureOr<std::string> toObject(mlir::ModuleOp module, const CpuTarget &target);

/// Work items of a call: depends on the kernel's types alone. A fused kernel
/// has `chunks`.
int64_t gridOf(KernelOp kernel);

/// The product that a kernel of one contract is, when BLAS can do it as it is
/// stored.
std::optional<rt::Gemm> gemmOf(KernelOp kernel);

/// 16 hex digits of what a kernel computes. Its name, locations, discardable
/// attributes and the spelling of axes do not count.
std::string structuralHash(KernelOp kernel);

} // namespace weft
