//===- FoldedProduct.h - Products and what follows them, on tiles -*- C++ -*-===//
//
// The builder of tile kernels for a product whose result is read element by
// element at once:
//   c = a b, rounded to bf16; results = f(c, inputs), element by element
// f is the row kernels' own (RowProgram), so the numbers are those of a product
// and a row kernel behind it; what the two would write and read of c in between
// is left out.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/Attend.h"
#include "passes/Codegen/Gpu/Bare.h"
#include "passes/Codegen/Gpu/Gpu.h"
#include "passes/Codegen/RowProgram.h"

namespace weft {

/// What such a kernel asks for. Its operands are a [m, k], b [k, n] or [n, k], then the
/// inputs, then the results, those of [m, n] row-major.
struct FoldedProblem {
  std::string name;
  rt::Gemm gemm;
  RowProgram program;              // of c (the last operand of its kernel) and the inputs
  int product = -1;                // c's number there
  std::vector<mlir::Type> storage; // elements of arguments, then results
  size_t arguments = 0;
};

/// Reads `bare`; where there is no tile kernel for it, none, and `why` says why not.
std::optional<FoldedProblem> readFolded(const BareKernel &bare, const GpuTarget &target, std::string &why);

/// Errors at the kernel where readFolded gives a reason. Changes the kernel, as makeBare does.
llvm::FailureOr<AttendTile> buildFoldedTile(KernelOp kernel, const GpuTarget &target);

FoldedSize foldedSize(const FoldedProblem &problem);

/// The whole way to PTX; as compileAttend.
llvm::FailureOr<rt::Kernel> compileFolded(KernelOp kernel, const GpuTarget &target);

} // namespace weft
