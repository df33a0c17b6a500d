//===- Passes.td - Order of the heads of an attention ---------------------===//
include "mlir/Pass/PassBase.td"

def BucketHeadsPass : Pass<"weft-bucket-heads", "::mlir::ModuleOp"> {
  let summary = "work on heads with wide windows first";
  let description = [{
    Where the windows of an attend are constants and differ, gives it an `order`:
    heads of one window class stand together, the widest first, in a class by
    number. Workers take items in this order, so what is left at the end is short.
    Of the gradient for keys and values it orders key-value heads, by the sum of
    the windows that read them. No value changes.

    - Needs: programs; windows that are `weft.integers`.
    - Gives: `order` on attend, attend_grad_query, attend_grad_key_value.
    - Cost: one walk.
    - Example: `test/passes/Bucket/bucket-heads.mlir`.
  }];
}
