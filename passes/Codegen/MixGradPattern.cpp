//===- MixGradPattern.cpp - Backward of fixed patterns, for themselves -----===//
//
// An item is one head: it owns its rows of da and dr and goes through batch rows
// and blocks in order, so sums have one order. Queries stand in lanes.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/MixShape.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

class MixGradPatternEmitter {
public:
  MixGradPatternEmitter(MixGradPatternOp op, KernelBody &body)
      : op(op), body(body), e(body.e), shape(op, op.getV(), body), lanes(shape.lanes),
        slice(body.take(shape.diagonals())), slopes(body.take(shape.diagonals())),
        weights(body.take(shape.rows)), places(body.take(shape.rows)), tile(body.take(lanes * shape.rows)),
        dout(body.take(lanes * shape.channel)), inverses(body.take(lanes)), deltas(body.take(lanes)),
        first(body.take(lanes)) {}

  void item(Value number);

private:
  void queryBlock(Value query);
  void readRows();
  void keyBlock(Value key, Value end, bool far);
  void firstKeys();
  void addSlopes(Value key, Value keys);

  MixGradPatternOp op;
  KernelBody &body;
  Emitter &e;
  MixShape shape;
  int64_t lanes;
  Value slice, slopes, weights, places, tile, dout, inverses, deltas, first;
  Value row, head, kv, place, count, starts, window, da, dr;
};

/// delta = sum_c dout out of each query.
void MixGradPatternEmitter::readRows() {
  Strided out = shape.outRows(e, body.argument(op.getOut()), row, place, head);
  Strided slope = shape.outRows(e, body.argument(op.getDout()), row, place, head);
  e.loop(e.number(0), count, 1, [&](Value i) {
    Value left = e.at(out.base, e.muli(i, out.rows)), right = e.at(slope.base, e.muli(i, slope.rows));
    Value dot =
        e.strips(shape.channel, {e.constant(e.floats, 0)}, [&](Value c, const Lanes &there, ValueRange in) {
          return SmallVector<Value>{e.fma(e.loadLanes(left, c, there), e.loadLanes(right, c, there), in[0])};
        })[0];
    e.store(e.sumOf(dot), deltas, i);
    e.store(e.load(e.i32, starts, e.addi(place, i)), first, i);
  });
  emitTransposeIn(e, dout, slope, count, lanes, shape.channel, 1);
  emitInverses(e, inverses, shape.perQuery(e, body.argument(op.getLse()), row, place, head), count, lanes);
}

/// Adds dl of the tile's pairs to da of their keys and to the slopes of their diagonals.
void MixGradPatternEmitter::addSlopes(Value key, Value keys) {
  e.loop(e.number(0), keys, 1, [&](Value k) {
    Value weight = e.splat(e.load(e.f32, weights, k)), sum = e.constant(e.floats, 0);
    Value own = e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, e.addi(key, k)));
    Value diagonal = e.subi(e.number(shape.rows - 1), k), line = e.muli(k, lanes);
    for (int64_t lane = 0; lane < lanes; lane += e.width) {
      Value at = e.addi(diagonal, lane), number = e.number(lane), none = e.constant(e.floats, 0);
      Value power = e.mul(e.mul(e.load(e.floats, slice, at), weight), e.load(e.floats, inverses, number));
      Value slope =
          e.mul(power, e.sub(e.load(e.floats, tile, e.addi(line, lane)), e.load(e.floats, deltas, number)));
      // Lanes without a query have an inverse of 0, but their delta may be anything.
      Value before = e.compare(Predicate::slt, own, e.load(e.ints, first, number));
      Value there = e.firstOf(e.subi(count, number)).mask;
      slope = e.select(there, e.select(before, none, slope), none);
      e.store(e.add(e.load(e.floats, slopes, at), slope), slopes, at);
      sum = e.add(sum, slope);
    }
    Value column = e.loadIndex(places, k);
    e.store(e.add(e.load(e.f32, da, column), e.sumOf(sum)), da, column);
  });
}

/// `far`: of the pairs behind the window, those of a document's first places.
void MixGradPatternEmitter::keyBlock(Value key, Value end, bool far) {
  Value keys = e.mini(e.subi(end, key), e.number(shape.rows));
  Value all = e.number(shape.places), bound = e.mini(window, all), limit = far ? all : bound;
  Value nearest = e.addi(e.subi(place, key), -(shape.rows - 1));
  emitKeyWeights(e, weights, places, shape.patternOf(e, shape.a, head), starts, false, key, keys, shape.rows);
  emitDiagonals(e, slice, shape.patternOf(e, shape.r, head), nearest, limit, shape.diagonals(),
                far ? bound : Value());
  if (far)
    emitFirstWeights(e, weights, places, shape.firstPlaces(e, head), shape.rows);
  e.zero(slopes, shape.diagonals());
  Strided v = shape.valueRows(e, body.argument(op.getV()), row, key, kv);
  emitTileProduct(e, {v, dout, tile, {}, keys, e.number(shape.channel), lanes, false});
  addSlopes(key, keys);
  Value from = e.maxi(nearest, e.number(0));
  Value to = e.mini(limit, e.addi(nearest, shape.diagonals()));
  e.loop(from, to, 1, [&](Value distance) {
    Value slope = e.load(e.f32, slopes, e.subi(distance, nearest));
    e.store(e.add(e.load(e.f32, dr, distance), slope), dr, distance);
  });
}

/// Keys before the window that stay in sight as a document's first.
void MixGradPatternEmitter::firstKeys() {
  Value end = e.addi(place, count), first = shape.firstPlaces(e, head);
  Value to = e.mini(e.addi(e.loadIndex(starts, e.addi(end, -1)), first), e.subi(end, window));
  e.when(e.compare(Predicate::sgt, first, e.number(0)), [&] {
    e.loop(e.loadIndex(starts, place), to, shape.rows, [&](Value key) { keyBlock(key, to, true); });
  });
}

void MixGradPatternEmitter::queryBlock(Value query) {
  place = query;
  count = e.mini(e.subi(e.number(shape.queries), place), e.number(lanes));
  readRows();
  Value from = e.maxi(e.addi(e.subi(place, window), 1), e.loadIndex(starts, place));
  Value to = e.addi(place, count);
  e.loop(e.maxi(from, e.number(0)), to, shape.rows, [&](Value key) { keyBlock(key, to, false); });
  if (shape.twoRanges)
    firstKeys();
}

void MixGradPatternEmitter::item(Value number) {
  head = number;
  kv = shape.kvOf(e, head);
  window = e.loadIndex(shape.windows, head);
  da = shape.patternOf(e, body.result(0), head);
  dr = shape.patternOf(e, body.result(1), head);
  e.zero(da, shape.places);
  e.zero(dr, shape.places);
  e.loop(e.number(0), e.number(shape.batch), 1, [&](Value each) {
    row = each;
    starts = shape.startsOf(e, row);
    e.loop(e.number(0), e.number(shape.queries), lanes, [&](Value query) { queryBlock(query); });
  });
}

} // namespace

KernelKind mixGradPatternKind(MixGradPatternOp op) {
  int64_t items = cast<RankedTensorType>(op.getA().getType()).getDimSize(0);
  return {[items] { return items; },
          [op](KernelBody &body) mutable -> LogicalResult {
            MixGradPatternEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
