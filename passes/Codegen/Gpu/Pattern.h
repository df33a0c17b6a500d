//===- Pattern.h - Products of fixed patterns on tiles ----------*- C++ -*-===//
//
// The builder of tile kernels for weft.mix_product. A tile of a pattern depends
// on row + column alone, so wgmma reads it from a table of 16 bytes a diagonal
// through a descriptor whose blocks overlap: nothing is exponentiated and no
// register is filled a pair.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/Attend.h"

namespace weft {

/// What a kernel of weft.mix_product asks for; tensors as the op has them.
struct PatternProblem {
  /// A number of the kernel's operands (arguments, then results), -1 where there is none.
  using Operand = int;

  std::string name;
  bool back = false;
  int64_t batch = 0, positions = 0, heads = 0, channel = 0;
  int64_t results = 0; // heads of y
  int64_t places = 0;  // of the scale
  int64_t tables = 1;  // of a head: 2 where `windows` has first places, too
  int64_t blocks = 0;  // of 8 x 8, of one table
  int64_t parts = 0;   // of 64 rows, of a tile: 4 or 2
  Operand x = -1, table = -1, scale = -1, windows = -1, starts = -1, lse = -1, kvOf = -1, y = -1, rowLse = -1;
  std::vector<mlir::RankedTensorType> types; // of operands, as stored
};

/// Reads `kernel`; where there is no tile kernel for it, none, and `why` says why not.
std::optional<PatternProblem> readPattern(KernelOp kernel, const GpuTarget &target, std::string &why);

/// Whether a product of patterns with this many channels has a tile kernel for `chip`.
bool hasPatternTiles(llvm::StringRef chip, int64_t channel);

/// x and the table are bf16, y bf16 or f32; sums f32. Errors at the kernel where
/// readPattern gives a reason.
llvm::FailureOr<AttendTile> buildPatternTile(KernelOp kernel, const GpuTarget &target);

/// Work items of the tile kernel for `kernel`; none where there is no such kernel.
std::optional<int64_t> patternItems(KernelOp kernel, const GpuTarget &target);

/// The whole way to PTX; as compileAttend.
llvm::FailureOr<rt::Kernel> compilePattern(KernelOp kernel, const GpuTarget &target);

} // namespace weft
