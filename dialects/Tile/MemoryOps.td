//===- MemoryOps.td - Shared tiles, copies, loads and stores ---------------===//
#ifndef TILE_MEMORY_OPS_TD
#define TILE_MEMORY_OPS_TD

include "dialects/Tile/TileDialect.td"

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

def Tile_AllocOp : Tile_Op<"alloc", [HasParent<"KernelOp">]> {
  let summary = "a ring of tiles in shared memory, at a multiple of 1024 bytes";
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_StageOp : Tile_Op<"stage", [Pure]> {
  let summary = "one tile of a ring";
  let description = [{ Constraints: the result is one stage of the ring (C1). }];
  let arguments = (ins Tile_SmemType:$ring, I32:$index);
  let results = (outs Tile_SmemType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring, "::mlir::Value":$index)>];
  let assemblyFormat = "$ring `[` $index `]` attr-dict `:` type($ring) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_SliceOp : Tile_Op<"slice", [Pure]> {
  let summary = "some rows of a tile";
  let description = [{
    `rows` consecutive rows from row `row` on, a multiple of 8. Constraints: the
    result has the same panels and pitch and the rows asked for (C1), a multiple of
    8 and at most the tile's (C2).
  }];
  let arguments = (ins Tile_SmemType:$tile, I32:$row);
  let results = (outs Tile_SmemType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$tile, "::mlir::Value":$row, "int64_t":$rows)>];
  let assemblyFormat = "$tile `[` $row `]` attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_PanelOp : Tile_Op<"panel", [Pure]> {
  let summary = "one panel of a tile";
  let description = [{ Constraints: the tile has that panel (C1); the result is one panel of it (C2). }];
  let arguments = (ins Tile_SmemType:$tile, I64Attr:$panel);
  let results = (outs Tile_SmemType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$tile, "int64_t":$panel)>];
  let assemblyFormat = "$tile `at` $panel attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_HankelOp : Tile_Op<"hankel", [Pure]> {
  let summary = "a tile whose elements depend on row + column alone, from its blocks of 8 x 8";
  let description = [{
    With `%blocks` of type `smem<1 x R x 8>`, rows 8 b to 8 b + 7 being block b,
    element (r, c) of the result is element (r mod 8, c mod 8) of block
    `row` / 8 + r / 8 + c / 8: panels of 8 columns that overlap, which a descriptor of
    wgmma reads as they are. Operand of products alone. `row` is a multiple of 8.
    Constraints: blocks are one stage of bf16 in one panel of 8 columns without
    swizzle (C1); the result has 64 rows, panels of 8 columns at a pitch of 8 and
    not more blocks than there are (C2).
  }];
  let arguments = (ins Tile_SmemType:$blocks, I32:$row);
  let results = (outs Tile_SmemType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$blocks, "::mlir::Value":$row, "int64_t":$columns)>];
  let assemblyFormat = "$blocks `[` $row `]` attr-dict `:` type($blocks) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_AllocCellsOp : Tile_Op<"cells", [HasParent<"KernelOp">]> {
  let summary = "numbers in shared memory, at a multiple of 1024 bytes";
  let results = (outs Tile_CellsType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tile_WriteOp : Tile_Op<"write"> {
  let summary = "writes a number into a cell: one thread does it";
  let description = [{
    Others see it after a wait for a barrier at which that thread arrived later, or
    after `tile.sync`. Constraints: one thread does it (C1).
  }];
  let arguments = (ins I32:$value, Tile_CellsType:$cells, I32:$index);
  let assemblyFormat = "$value `,` $cells `[` $index `]` attr-dict `:` type($cells)";
  let hasVerifier = 1;
}

def Tile_ReadOp : Tile_Op<"read"> {
  let summary = "reads a cell, the same for all threads of the warpgroup";
  let arguments = (ins Tile_CellsType:$cells, I32:$index);
  let results = (outs I32:$result);
  let assemblyFormat = "$cells `[` $index `]` attr-dict `:` type($cells)";
}

//===----------------------------------------------------------------------===//
// Copies into shared memory
//===----------------------------------------------------------------------===//

def Tile_LoadTileOp : Tile_Op<"load_tile"> {
  let summary = "copies a box of a tensor into shared memory (TMA), onto a barrier";
  let description = [{
    `coordinates` name the box's first element, innermost first; elements outside
    of the tensor come as 0. The box is the map's: as many elements as the tile has.
    Constraints: one thread does it (C1); the tile is one panel of one stage, at
    most 256 by 256 (C2); there are 1 to 5 coordinates (C3).
  }];
  let arguments = (ins Tile_MapType:$map, Variadic<I32>:$coordinates, Tile_SmemType:$tile,
                   Tile_BarriersType:$barriers, I32:$index);
  let assemblyFormat = "$map `[` $coordinates `]` `to` $tile `barrier` $barriers `[` $index `]` attr-dict `:` type($tile) `,` type($barriers)";
  let hasVerifier = 1;
}

def Tile_LoadBulkOp : Tile_Op<"load_bulk"> {
  let summary = "copies consecutive elements into shared memory, onto a barrier";
  let description = [{
    As many elements as the tile has, from element `offset` on; both ends at
    multiples of 16 bytes. Constraints: one thread does it (C1); the tile is one
    panel of one stage of the elements' type without swizzle (C2), a multiple of 16
    bytes (C3).
  }];
  let arguments = (ins Tile_GlobalType:$global, I64:$offset, Tile_SmemType:$tile,
                   Tile_BarriersType:$barriers, I32:$index);
  let assemblyFormat = "$global `[` $offset `]` `to` $tile `barrier` $barriers `[` $index `]` attr-dict `:` type($global) `,` type($tile) `,` type($barriers)";
  let hasVerifier = 1;
}

def Tile_CopyColsOp : Tile_Op<"copy_cols"> {
  let summary = "copies strided elements into a row of shared memory (cp.async), onto a barrier";
  let description = [{
    Element c of the tile comes from element `offset + c * stride`, and is 0 from
    column `limit` on. Each thread copies one at most and arrives on the barrier
    when its own has come: 128 arrivals, and no bytes to expect. No tensor copy
    does this, whose rows are of 16 bytes at least. Constraints: the tile is one
    row of f32 without swizzle, at most 128 (C1), and elements are f32 (C2).
  }];
  let arguments = (ins Tile_GlobalType:$global, I64:$offset, I64:$stride, I32:$limit, Tile_SmemType:$tile,
                   Tile_BarriersType:$barriers, I32:$index);
  let assemblyFormat = "$global `[` $offset `]` `stride` $stride `columns` $limit `to` $tile `barrier` $barriers `[` $index `]` attr-dict `:` type($global) `,` type($tile) `,` type($barriers)";
  let extraClassDeclaration = [{
    /// What it adds to the count of `tile.init_barrier`.
    static constexpr int64_t kArrivals = 128;
  }];
  let hasVerifier = 1;
}

def Tile_CopyAsyncOp : Tile_Op<"copy_async"> {
  let summary = "copies rows into shared memory (cp.async)";
  let description = [{
    Row r of the tile comes from elements `offset + r * stride` on, and is 0 from
    row `limit` on. Rows start at multiples of 16 bytes. Others see it after
    `tile.copy_commit`, `tile.copy_wait` and `tile.sync`. Constraints: one
    stage, of the elements' type (C1); a panel's row is a multiple of 16 bytes (C2).
  }];
  let arguments = (ins Tile_GlobalType:$global, I64:$offset, I64:$stride, I32:$limit, Tile_SmemType:$tile);
  let assemblyFormat = "$global `[` $offset `]` `stride` $stride `rows` $limit `to` $tile attr-dict `:` type($global) `,` type($tile)";
  let hasVerifier = 1;
}

def Tile_CopyCommitOp : Tile_Op<"copy_commit"> {
  let summary = "closes a group of copies (cp.async.commit_group)";
  let assemblyFormat = "attr-dict";
}

def Tile_CopyWaitOp : Tile_Op<"copy_wait"> {
  let summary = "waits until at most `pending` groups of copies are under way";
  let description = [{ Constraints: `pending` is not negative (C1). }];
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Fragments and global memory
//===----------------------------------------------------------------------===//

def Tile_StoreFragOp : Tile_Op<"store_frag"> {
  let summary = "writes a fragment's rows to global memory";
  let description = [{
    Element (r, c) goes to `offset + r * stride + c`, for r below `limit`, with `tail` for
    r from `limit` on; f32 is
    rounded to nearest even where elements are bf16. `offset` and `stride` are even; with
    `wide` they are multiples of 8, and a thread writes 16 bytes at a time.
    Constraints: elements are bf16 or f32, and bf16 for a fragment of bf16 (C1); `wide` is
    for elements of bf16 and a multiple of 32 columns (C2).
  }];
  let arguments = (ins Tile_FragType:$frag, Tile_GlobalType:$global, I64:$offset, I64:$stride, I32:$limit,
                   UnitAttr:$tail, UnitAttr:$wide);
  let assemblyFormat = "$frag `,` $global `[` $offset `]` `stride` $stride `rows` $limit (`tail` $tail^)? (`wide` $wide^)? attr-dict `:` type($frag) `,` type($global)";
  let hasVerifier = 1;
}

def Tile_LoadFragOp : Tile_Op<"load_frag"> {
  let summary = "reads a fragment's rows from global memory";
  let description = [{
    Element (r, c) is `offset + r * stride + c`, and 0 from row `limit` on. `offset`
    and `stride` are even; with `wide` they are multiples of 8, and a thread reads 16
    bytes at a time. Constraints: elements are bf16 or f32, and bf16 for a
    fragment of bf16 (C1); `wide` is for elements of bf16 and a multiple of 32 columns (C2).
  }];
  let arguments = (ins Tile_GlobalType:$global, I64:$offset, I64:$stride, I32:$limit, UnitAttr:$wide);
  let results = (outs Tile_FragType:$result);
  let assemblyFormat = "$global `[` $offset `]` `stride` $stride `rows` $limit (`wide` $wide^)? attr-dict `:` type($global) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_StoreRowsOp : Tile_Op<"store_rows"> {
  let summary = "writes one value a row to global memory";
  let description = [{
    Value r goes to `offset + r * stride`, for r below `limit`, with `tail` for r from
    `limit` on. The threads of a quad
    hold equal values. Constraints: elements have the values' type, or are bf16 for
    f32 (C1).
  }];
  let arguments = (ins Tile_RowsType:$rows, Tile_GlobalType:$global, I64:$offset, I64:$stride, I32:$limit,
                   UnitAttr:$tail);
  let assemblyFormat = "$rows `,` $global `[` $offset `]` `stride` $stride `rows` $limit (`tail` $tail^)? attr-dict `:` type($rows) `,` type($global)";
  let hasVerifier = 1;
}

def Tile_LoadRowsOp : Tile_Op<"load_rows"> {
  let summary = "reads one value a row from global memory";
  let description = [{
    Value r is `offset + r * stride`, and 0 from row `limit` on, with `tail` 0
    below it. Constraints: elements
    have the values' type, or are bf16 for f32 (C1).
  }];
  let arguments = (ins Tile_GlobalType:$global, I64:$offset, I64:$stride, I32:$limit,
                   UnitAttr:$tail);
  let results = (outs Tile_RowsType:$result);
  let assemblyFormat = "$global `[` $offset `]` `stride` $stride `rows` $limit (`tail` $tail^)? attr-dict `:` type($global) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_LoadColsOp : Tile_Op<"load_cols"> {
  let summary = "reads one value a column from global memory";
  let description = [{
    Value c is `offset + c * stride`, and 0 from column `limit` on. Constraints:
    elements have the values' type, or are bf16 for f32 (C1).
  }];
  let arguments = (ins Tile_GlobalType:$global, I64:$offset, I64:$stride, I32:$limit);
  let results = (outs Tile_ColsType:$result);
  let assemblyFormat = "$global `[` $offset `]` `stride` $stride `columns` $limit attr-dict `:` type($global) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load"> {
  let summary = "reads one element, the same for all threads";
  let description = [{ Constraints: the value has the elements' type, or is f32 for bf16 (C1). }];
  let arguments = (ins Tile_GlobalType:$global, I64:$offset);
  let results = (outs Tile_Scalar:$result);
  let assemblyFormat = "$global `[` $offset `]` attr-dict `:` type($global) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store"> {
  let summary = "writes one element: one thread does it";
  let description = [{ Constraints: elements have the value's type, or are bf16 for f32 (C1). }];
  let arguments = (ins Tile_Scalar:$value, Tile_GlobalType:$global, I64:$offset);
  let assemblyFormat = "$value `,` $global `[` $offset `]` attr-dict `:` type($value) `,` type($global)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Fragments and shared memory
//===----------------------------------------------------------------------===//

def Tile_ReadFragOp : Tile_Op<"read_frag"> {
  let summary = "reads a tile into the left operand of a product (ldmatrix)";
  let description = [{ Constraints: one stage of bf16 (C1) with the fragment's rows and columns (C2). }];
  let arguments = (ins Tile_SmemType:$tile);
  let results = (outs Tile_FragType:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_WriteFragOp : Tile_Op<"write_frag"> {
  let summary = "writes a fragment of bf16 into a tile (stmatrix)";
  let description = [{
    A plain write: others see it after `tile.sync`, copies and products after
    `tile.fence_async` and `tile.sync`. Constraints: one stage of bf16 (C1) with the
    fragment's rows and columns (C2).
  }];
  let arguments = (ins Tile_FragType:$frag, Tile_SmemType:$tile);
  let assemblyFormat = "$frag `,` $tile attr-dict `:` type($frag) `,` type($tile)";
  let hasVerifier = 1;
}

def Tile_ReadColsOp : Tile_Op<"read_cols"> {
  let summary = "reads one value a column from a row in shared memory";
  let description = [{ Constraints: one stage of one row of f32 without swizzle (C1), as many as columns (C2). }];
  let arguments = (ins Tile_SmemType:$tile);
  let results = (outs Tile_ColsType:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TILE_MEMORY_OPS_TD
