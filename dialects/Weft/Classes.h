//===- Classes.h - Rows of logits that end in padding -----------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"

namespace weft {

/// Of a cross_entropy_grad whose rows are padded: how many columns are classes. Those
/// after them count for nothing, and their gradient is 0.
constexpr llvm::StringLiteral kClassesAttr = "weft.classes";

inline int64_t classesOf(mlir::Operation *op, mlir::Value logits) {
  auto classes = op->getAttrOfType<mlir::IntegerAttr>(kClassesAttr);
  return classes ? classes.getInt() : llvm::cast<mlir::RankedTensorType>(logits.getType()).getShape().back();
}

} // namespace weft
