//===- ScheduleOps.td - Fused regions, kernels and schedules ---------------===//
#ifndef WEFT_SCHEDULE_OPS_TD
#define WEFT_SCHEDULE_OPS_TD

include "dialects/Weft/WeftDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

def Weft_FusedOp : Weft_Op<"fused", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "original ops that one kernel computes, row by row";
  let description = [{
    `rows` are the axes that the kernel runs over (outermost in each tensor that
    has them, or absent from it); empty: every tensor has one shape or is a
    scalar, and the kernel runs over elements. `chunks` parts, whatever the
    number of workers.
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$operands, StrArrayAttr:$rows, I64Attr:$chunks);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
}

def Weft_KernelOp : Weft_Op<"kernel", [IsolatedFromAbove, Symbol, FunctionOpInterface]> {
  let summary = "a kernel: its body says what it computes, by the original ops";
  let description = [{
    Block arguments are the operands, `weft.yield` gives the results. Named
    after its structural hash. One body op that is not elementwise (contract,
    attend, gather, ...) or a fused body with `rows` and `chunks`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                   StrArrayAttr:$rows, I64Attr:$chunks,
                   OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Weft_LaunchOp : Weft_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel applied to values";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Weft_Tensor>:$operands);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict `:` functional-type(operands, results)";
}

def Weft_ProgramOp : Weft_Op<"program", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "a schedule: calls in order on buffers";
  let description = [{
    `inputs` and `results` name the ports in order; `arena` is the bytes that
    the program needs of the arena, once memory is planned.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$inputs, TypeArrayAttr:$input_types,
                   StrArrayAttr:$results, TypeArrayAttr:$result_types, OptionalAttr<I64Attr>:$arena);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `inputs` $inputs $input_types `results` $results $result_types (`arena` $arena^)? $body attr-dict";
}

def Weft_BufferOp : Weft_Op<"buffer"> {
  let summary = "storage: state, arena, or a port";
  let description = [{
    `offset` counts bytes: in the state or arena; for a port it is the port's
    number. A buffer of the arena has none until memory is planned.
  }];
  let arguments = (ins Weft_Space:$space, OptionalAttr<I64Attr>:$offset);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$space (`at` $offset^)? attr-dict `:` type($result)";
}

def Weft_ViewOp : Weft_Op<"view", [Pure]> {
  let summary = "a part of a buffer, from element `start` on";
  let arguments = (ins Weft_Tensor:$buffer, I64Attr:$start);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$buffer `from` $start attr-dict `:` functional-type(operands, results)";
}

def Weft_CallOp : Weft_Op<"call", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel: reads `ins`, writes `outs`";
  let description = [{ An operand that stands in both is updated in place. }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Weft_Tensor>:$ins, Variadic<Weft_Tensor>:$outs,
                   I64Attr:$grid);
  let assemblyFormat = "$kernel `ins` `(` ($ins^ `:` type($ins))? `)` `outs` `(` $outs `:` type($outs) `)` `grid` $grid attr-dict";
}

def Weft_FillOp : Weft_Op<"fill"> {
  let summary = "writes zeros into a buffer";
  let arguments = (ins Weft_Tensor:$buffer);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer)";
}

def Weft_CopyOp : Weft_Op<"copy"> {
  let summary = "copies a buffer into another of the same size";
  let arguments = (ins Weft_Tensor:$from, Weft_Tensor:$to);
  let assemblyFormat = "$from `to` $to attr-dict `:` type($from) `,` type($to)";
}

#endif // WEFT_SCHEDULE_OPS_TD
