//===- Gradients.h - Helpers of buildGradient -------------------*- C++ -*-===//
//
// Shared by the Gradients*.cpp files, which hold `buildGradient` of every
// differentiable op, one family a file. An op that has no gradient where it was
// asked for one emits an error and answers with an empty vector.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"

namespace weft {

using Gradients = llvm::SmallVector<mlir::Value>;

/// The location of what `op`'s gradient is made of: "grad"(location of op).
mlir::Location gradientLocation(mlir::Operation *op);

/// Sums `value` over the axes that `type` lacks and puts the others in its
/// order; `value` itself when it has that type.
mlir::Value reduceTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                     mlir::RankedTensorType type);

/// Repeats `value` along the axes of `type` that it lacks.
mlir::Value broadcastTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                        mlir::RankedTensorType type);

/// x op y with the type that the op infers.
mlir::Value binary(mlir::OpBuilder &builder, mlir::Location loc, BinaryFn fn, mlir::Value x, mlir::Value y);

/// factor * x; x itself when `factor` is 1.
mlir::Value scaled(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, double factor);

/// scale * x for a scalar `scale`; x itself when `scale` is the constant 1.
mlir::Value scaledBy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value scale);

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

} // namespace weft
