//===- Tiles.h - Products and transposes of small tiles ---------*- C++ -*-===//
//
// A tile in scratch has its lanes (queries or keys of a block) along the last
// axis: `lanes` of them, a multiple of the vector width.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Emitter.h"

namespace weft {

/// A matrix in memory: element (i, j) lies at base + i * rows + j * columns.
struct Strided {
  mlir::Value base;
  int64_t rows = 0, columns = 0;
};

/// to[i, :] = (to[i, :] * scale +) sum_k a(i, k) from[k, :] for i < m, k < depth.
/// `from` and `to` are tiles of `lanes`. Accumulates when `accumulate`; `scale`
/// (one number a lane, may be null) multiplies what was there.
struct TileProduct {
  Strided a;
  mlir::Value from, to, scale;
  mlir::Value m, depth;
  int64_t lanes = 0;
  bool accumulate = false;
};
void emitTileProduct(Emitter &e, const TileProduct &product);

/// tile[c, lane] = factor * rows(lane, c), c < channels. Lanes from `valid` on
/// repeat the last valid row.
void emitTransposeIn(Emitter &e, mlir::Value tile, const Strided &rows, mlir::Value valid, int64_t lanes,
                     int64_t channels, double factor);

/// rows(lane, c) = tile[c, lane] * factor, or * perLane[lane] where that is given; lanes below `valid`.
void emitTransposeOut(Emitter &e, const Strided &rows, mlir::Value tile, mlir::Value valid, int64_t lanes,
                      int64_t channels, double factor, mlir::Value perLane);

} // namespace weft
