//===- WeftInterfaces.td - What an op costs, and its gradient ---------------===//
#ifndef WEFT_INTERFACES_TD
#define WEFT_INTERFACES_TD

include "mlir/IR/OpBase.td"

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    The one source of the ledger, of matchings, benchmarks and utilisation.
    Valid on unrolled IR only (static sizes). Causal attention without windows
    counts its T (T + 1) / 2 pairs.
  }];
  let methods = [InterfaceMethod<"FLOPs and bytes of one execution", "::weft::Cost", "getCost", (ins), "",
      [{ return ::weft::elementwiseCost($_op.getOperation()); }]>];
}

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    Builds the gradient of a scalar with respect to each operand. `gradients`
    has one value a result, null where the scalar does not depend on it; the
    answer has one value an operand, null where there is none (integers).
  }];
  let methods = [InterfaceMethod<"", "::llvm::SmallVector<::mlir::Value>", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$gradients)>];
}

#endif // WEFT_INTERFACES_TD
