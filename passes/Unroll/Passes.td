//===- Passes.td - From rolled to unrolled ----------------------------------===//
include "mlir/Pass/PassBase.td"

def UnrollLayersPass : Pass<"weft-unroll-layers", "::mlir::ModuleOp"> {
  let summary = "write layers out, evaluate formulas, give every tensor its size";
  let description = [{
    Replaces the module's `weft.model` by `weft.state` entries, one a parameter
    and rope table, and `func.func @forward`, whose arguments are the inputs in
    order and then `doc_start`, and whose results are the loss and the outputs.

    - Needs: `weft-drop-ffn`, where a plan drops layers.
    - Gives: static sizes everywhere; no formula is left.
    - Cost: one walk an unrolled layer.
    - Example: `test/passes/Unroll/unroll-layers.mlir`.
  }];
  let options = [
    Option<"batch", "batch", "int64_t", "1", "rows of a program">,
    Option<"positions", "positions", "int64_t", "16", "positions of a row">,
    Option<"double_", "f64", "bool", "false", "float64 instead of float32">,
  ];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}
