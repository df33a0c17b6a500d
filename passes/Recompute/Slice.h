//===- Slice.h - The part of a kernel that makes some of its results -------===//
#pragma once

#include "passes/Fuse/Regions.h"

namespace weft {

/// How some results of a launch are made again.
struct Slice {
  llvm::SmallVector<unsigned> results;     // of the launch, in its order
  llvm::SmallVector<mlir::Value> operands; // what is read: operands of the launch, or other results of it
  bool whole = false;                      // the launch's own kernel, all results
};

/// What kernels of a module compute, looked at once.
class KernelWork {
public:
  explicit KernelWork(mlir::ModuleOp module);

  enum class Kind {
    Rows,    // elementwise and row ops: can be cut
    Moving,  // one op that moves data: look-ups, slices of heads
    Product, // of matrices or of fixed patterns
    Other    // attention, losses, gradients, statistics: never made again
  };
  KernelOp kernelOf(LaunchOp launch) const { return kernels.lookup(launch.getKernelAttr().getAttr()); }
  Kind kindOf(LaunchOp launch);
  /// FLOPs of its products.
  double flopsOf(LaunchOp launch);
  /// The kernel has a loss with its gradient.
  bool isLoss(LaunchOp launch);

private:
  struct Work {
    Kind kind = Kind::Other;
    double flops = 0;
    bool loss = false;
  };
  const Work &of(LaunchOp launch);

  llvm::DenseMap<mlir::StringAttr, KernelOp> kernels;
  llvm::DenseMap<mlir::Operation *, Work> known;
};

/// What makes `results` of `launch` again. A region is cut to what they need, from
/// operands or from those of the launch's results that `kept` holds; other kernels
/// are taken whole.
Slice sliceOf(LaunchOp launch, KernelOp kernel, bool canCut, llvm::ArrayRef<unsigned> results,
              llvm::function_ref<bool(mlir::Value)> kept);

/// The kernel of a slice that is not whole: its body cut, on the slice's operands.
/// Without a name yet.
KernelOp cutKernel(mlir::OpBuilder &builder, LaunchOp launch, KernelOp kernel, const Slice &slice);

} // namespace weft
