//===- Tiles.cpp - Products and transposes of small tiles -----------------===//
#include "passes/Codegen/Tiles.h"

using namespace mlir;

namespace weft {

using Predicate = arith::CmpIPredicate;

/// Rows [row, row + count) of a product, `vectors` of lanes from `lane` on, all in registers.
static void emitRegisterTile(Emitter &e, const TileProduct &p, Value row, int64_t count, Value lane,
                             int64_t vectors) {
  auto laneOf = [&](int64_t v) { return e.addi(lane, v * e.width); };
  SmallVector<Value> from, sums;
  for (int64_t r = 0; r < count; ++r) {
    Value number = e.addi(row, r);
    from.push_back(e.at(p.a.base, e.muli(number, p.a.rows)));
    for (int64_t v = 0; v < vectors; ++v) {
      Value sum = e.constant(e.floats, 0);
      if (p.accumulate) {
        sum = e.load(e.floats, p.to, e.addi(e.muli(number, p.lanes), laneOf(v)));
        if (p.scale)
          sum = e.mul(sum, e.load(e.floats, p.scale, laneOf(v)));
      }
      sums.push_back(sum);
    }
  }
  sums = e.loop(e.number(0), p.depth, 1, sums, [&](Value k, ValueRange carried) {
    SmallVector<Value> columns, next;
    Value line = e.addi(e.muli(k, p.lanes), lane);
    for (int64_t v = 0; v < vectors; ++v)
      columns.push_back(e.load(e.floats, p.from, e.addi(line, v * e.width)));
    for (int64_t r = 0; r < count; ++r) {
      Value a = e.splat(e.load(e.f32, from[r], e.muli(k, p.a.columns)));
      for (int64_t v = 0; v < vectors; ++v)
        next.push_back(e.fma(a, columns[v], carried[r * vectors + v]));
    }
    return next;
  });
  for (int64_t r = 0; r < count; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      e.store(sums[r * vectors + v], p.to, e.addi(e.muli(e.addi(row, r), p.lanes), laneOf(v)));
}

/// All rows of a product, `vectors` of lanes from `lane` on.
static void emitRows(Emitter &e, const TileProduct &product, int64_t rows, Value lane, int64_t vectors) {
  Value whole = e.subi(product.m, e.remi(product.m, rows));
  e.loop(e.number(0), whole, rows,
         [&](Value row) { emitRegisterTile(e, product, row, rows, lane, vectors); });
  Value pairs = e.addi(whole, e.muli(e.divi(e.subi(product.m, whole), 2), 2));
  e.loop(whole, pairs, 2, [&](Value row) { emitRegisterTile(e, product, row, 2, lane, vectors); });
  e.loop(pairs, product.m, 1, [&](Value row) { emitRegisterTile(e, product, row, 1, lane, vectors); });
}

void emitTileProduct(Emitter &e, const TileProduct &product) {
  // Wide registers come with 32 of them: 24 sums, 4 columns and a number; else 16.
  constexpr int64_t kWideLanes = 16;
  const int64_t mostVectors = e.width >= kWideLanes ? 4 : 2;
  const int64_t mostSums = e.width >= kWideLanes ? 24 : 8;
  auto rowsFor = [&](int64_t vectors) { return std::min<int64_t>(mostSums / vectors, 8); };
  if (e.width == 1) { // one thread: as few instructions as loops allow
    e.loop(e.number(0), e.number(product.lanes), 1,
           [&](Value lane) { emitRows(e, product, rowsFor(1), lane, 1); });
    return;
  }
  for (int64_t lane = 0; lane < product.lanes;) {
    int64_t vectors = std::min(mostVectors, (product.lanes - lane) / e.width);
    emitRows(e, product, rowsFor(vectors), e.number(lane), vectors);
    lane += vectors * e.width;
  }
}

/// Calls `body` for each square of the tile: its first lane and channel, how
/// many channels it has.
static void overSquares(Emitter &e, int64_t lanes, int64_t channels,
                        function_ref<void(Value, Value, int64_t, const Lanes &)> body) {
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    e.strips(channels, [&](Value channel, const Lanes &there) {
      body(lane, channel, there.mask ? channels % e.width : e.width, there);
    });
  });
}

void emitTransposeIn(Emitter &e, Value tile, const Strided &rows, Value valid, int64_t lanes,
                     int64_t channels, double factor) {
  Value last = e.addi(valid, -1);
  overSquares(e, lanes, channels, [&](Value lane, Value channel, int64_t count, const Lanes &there) {
    SmallVector<Value> square;
    for (int64_t r = 0; r < e.width; ++r) {
      Value row = e.mini(e.addi(lane, r), last);
      square.push_back(e.loadLanes(rows.base, e.addi(e.muli(row, rows.rows), channel), there));
    }
    e.transpose(square);
    for (int64_t c = 0; c < count; ++c) {
      Value value = factor == 1 ? square[c] : e.mul(square[c], e.constant(e.floats, factor));
      e.store(value, tile, e.addi(e.muli(e.addi(channel, c), lanes), lane));
    }
  });
}

void emitTransposeOut(Emitter &e, const Strided &rows, Value tile, Value valid, int64_t lanes,
                      int64_t channels, double factor, Value perLane) {
  overSquares(e, lanes, channels, [&](Value lane, Value channel, int64_t count, const Lanes &there) {
    Value scale;
    if (perLane)
      scale = e.load(e.floats, perLane, lane);
    else if (factor != 1)
      scale = e.constant(e.floats, factor);
    SmallVector<Value> square;
    for (int64_t c = 0; c < e.width; ++c) {
      if (c >= count) {
        square.push_back(e.constant(e.floats, 0));
        continue;
      }
      Value value = e.load(e.floats, tile, e.addi(e.muli(e.addi(channel, c), lanes), lane));
      square.push_back(scale ? e.mul(value, scale) : value);
    }
    e.transpose(square);
    for (int64_t r = 0; r < e.width; ++r) {
      Value row = e.addi(lane, r);
      e.when(e.compare(Predicate::slt, row, valid),
             [&] { e.storeLanes(square[r], rows.base, e.addi(e.muli(row, rows.rows), channel), there); });
    }
  });
}

} // namespace weft
