//===- Passes.td - From ops to kernels --------------------------------------===//
include "mlir/Pass/PassBase.td"

def FusePass : Pass<"weft-fuse", "::mlir::ModuleOp"> {
  let summary = "group ops between products into regions that one kernel computes row by row";
  let description = [{
    Joins an op to the regions of its producers, and of other readers of its
    operands, as long as they run over the same rows, no value would have to
    leave a region and come back, and the row values of the region fit the
    budget. Values that only their region reads are never stored.

    - Needs: `weft-split-sums`.
    - Gives: every elementwise or row op stands in a `weft.fused`.
    - Cost: a search for a path for each join, bounded by the ops between.
    - Example: `test/passes/Fuse/fuse.mlir`.
  }];
  let options = [Option<"rowBudget", "row-budget", "int64_t", "262144",
                        "bytes of row values that a region may keep live">];
}

def OutlineKernelsPass : Pass<"weft-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "make every computation a launch of a kernel; equal computations share one";
  let description = [{
    A kernel's name is the hash of its printed body, types and attributes:
    locations and labels do not count, so 48 equal layers give as many kernels
    as 12. What differs by layer is an operand.

    - Needs: `weft-fuse`.
    - Gives: functions hold `weft.launch`, state reads and assignments alone.
    - Cost: one print and one hash an op.
    - Example: `test/passes/Fuse/outline-kernels.mlir`.
  }];
}

def SplitSumsPass : Pass<"weft-split-sums", "::mlir::ModuleOp"> {
  let summary = "sums over all rows become one part a chunk and a sum of the parts in order";
  let description = [{
    Gradients of gains, shifts and gates sum over every token. `weft.sum_to`
    over the rows becomes `weft.partial_sum`, which fuses with what makes its
    operand, and a `weft.sum_to` over the axis `chunk`. The number of chunks
    depends on sizes alone: the result is the same for any number of workers.

    - Needs: static sizes.
    - Gives: no `weft.sum_to` removes `batch` and `pos` from a tensor that has both first.
    - Cost: one walk.
    - Example: `test/passes/Fuse/split-sums.mlir`.
  }];
}
