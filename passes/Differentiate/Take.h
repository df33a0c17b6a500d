//===- Take.h - Taking slices before they are computed -----------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"

namespace weft {

/// Slices along `axes`, counted together row-major with these sizes: the places
/// `indices`, as one axis called `axis`.
struct Slices {
  llvm::SmallVector<mlir::StringAttr> axes;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<int64_t> indices;
  mlir::StringAttr axis;

  mlir::ArrayAttr axesAttr() const;
  /// The same slices as a tensor sees them that has a part of the axes: places
  /// along those, repeated where the others differ.
  Slices along(mlir::RankedTensorType type) const;
  /// Whether they are all there is of one axis, under its own name.
  bool areAll() const;
  /// Whether the axes that `type` has of them stand side by side, in order.
  bool fit(mlir::RankedTensorType type) const;
  /// `type` (which they fit) with the one axis in place of those that it has.
  mlir::RankedTensorType of(mlir::RankedTensorType type) const;
};

/// Whether slices of the results of `op` are `op` on slices of its operands.
bool worksBySlices(mlir::Operation *op, const Slices &slices);

/// weft.take of `value` (which has some of the axes) where `builder` stands.
mlir::Value takeHere(mlir::OpBuilder &builder, mlir::Value value, const Slices &slices);

/// The slices of `value`, computed from slices of what it is made of, down to the
/// state that is read; `value` itself when it has none of the axes. An op that can't be computed by
/// slices is taken from as it is, with a remark at its location.
mlir::Value takeOf(mlir::Value value, const Slices &slices);

} // namespace weft
