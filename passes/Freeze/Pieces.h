//===- Pieces.h - A value of all heads as parts of some heads ----*- C++ -*-===//
#pragma once

#include "passes/Differentiate/Take.h"

namespace weft {

/// The slices of a whole that a value holds. What no piece holds is zero.
struct Piece {
  mlir::Value value;
  Slices slices;
};

/// Rewrites the uses of `whole`, the sum of the `pieces` each put in its place,
/// to uses of the pieces: a product that sums over the slices' axes becomes one a
/// piece, each adding to the one before; products with a factor, functions and
/// norms that keep zero zero work on each piece. Any other use gets the whole put
/// together, with a remark.
void usePieces(mlir::Value whole, llvm::ArrayRef<Piece> pieces, const Slices &all);

} // namespace weft
