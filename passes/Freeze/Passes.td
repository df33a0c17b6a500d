//===- Passes.td - Frozen and pruned heads ----------------------------------===//
include "mlir/Pass/PassBase.td"

def FreezeHeadsPass : Pass<"weft-freeze-heads", "::mlir::ModuleOp"> {
  let summary = "give frozen heads their patterns, take pruned heads out of the model";
  let description = [{
    Reads the module's `weft.frozen` (site -> {heads, windows, trained, length, dense})
    and `weft.pruned` (site -> heads), sites being attends by path, heads query
    heads as the model is written. Live heads keep `weft.attend`; frozen ones get
    `weft.mix` with the state `pattern/SITE/a` and `/r`, or `weft.mix_dense` with
    `pattern/SITE/p`; pruned ones add nothing.
    What heads no longer need goes down to the weights as `weft.take`, and a
    parameter that is only taken from becomes a smaller entry with `slices`. The
    output's product becomes one a part, summed; heads keep their order.

    - Needs: `weft-unroll-layers`.
    - Gives: no q or k of a frozen head is computed, stored or stepped. Changes
      what the model computes: the decisions say so.
    - Cost: one walk, and one a use of an attend.
    - Example: `test/passes/Freeze/freeze-heads.mlir`.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}
