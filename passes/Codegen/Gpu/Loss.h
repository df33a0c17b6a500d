//===- Loss.h - What both forms of the loss kernels know --------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Classes.h"
#include "passes/Codegen/Gpu/Kinds.h"

namespace weft {

/// weight (lse - (1 - smoothing) x[t] - smoothing mean(x) + z lse^2) of a row x of `vocab` logits.
struct LossTerms {
  mlir::Value logits, targets, weight;
  int64_t rows, vocab, width; // numbers of a row, padding included
  double z, smoothing;

  template <typename Op>
  explicit LossTerms(Op op)
      : logits(op.getLogits()), targets(op.getTargets()), weight(op.getWeight()),
        rows(mlir::cast<mlir::RankedTensorType>(op.getTargets().getType()).getNumElements()),
        vocab(classesOf(op, op.getLogits())),
        width(mlir::cast<mlir::RankedTensorType>(op.getLogits().getType()).getShape().back()),
        z(numberOf(op.getZ())), smoothing(numberOf(op.getSmoothing())) {}
};

/// Elements of logits in 16 bytes.
int64_t logitsInVector(const BareKernel &bare, mlir::Value logits);

/// `body` for each of `count` vectors that is this thread's; the threads take turns.
llvm::SmallVector<mlir::Value>
overVectors(Block &block, mlir::Value count, mlir::ValueRange start,
            llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
void overVectors(Block &block, mlir::Value count, llvm::function_ref<void(mlir::Value)> body);

/// Losses and gradients of rows that a block's shared memory holds, each read once;
/// none where it does not, or where rows do not start at multiples of 16 bytes.
/// Operands as those of CrossEntropyGradOp.
MaybeKind heldLossKind(const BareKernel &bare, const LossTerms &terms);

} // namespace weft
