//===- Passes.td - What the next stage may assume, as code ------------------===//
//
// A check never changes the program. Keep entries in alphabetical order.
//
//===----------------------------------------------------------------------===//
include "mlir/Pass/PassBase.td"

def CheckLocationsPass : Pass<"weft-check-locations", "::mlir::ModuleOp"> {
  let summary = "check that every op and block argument says where it comes from";
  let description = [{
    Ledgers, remarks and `weft why` find a layer by the locations of its ops, so
    an op without one is work that nobody can ask about. An unknown part of a
    fused or named location counts too.

    - Needs: nothing.
    - Gives: no unknown location below the module.
    - Cost: one walk.
    - Example: `test/passes/Check/check-locations.mlir`.
  }];
}

def CheckStaticShapesPass : Pass<"weft-check-static-shapes", "::mlir::ModuleOp"> {
  let summary = "check that every tensor has its sizes and every number its value";
  let description = [{
    Costs, fusion and memory are computed from sizes: an unknown one would be
    counted as a large negative number, not refused. Formulas belong to rolled
    models alone.

    - Needs: `weft-unroll-layers`.
    - Gives: every tensor type is static, no attribute of an op is a formula.
    - Cost: one walk.
    - Example: `test/passes/Check/check-static-shapes.mlir`.
  }];
}
