//===- RowPlan.h - How a row is spread over threads --------------*- C++ -*-===//
//
// The elements of a row's tensor, row-major, are dealt out in vectors of `lanes`:
// vector v is thread v % team's, its piece number v / team. A team is the threads
// that work on one row: one, a warp, or the block. Values stay in registers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/Bare.h"
#include "passes/Codegen/RowProgram.h"

namespace weft {

struct RowLayout {
  Axes axes;
  int64_t lanes = 1, pieces = 1;
  int64_t count() const { return countOf(axes); }
  int64_t vectors() const { return count() / lanes; }
};

struct RowPlan {
  int64_t team = 1, threads = 128;
  std::vector<RowLayout> layouts;
  llvm::SmallVector<int> home; // of each node: the layout in which it is computed, -1 for numbers
  bool chunked = false;
  bool aligned = false; // rows start at multiples of 16 bytes
  /// Sums over rows have few threads, so what they read is copied to shared memory
  /// `ahead` rows before its turn, where `parts` > 0: each thread its own vectors, in
  /// `parts` parts of 16 bytes a row.
  int64_t ahead = 0, parts = 0;

  int64_t stageBytes() const { return 16 * parts * threads; }
  int64_t teams() const { return threads / team; }
  int64_t items(const RowProgram &program) const;
};

/// None, with a reason, for bodies that registers and shuffles can't do.
std::optional<RowPlan> planRows(const RowProgram &program, const BareKernel &bare, std::string &why);

/// Is `node` an operand whose vectors are copied ahead when they are read in `layout`?
bool isCopiedAhead(const RowNode &node, const RowLayout &layout, const Storage &storage);

/// May one thread write what another has yet to read, where a result takes an
/// argument's storage? Only numbers of rows and of segments are read by several.
bool mayRace(const RowProgram &program, const RowPlan &plan);

/// Does `part` begin `axes`?
bool isPrefix(llvm::ArrayRef<Axis> part, llvm::ArrayRef<Axis> axes);

} // namespace weft
