//===- Passes.td - Branches that a plan drops -------------------------------===//
include "mlir/Pass/PassBase.td"

def DropFfnPass : Pass<"weft-drop-ffn", "::mlir::ModuleOp"> {
  let summary = "make branches zero that a plan drops, and set the depth that it gives instead";
  let description = [{
    The module's attribute `weft.drop` lists what goes:
    `{layer = "block", branch = "ffn", indices = array<i64: 0, 1>, setting =
    "depth", depth = 20 : i64}`. Without `indices` the branch goes from every
    repeat of the layer; `setting` and `depth` go together and may be absent.

    The value of the branch becomes 0 and its parameters leave with it. The
    setting's formula becomes the number, so that everything written in terms of
    it (`normal(0.02 / sqrt(2 * depth))`) follows when layers are written out.
    Source: arXiv:2607.18363, Experimental Setup.

    - Needs: a rolled model.
    - Gives: a rolled model without `weft.drop`.
    - Cost: one walk.
    - Example: `test/passes/Drop/drop-ffn.mlir`.
  }];
}
