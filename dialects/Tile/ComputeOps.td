//===- ComputeOps.td - Products and fragments ------------------------------===//
#ifndef TILE_COMPUTE_OPS_TD
#define TILE_COMPUTE_OPS_TD

include "dialects/Tile/TileDialect.td"

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Tile_FenceProductsOp : Tile_Op<"fence_products"> {
  let summary = "orders this warpgroup's registers before the products that follow (wgmma.fence)";
  let assemblyFormat = "attr-dict";
}

def Tile_ProductOp : Tile_Op<"product"> {
  let summary = "an asynchronous product of tiles (wgmma)";
  let description = [{
    result[i, n] = init[i, n] + sum over k of a[i, k] b[n, k], or b[k, n] with
    `trans_b`: bf16 times bf16, summed in f32; without `init` from 0. Reads of
    shared memory and of registers and the write of the result happen between this
    op and the `tile.wait_products` that ends its group. `a` is a tile of 64 rows, or
    a fragment of bf16; `init` may be the result of a product under way: sums go on
    in the same registers. Constraints: bf16 operands, each of one stage, 64 rows
    in `a` (C1); k agrees and is a multiple of 16 (C2); n agrees with the result of f32
    and is a multiple of 8 and at most 256 (C3); until a wait gives it back, a result is
    used only by `init` of a product, by waits and by terminators, and a fragment that is
    `a` is used after the product only by products and by waits (C4).
  }];
  let arguments = (ins Tile_LeftOperand:$a, Tile_SmemType:$b, Optional<Tile_FragType>:$init, UnitAttr:$trans_b);
  let results = (outs Tile_FragType:$result);
  let assemblyFormat = "$a `,` $b (`init` $init^)? (`trans_b` $trans_b^)? attr-dict `:` type($a) `,` type($b) (`init` type($init)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Tile_CommitProductsOp : Tile_Op<"commit_products"> {
  let summary = "closes a group of products (wgmma.commit_group)";
  let assemblyFormat = "attr-dict";
}

def Tile_WaitProductsOp : Tile_Op<"wait_products"> {
  let summary = "waits until at most `pending` groups of products are under way";
  let description = [{
    Every accumulator and every left fragment of the groups that end here is an
    operand; the results are the same registers and the only usable names for them.
    Fragments of groups still under way may come too and stay under way. Constraints:
    results have the operands' types (C1); `pending` is from 0 to 7 (C2).
  }];
  let arguments = (ins I64Attr:$pending, Variadic<Tile_FragType>:$frags);
  let results = (outs Variadic<Tile_FragType>:$results);
  let builders = [OpBuilder<(ins "int64_t":$pending, "::mlir::ValueRange":$frags)>];
  let assemblyFormat = "$pending (`(` $frags^ `)`)? attr-dict (`:` type($frags)^)? (`->` type($results)^)?";
  let hasVerifier = 1;
}

def Tile_ProductSyncOp : Tile_Op<"product_sync"> {
  let summary = "a product of tiles, done at once (mma.sync)";
  let description = [{
    As `tile.product` with `a` in registers, and the result is there at once.
    Constraints: bf16 operands, `b` of one stage (C1); k agrees and is a multiple of 16
    (C2); n agrees with the result of f32 and is a multiple of 16 and at most 256 (C3).
  }];
  let arguments = (ins Tile_FragType:$a, Tile_SmemType:$b, Optional<Tile_FragType>:$init, UnitAttr:$trans_b);
  let results = (outs Tile_FragType:$result);
  let assemblyFormat = "$a `,` $b (`init` $init^)? (`trans_b` $trans_b^)? attr-dict `:` type($a) `,` type($b) (`init` type($init)^)? `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

def Tile_MapOp : Tile_Op<"map", [Pure, SingleBlock]> {
  let summary = "element by element over fragments, rows, columns and scalars";
  let description = [{
    The block gets one scalar an input (rows and columns are repeated) and, with
    `coordinates`, the row and the column inside the fragment (i32; 0 for the one that
    the results lack). Scalars that are the same in all threads may be used from
    outside. The body holds `arith`, `math`, `tile.exp2` and `tile.call` on f32, i32, i64 and i1. Constraints:
    the block's arguments are the inputs' elements and the coordinates (C1); the yielded
    values are the results' elements (C2); all results have one shape, and each input
    is repeated to it (C3); the body's ops are scalar (C4).
  }];
  let arguments = (ins Variadic<Tile_MapInput>:$inputs, UnitAttr:$coordinates);
  let results = (outs Variadic<Tile_Fragment>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`(` $inputs^ `:` type($inputs) `)`)? (`coordinates` $coordinates^)? $body attr-dict `->` type($results)";
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Terminator, Pure, HasParent<"MapOp">]> {
  let summary = "gives a map's elements";
  let arguments = (ins Variadic<Tile_Scalar>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def Tile_Exp2Op : Tile_Op<"exp2", [Pure]> {
  let summary = "2 to the power of x, fast (ex2.approx.ftz: relative error 2^-22, exp2(-inf) = 0)";
  let arguments = (ins F32:$x);
  let results = (outs F32:$result);
  let assemblyFormat = "$x attr-dict";
}

def Tile_CallOp : Tile_Op<"call", [Pure]> {
  let summary = "calls a device function of a library that is linked in later";
  let description = [{
    `%y = tile.call @softcap(%x) : (f32) -> f32`: of a thread's own values, inside
    `tile.map`. In PTX it is an `.extern .func`; PTX or LTO-IR that defines it is
    linked by nvJitLink. The function reads no memory that the kernel writes and has
    no effects. Constraints: it stands in tile.map (C1).
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Tile_Scalar>:$operands);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$callee `(` $operands `)` attr-dict `:` functional-type($operands, $result)";
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "one value a row from a fragment's columns";
  let description = [{
    Each thread takes its own columns in order; then the quad joins (threads one
    apart, then two apart). With `partial` each thread keeps its own part.
    Constraints: f32, and as many values as rows (C1).
  }];
  let arguments = (ins Tile_Fold:$fold, Tile_FragType:$frag, UnitAttr:$partial);
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "$fold $frag (`partial` $partial^)? attr-dict `:` type($frag) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_QuadOp : Tile_Op<"quad", [Pure]> {
  let summary = "joins the parts that the threads of a quad hold";
  let description = [{ Constraints: the result has the operand's type, of f32 (C1). }];
  let arguments = (ins Tile_Fold:$fold, Tile_RowsType:$rows);
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "$fold $rows attr-dict `:` type($rows) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_CastOp : Tile_Op<"cast", [Pure]> {
  let summary = "a fragment in the other type of elements: f32 rounded to bf16, to nearest even, or bf16 as f32";
  let description = [{ Constraints: between f32 and bf16, of the same shape (C1). }];
  let arguments = (ins Tile_FragType:$frag);
  let results = (outs Tile_FragType:$result);
  let assemblyFormat = "$frag attr-dict `:` type($frag) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ColumnsOp : Tile_Op<"columns", [Pure]> {
  let summary = "some columns of a fragment: the same registers";
  let description = [{
    Columns `first` and on, as many as the result has. Constraints: the result has the
    fragment's elements (C1); `first` is a multiple of 8, of 16 for bf16, and the
    fragment has those columns (C2).
  }];
  let arguments = (ins Tile_FragType:$frag, I64Attr:$first);
  let results = (outs Tile_FragType:$result);
  let assemblyFormat = "$frag `from` $first attr-dict `:` type($frag) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ZeroOp : Tile_Op<"zero", [Pure]> {
  let summary = "a fragment of zeros";
  let results = (outs Tile_Fragment:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "one scalar everywhere";
  let description = [{ Constraints: the scalar has the elements' type (C1). }];
  let arguments = (ins Tile_Scalar:$value);
  let results = (outs Tile_Fragment:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TILE_COMPUTE_OPS_TD
