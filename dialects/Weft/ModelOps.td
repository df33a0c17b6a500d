//===- ModelOps.td - A rolled model, parameters and programs' state --------===//
#ifndef WEFT_MODEL_OPS_TD
#define WEFT_MODEL_OPS_TD

include "dialects/Weft/WeftDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

//===----------------------------------------------------------------------===//
// Rolled: only inside weft.model
//===----------------------------------------------------------------------===//

def Weft_ModelOp : Weft_Op<"model", [IsolatedFromAbove, NoTerminator, SingleBlock, Symbol]> {
  let summary = "a model as it was written: layers rolled, sizes as formulas";
  let description = [{
    `names` and `formulas` are the settings and outer lets in order, each a
    formula of earlier ones or a word. Sizes of every tensor inside are unknown
    (`?`); the axis name says which formula gives it. `batch` and `pos` come
    from the shapes that a program is compiled for. Constraints: one formula a
    name (C1).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$names, ArrayAttr:$formulas);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Weft_InputOp : Weft_Op<"input"> {
  let summary = "an input of the model, by name";
  let arguments = (ins StrAttr:$name);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Weft_ParamOp : Weft_Op<"param"> {
  let summary = "a parameter; its path is the names of the scopes around it and its own";
  let arguments = (ins StrAttr:$name, Weft_InitAttr:$init);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$name $init attr-dict `:` type($result)";
}

def Weft_LetOp : Weft_Op<"let"> {
  let summary = "a size or number of a layer's scope, as a formula";
  let arguments = (ins StrAttr:$name, Weft_FormulaAttr:$value);
  let assemblyFormat = "$name `=` $value attr-dict";
}

def Weft_LayerOp : Weft_Op<"layer", [SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "statements repeated `count` times; carried values go from one repeat to the next";
  let description = [{
    Constraints: operands, block arguments, yielded values and results agree in
    number and type (C1).
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$index, Weft_FormulaAttr:$count, Variadic<Weft_Tensor>:$carried);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Weft_BranchOp : Weft_Op<"branch", [SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments]> {
  let summary = "a named value: plans address it, dropping it makes it zero";
  let description = [{ Constraints: the region yields one value of the result's type (C1). }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Weft_Tensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name $body attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Weft_IfOp : Weft_Op<"if", [NoRegionArguments]> {
  let summary = "text chosen before anything runs, by a layer's index or a repeat count";
  let description = [{ Constraints: both regions yield values of the results' types (C1). }];
  let arguments = (ins Weft_FormulaAttr:$test);
  let results = (outs Variadic<Weft_Tensor>:$results);
  let regions = (region SizedRegion<1>:$thenRegion, SizedRegion<1>:$elseRegion);
  let assemblyFormat = "$test $thenRegion `else` $elseRegion attr-dict `:` type($results)";
  let hasVerifier = 1;
}

def Weft_YieldOp : Weft_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the values that a region ends with";
  let arguments = (ins Variadic<AnyType>:$values);
  let builders = [OpBuilder<(ins), [{}]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Weft_OutputOp : Weft_Op<"output"> {
  let summary = "a named output of the model";
  let arguments = (ins StrAttr:$name, Weft_Tensor:$value);
  let assemblyFormat = "$name $value attr-dict `:` type($value)";
}

def Weft_LossOp : Weft_Op<"loss"> {
  let summary = "the scalar that training lowers: a sum over counted targets";
  let description = [{ Constraints: it is a single number (C1). }];
  let arguments = (ins Weft_Float:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Unrolled: state of a module, read at the top and assigned at the end
//===----------------------------------------------------------------------===//

def Weft_StateOp : Weft_Op<"state", [Symbol]> {
  let summary = "a tensor that outlives programs: parameter, gradient, moment, cache, table or control";
  let description = [{
    Entries of the role `control` belong to plans (windows, statistics,
    patterns): checkpoints keep them, no optimiser steps them.

    `offset`, given by `lay-out-params`, counts bytes from the start of the
    state; siblings that one optimiser steps stand beside one another. An entry
    with `slices` holds a part of what the model's text declares. Constraints:
    they have the entry's shape (C1).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Weft_Role:$role, TypeAttrOf<Weft_Tensor>:$type,
                   Weft_InitAttr:$init, OptionalAttr<I64Attr>:$offset, OptionalAttr<Weft_SlicesAttr>:$slices);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::weft::Role":$role, "::mlir::Type":$type,
                                 "::weft::InitAttr":$init, "::mlir::IntegerAttr":$offset),
                            [{ build($_builder, $_state, name, role, ::llvm::cast<::mlir::RankedTensorType>(type), init,
                                      offset, ::weft::SlicesAttr()); }]>];
  let assemblyFormat = "$role $sym_name $init (`slices` $slices^)? (`offset` $offset^)? attr-dict `:` $type";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
  }];
}

def Weft_GetOp : Weft_Op<"get", [MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value that a state entry has when the program starts";
  let description = [{ Constraints: the entry exists and has the type of the result (C1). }];
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "$state attr-dict `:` type($result)";
}

def Weft_SetOp : Weft_Op<"set", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "assigns a state entry at the end of the program";
  let description = [{ Constraints: the entry exists and has the type of the value (C1). }];
  let arguments = (ins FlatSymbolRefAttr:$state, Weft_Tensor:$value);
  let assemblyFormat = "$state `,` $value attr-dict `:` type($value)";
}

class Weft_FlatOp<string mnemonic, list<Trait> traits>
    : Weft_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)> {
  let description = [{
    Constraints: the entries exist (C1); the vector has their element type and as
    many elements as they have together (C2).
  }];
}

def Weft_GetFlatOp : Weft_FlatOp<"get_flat", [MemoryEffects<[MemRead]>]> {
  let summary = "several state entries, one after another, as one vector without axis names";
  let arguments = (ins FlatSymbolRefArrayAttr:$states);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$states attr-dict `:` type($result)";
}

def Weft_SetFlatOp : Weft_FlatOp<"set_flat", [MemoryEffects<[MemWrite]>]> {
  let summary = "assigns several state entries from one vector";
  let arguments = (ins FlatSymbolRefArrayAttr:$states, Weft_Float:$value);
  let assemblyFormat = "$states `,` $value attr-dict `:` type($value)";
}

#endif // WEFT_MODEL_OPS_TD
