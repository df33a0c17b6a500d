//===- TileDialect.td - The tile dialect, its types and bases --------------===//
#ifndef TILE_DIALECT_TD
#define TILE_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def TileDialect : Dialect {
  let name = "tile";
  let cppNamespace = "::weft::tile";
  let summary = "what one warpgroup of a GPU does: fragments, shared tiles, explicit asynchrony";
  let description = [{
    One op stands for what one warpgroup (128 threads) does, except inside
    `tile.elect`, where one thread acts. Scalars (i1, i32, i64, index, f32) are
    the same in all threads of a warpgroup; `arith` computes them, and `scf.for`,
    `scf.if` and `scf.while` give order.

    Layouts are fixed. A fragment of 64 rows gives each of the four warps a slab
    of 16 rows; in it thread `l` holds rows `l / 4` and `l / 4 + 8` and columns
    `8 j + 2 (l % 4)` and the next one, for every `j`: the accumulators of wgmma
    and of mma.sync alike. Four threads that share a row are a *quad*.

    Asynchrony is explicit: copies and products take effect at any moment between
    their issue and the wait that ends them, and nothing may count on an earlier
    or a later one. Kernels order them with memory barriers (`tile.wait`), with
    `tile.wait_products` and `tile.copy_wait`, with named barriers (`tile.sync`)
    and with fences between the generic and the asynchronous view of shared memory.

    What was left out on purpose: no inference of layouts, no automatic
    pipelining, no view of a thread, no clusters.
  }];
  let useDefaultTypePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Tile_Type<string name, string typeMnemonic> : TypeDef<TileDialect, name> {
  let mnemonic = typeMnemonic;
}

def Tile_SmemType : Tile_Type<"Smem", "smem"> {
  let summary = "a ring of tiles in shared memory";
  let description = [{
    `!tile.smem<2x64x128xbf16, swizzle 128, panels 2>`: two stages, each of 64
    rows and 128 columns, stored as two panels of 64 columns side by side:
    element (r, c) of a stage lies in panel c / w at row r and column c % w with
    w = columns / panels. A panel's rows follow one another without gaps; from one
    panel to the next there are `pitch` rows (a slice keeps its owner's; as many as
    there are rows where it is not written; 8 where panels of 8 columns overlap, see
    `tile.hankel`). Inside each 8 rows of a panel 16-byte
    units change places as the tensor maps and wgmma do: unit u of row r stands at
    u xor (r mod (swizzle / 16)) for swizzle 128, and at the like for 64 and 32.

    Elements are bf16 or f32; all sizes are at least 1 and panels divide columns;
    swizzle is 0, 32, 64 or 128 bytes and, where it is not 0, exactly the bytes of a
    panel's row, with rows a multiple of 8; pitch is at least rows, but for panels
    of 8 columns without swizzle, which may overlap with a pitch of 8.
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$rows, "int64_t":$columns, "::mlir::Type":$element,
                    "int64_t":$swizzle, "int64_t":$panels, "int64_t":$pitch);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let skipDefaultBuilders = 1;
  let builders = [TypeBuilder<(ins "int64_t":$stages, "int64_t":$rows, "int64_t":$columns,
                               "::mlir::Type":$element, CArg<"int64_t", "0">:$swizzle,
                               CArg<"int64_t", "1">:$panels, CArg<"int64_t", "0">:$pitch), [{
    return $_get($_ctxt, stages, rows, columns, element, swizzle, panels, pitch ? pitch : rows);
  }]>];
  let extraClassDeclaration = [{
    /// Bytes of one element.
    int64_t elementBytes() const { return getElement().getIntOrFloatBitWidth() / 8; }
    /// Columns of one panel.
    int64_t panelColumns() const { return getColumns() / getPanels(); }
    /// Bytes from one stage to the next.
    int64_t stageBytes() const { return getPanels() * getPitch() * panelColumns() * elementBytes(); }
    /// Bytes that a copy of one stage moves.
    int64_t tileBytes() const { return getRows() * getColumns() * elementBytes(); }
    /// Bytes of the whole ring.
    int64_t ringBytes() const { return getStages() * stageBytes(); }
    /// One stage of the ring.
    SmemType oneStage() const;
    /// `count` rows of one stage: the same panels, the same pitch.
    SmemType withRows(int64_t count) const;
    /// One panel of one stage.
    SmemType onePanel() const;
  }];
}

def Tile_FragType : Tile_Type<"Frag", "frag"> {
  let summary = "a fragment in the registers of a warpgroup";
  let description = [{
    `!tile.frag<64x128xf32>` is an accumulator: columns / 2 registers a thread.
    `!tile.frag<64x64xbf16>` is the left operand of a product in registers: the
    same threads hold the same elements, in packed pairs. 64 rows; columns a
    multiple of 8 and at most 256, of 16 for bf16.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "::mlir::Type":$element);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let skipDefaultBuilders = 1;
  let builders = [TypeBuilder<(ins "int64_t":$columns, "::mlir::Type":$element),
                              [{ return $_get($_ctxt, kFragRows, columns, element); }]>,
                  TypeBuilder<(ins "int64_t":$rows, "int64_t":$columns, "::mlir::Type":$element),
                              [{ return $_get($_ctxt, rows, columns, element); }]>];
  let extraClassDeclaration = [{ static constexpr int64_t kFragRows = 64; }];
}

def Tile_RowsType : Tile_Type<"Rows", "rows"> {
  let summary = "one value for each row of a fragment";
  let description = [{
    `!tile.rows<64xf32>`: two registers a thread. The threads of a quad hold equal
    values, except after `tile.reduce ... partial`, where each holds its own part
    until `tile.quad` joins them. 64 values, f32 or i32.
  }];
  let parameters = (ins "int64_t":$rows, "::mlir::Type":$element);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_ColsType : Tile_Type<"Cols", "cols"> {
  let summary = "one value for each column of a fragment";
  let description = [{
    `!tile.cols<128xf32>`: two registers a thread for each 8 columns. A multiple of
    8 values and at most 256, f32 or i32.
  }];
  let parameters = (ins "int64_t":$columns, "::mlir::Type":$element);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_BarriersType : Tile_Type<"Barriers", "barriers"> {
  let summary = "memory barriers (mbarrier) in shared memory, 8 bytes each";
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

def Tile_CellsType : Tile_Type<"Cells", "cells"> {
  let summary = "numbers (i32) in shared memory, 4 bytes each";
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

def Tile_MapType : Tile_Type<"Map", "map"> {
  let summary = "a tensor map, a parameter of the kernel";
  let description = [{ Its box, swizzle and strides are given at the launch; copies say what they expect. }];
}

def Tile_GlobalType : Tile_Type<"Global", "global"> {
  let summary = "elements in global memory, a parameter of the kernel";
  let description = [{ `!tile.global<bf16>`: bf16, f32 or i32 elements. Offsets and strides count elements, in i64. }];
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Bases
//===----------------------------------------------------------------------===//

def Tile_Scalar : AnyTypeOf<[F32, I32], "f32 or i32">;
def Tile_Fragment : AnyTypeOf<[Tile_FragType, Tile_RowsType, Tile_ColsType], "frag, rows or cols">;
def Tile_MapInput : AnyTypeOf<[Tile_FragType, Tile_RowsType, Tile_ColsType, F32], "frag, rows, cols or f32">;
def Tile_LeftOperand : AnyTypeOf<[Tile_SmemType, Tile_FragType], "smem or frag">;

def Tile_Fold : I32EnumAttr<"Fold", "how values become one", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::weft::tile";
}

class Tile_Op<string opMnemonic, list<Trait> traits = []> : Op<TileDialect, opMnemonic, traits>;

#endif // TILE_DIALECT_TD
