//===- ShrinkState.h - State without what heads no longer need ---*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"

#include "llvm/ADT/StringSet.h"

namespace weft {

/// Names of the entries that programs read.
struct StateUses {
  explicit StateUses(mlir::ModuleOp module);
  llvm::StringSet<> read;
};

/// Erases what nothing needs any more: ops, then entries that were read `before`
/// and are not now. A parameter that is only taken from, over the same axes
/// everywhere, and not whole, becomes a smaller one with `slices`. The optimiser's
/// groups lose the names of entries that are gone.
void shrinkState(mlir::ModuleOp module, const StateUses &before);

} // namespace weft
