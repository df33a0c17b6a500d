//===- WeftDialect.td - The weft dialect, its attributes and bases ---------===//
#ifndef WEFT_DIALECT_TD
#define WEFT_DIALECT_TD

include "mlir/IR/OpBase.td"
include "dialects/Weft/WeftInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def WeftDialect : Dialect {
  let name = "weft";
  let cppNamespace = "::weft";
  let summary = "a transformer as its author wrote it: immutable tensors with named axes";
  let description = [{
    Values are builtin ranked tensors whose axis names travel in the encoding
    (`tensor<16x256x128xf32, #weft.axes<batch, pos, dim>>`). In a *rolled* model
    (inside `weft.model`) sizes are unknown and names carry formulas; after
    `unroll-layers` every size is static. Names decide which axes line up, which
    are summed and which are repeated; order decides storage alone.

    What was left out on purpose: no implicit broadcast by position, no layout
    attribute on values, no in-place op before the schedule, no op that knows a
    device, no window inside a type.
  }];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Weft_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<WeftDialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Weft_AxesAttr : Weft_Attr<"Axes", "axes",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "names of a tensor's axes, outermost first";
  let description = [{
    `#weft.axes<batch, pos, dim>`. As many names as the tensor has axes (C1), no
    name twice (C2). A tensor without axes has no encoding.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Weft_FormulaAttr : Weft_Attr<"Formula", "formula"> {
  let summary = "a compile-time formula over settings, lets and layer indices";
  let description = [{
    `#weft.formula<"0.02 / sqrt(2 * depth)">`: canonical text of
    `frontend/Formula.h`, which parses it (C1) and evaluates it.
  }];
  let parameters = (ins "::mlir::StringAttr":$text);
  let assemblyFormat = "`<` $text `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static FormulaAttr get(::mlir::MLIRContext *context, const ::weft::lang::Formula &formula);
    ::weft::lang::FormulaRef formula() const;
  }];
}

def Weft_InitKind : I32EnumAttr<"InitKind", "how a parameter starts", [
    I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Normal", 1, "normal">,
    I32EnumAttrCase<"Uniform", 2, "uniform">, I32EnumAttrCase<"Truncated", 3, "truncated">,
    I32EnumAttrCase<"Orthogonal", 4, "orthogonal">, I32EnumAttrCase<"RopeTable", 5, "rope_table">]> {
  let cppNamespace = "::weft";
  let genSpecializedAttr = 0;
}

def Weft_InitAttr : Weft_Attr<"Init", "init"> {
  let summary = "initial values: constant(value), normal(std), uniform(low, high), truncated(std), "
                "orthogonal(gain), rope_table(base)";
  let description = [{
    `#weft.init<normal, 2.000000e-02 : f64>`. Numbers are f64, or formulas while
    the model is rolled. `rope_table(base)` fills [positions, half, 2] with
    cos and sin of position * base^(-i / half), computed in double.
  }];
  let parameters = (ins EnumParameter<Weft_InitKind>:$kind, "::mlir::Attribute":$a,
                    OptionalParameter<"::mlir::Attribute">:$b);
  let assemblyFormat = "`<` $kind `,` $a (`,` $b^)? `>`";
}

def Weft_SlicesAttr : Weft_Attr<"Slices", "slices"> {
  let summary = "which slices of a larger tensor a state entry holds";
  let description = [{
    `#weft.slices<of [128, 4, 2, 32] axes 1 + 2 kept [0, 1, 5]>`: the tensor of
    this shape without the slices that a plan removed. `axis_count` axes from
    `first_axis` on are counted together, row-major; `kept` are the places that
    are left, in order. The entry has one axis in place of those. Constraints: the
    axes are axes of the shape (C1); `kept` increases and names places of them
    (C2).
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$full_shape, "int64_t":$first_axis, "int64_t":$axis_count,
                    ArrayRefParameter<"int64_t">:$kept);
  let assemblyFormat = "`<` `of` `[` $full_shape `]` `axes` $first_axis `+` $axis_count `kept` `[` $kept `]` `>`";
  let genVerifyDecl = 1;
}

def Weft_Role : I32EnumAttr<"Role", "what a state entry is for", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Gradient", 1, "gradient">,
    I32EnumAttrCase<"Moment", 2, "moment">, I32EnumAttrCase<"Cache", 3, "cache">,
    I32EnumAttrCase<"Table", 4, "table">, I32EnumAttrCase<"Control", 5, "control">]> {
  let cppNamespace = "::weft";
}

def Weft_UnaryFn : I32EnumAttr<"UnaryFn", "an elementwise function", [
    I32EnumAttrCase<"Neg", 0, "neg">, I32EnumAttrCase<"Exp", 1, "exp">,
    I32EnumAttrCase<"Log", 2, "log">, I32EnumAttrCase<"Sqrt", 3, "sqrt">,
    I32EnumAttrCase<"Tanh", 4, "tanh">, I32EnumAttrCase<"Sigmoid", 5, "sigmoid">,
    I32EnumAttrCase<"Silu", 6, "silu">, I32EnumAttrCase<"Gelu", 7, "gelu">,
    I32EnumAttrCase<"GeluTanh", 8, "gelu_tanh">, I32EnumAttrCase<"Relu", 9, "relu">]> {
  let cppNamespace = "::weft";
}

def Weft_BinaryFn : I32EnumAttr<"BinaryFn", "an elementwise function of two values", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Sub", 1, "sub">,
    I32EnumAttrCase<"Mul", 2, "mul">, I32EnumAttrCase<"Div", 3, "div">,
    I32EnumAttrCase<"Pow", 4, "pow">]> {
  let cppNamespace = "::weft";
}

def Weft_Space : I32EnumAttr<"BufferSpace", "where a buffer lives", [
    I32EnumAttrCase<"State", 0, "state">, I32EnumAttrCase<"Arena", 1, "arena">,
    I32EnumAttrCase<"Input", 2, "input">, I32EnumAttrCase<"Result", 3, "result">]> {
  let cppNamespace = "::weft";
}

/// A number, or a formula while the model is rolled.
def Weft_Number : AnyAttrOf<[F64Attr, Weft_FormulaAttr], "a number or a formula">;

//===----------------------------------------------------------------------===//
// Types and bases
//===----------------------------------------------------------------------===//

def Weft_Float : RankedTensorOf<[F32, F64, BF16]>;
def Weft_Int : RankedTensorOf<[I32]>;
def Weft_Tensor : RankedTensorOf<[F32, F64, BF16, I32]>;

class Weft_Op<string mnemonic, list<Trait> traits = []> : Op<WeftDialect, mnemonic, traits>;

class Weft_PureOp<string mnemonic, list<Trait> traits = []>
    : Weft_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<CostOpInterface>], traits)>;

#endif // WEFT_DIALECT_TD
