//===- Constraints.h - What verifiers of several ops check -------*- C++ -*-===//
//
// Private to the dialect's .cpp files. A check gives success, or emits what was
// expected and what was found.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Tile/Tile.h"

namespace weft::tile {

/// `op` stands in `tile.elect`.
inline mlir::LogicalResult verifyOneThread(mlir::Operation *op) {
  if (op->getParentOfType<ElectOp>())
    return mlir::success();
  return op->emitOpError() << "expects one thread to do it: put it into tile.elect";
}

/// A value of type `value` can be loaded from, or stored to, elements of type `element`.
inline bool convertible(mlir::Type value, mlir::Type element) {
  return value == element || (value.isF32() && element.isBF16());
}

/// One stage of bf16 elements.
inline bool isTile(mlir::Type type) {
  auto smem = mlir::dyn_cast<SmemType>(type);
  return smem && smem.getStages() == 1 && smem.getElement().isBF16();
}

/// One row of one stage, as it lies in memory.
inline bool isPlainRow(SmemType type) {
  return type.getStages() == 1 && type.getRows() == 1 && type.getPanels() == 1 && type.getSwizzle() == 0;
}

} // namespace weft::tile
