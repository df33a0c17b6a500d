//===- Tile.h - The tile dialect ---------------------------------*- C++ -*-===//
//
// Declarations generated from the .td files, and the rules on shapes that every
// user of the dialect needs.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Tile/TileDialect.h.inc"
#include "dialects/Tile/TileEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.h.inc"

namespace weft::tile {

/// The element of a frag, rows, cols or scalar.
mlir::Type elementOf(mlir::Type type);

/// Whether `op` is one that a single thread can do: what `tile.elect` may hold.
bool isSingleThreadOp(mlir::Operation *op);

/// Registers the tile dialect and those that its kernels use (arith, math, scf).
void registerTileDialects(mlir::DialectRegistry &registry);

} // namespace weft::tile
