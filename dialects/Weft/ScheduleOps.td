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
    number of workers. Constraints: operands are the block's arguments in type
    (C1), yielded values the results (C2); `chunks` is at least 1 (C3); operands
    and results that have an axis of `rows` start with all of them (C4).
  }];
  let arguments = (ins Variadic<Weft_Tensor>:$operands, StrArrayAttr:$rows, I64Attr:$chunks);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Weft_KernelOp : Weft_Op<"kernel", [IsolatedFromAbove, Symbol, FunctionOpInterface]> {
  let summary = "a kernel: its body says what it computes, by the original ops";
  let description = [{
    Block arguments are the operands, `weft.yield` gives the results. Named
    after its structural hash. One body op that is not elementwise (contract,
    attend, gather, ...) or a fused body with `rows` and `chunks`. Constraints:
    the block's arguments are the inputs of the type (C1), yielded values its
    results (C2); `chunks` is at least 1 (C3).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                   StrArrayAttr:$rows, I64Attr:$chunks,
                   OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Weft_LaunchOp : Weft_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a kernel applied to values";
  let description = [{ Constraints: the kernel exists (C1) and has the types of operands and results (C2). }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Weft_Tensor>:$operands);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let assemblyFormat = "$kernel `(` $operands `)` attr-dict `:` functional-type(operands, results)";
}

def Weft_ProgramOp : Weft_Op<"program", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "a schedule: calls in order on buffers";
  let description = [{
    `inputs` and `results` name the ports in order; `arena` is the bytes that
    the program needs of the arena, once memory is planned. Constraints: one type
    a port (C1); the body holds buffers, views, calls, fills and copies alone
    (C2); a port's buffer has the port's type and number (C3). Places in the arena
    are the interpreter's to judge.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$inputs, TypeArrayAttr:$input_types,
                   StrArrayAttr:$results, TypeArrayAttr:$result_types, OptionalAttr<I64Attr>:$arena);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `inputs` $inputs $input_types `results` $results $result_types (`arena` $arena^)? $body attr-dict";
  let hasVerifier = 1;
}

def Weft_BufferOp : Weft_Op<"buffer"> {
  let summary = "storage: state, arena, or a port";
  let description = [{
    `offset` counts bytes: in the state or arena; for a port it is the port's
    number. A buffer of the arena has none until memory is planned. Constraints:
    in the other spaces there is an offset, and it is not negative (C1).
  }];
  let arguments = (ins Weft_Space:$space, OptionalAttr<I64Attr>:$offset);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$space (`at` $offset^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Weft_ViewOp : Weft_Op<"view", [Pure]> {
  let summary = "a part of a buffer, from element `start` on";
  let description = [{
    Constraints: the part lies inside the buffer (C1) and has its element type (C2).
  }];
  let arguments = (ins Weft_Tensor:$buffer, I64Attr:$start);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$buffer `from` $start attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Weft_CallOp : Weft_Op<"call", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel: reads `ins`, writes `outs`";
  let description = [{
    An operand that stands in both is updated in place. Constraints: the kernel
    exists (C1) and has the types of `ins` and `outs` (C2); `grid` is at least 1 (C3).
  }];
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
  let description = [{ Constraints: both have one element type and as many elements (C1). }];
  let arguments = (ins Weft_Tensor:$from, Weft_Tensor:$to);
  let assemblyFormat = "$from `to` $to attr-dict `:` type($from) `,` type($to)";
  let hasVerifier = 1;
}

#endif // WEFT_SCHEDULE_OPS_TD
