//===- Mix.cpp - Fixed patterns, block by block ----------------------------===//
//
// An item is a block of queries of one head; queries stand in lanes. The tile
// exp(a + r) is copied from one slice of diagonals, so the only arithmetic a pair
// is that of the product with the values.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/MixShape.h"
#include "passes/Codegen/VectorMath.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

class MixEmitter {
public:
  MixEmitter(MixOp op, KernelBody &body)
      : op(op), body(body), e(body.e), shape(op, op.getV(), body), lanes(shape.lanes),
        slice(body.take(shape.diagonals())), weights(body.take(shape.rows)), places(body.take(shape.rows)),
        tile(body.take(lanes * shape.rows)), sums(body.take(lanes * shape.channel)), total(body.take(lanes)),
        first(body.take(lanes)) {}

  void item(Value number);

private:
  void keyBlock(Value key, Value end, bool far);
  void firstKeys();
  void fillTile(Value key, Value keys, bool masked);
  void finish();

  MixOp op;
  KernelBody &body;
  Emitter &e;
  MixShape shape;
  int64_t lanes;
  Value slice, weights, places, tile, sums, total, first;
  Value row, head, kv, place, count, starts, window, offset;
};

/// tile[k, lane] = exp(a + r), and its sums over keys. `masked`: keys before a
/// query's document are zero.
void MixEmitter::fillTile(Value key, Value keys, bool masked) {
  SmallVector<Value> start;
  for (int64_t lane = 0; lane < lanes; lane += e.width)
    start.push_back(e.load(e.floats, total, e.number(lane)));
  Value last = e.number(shape.rows - 1);
  auto sum = e.loop(e.number(0), keys, 1, start, [&](Value k, ValueRange carried) {
    SmallVector<Value> next;
    Value weight = e.splat(e.load(e.f32, weights, k));
    Value diagonal = e.subi(last, k), line = e.muli(k, lanes);
    Value own = masked ? e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, e.addi(key, k))) : Value();
    for (int64_t lane = 0; lane < lanes; lane += e.width) {
      Value power = e.mul(e.load(e.floats, slice, e.addi(diagonal, lane)), weight);
      if (masked) {
        Value before = e.compare(Predicate::slt, own, e.load(e.ints, first, e.number(lane)));
        power = e.select(before, e.constant(e.floats, 0), power);
      }
      e.store(power, tile, e.addi(line, lane));
      next.push_back(e.add(carried[static_cast<size_t>(lane / e.width)], power));
    }
    return next;
  });
  for (int64_t lane = 0; lane < lanes; lane += e.width)
    e.store(sum[static_cast<size_t>(lane / e.width)], total, e.number(lane));
}

/// `far`: of the pairs behind the window, those of a document's first places.
void MixEmitter::keyBlock(Value key, Value end, bool far) {
  Value keys = e.mini(e.subi(end, key), e.number(shape.rows));
  bool one = op.getOffset() != nullptr;
  emitKeyWeights(e, weights, places, shape.patternOf(e, shape.a, head), starts, one, key, keys, shape.rows);
  Value nearest = e.addi(e.subi(e.addi(place, offset), key), -(shape.rows - 1));
  Value all = e.number(shape.places), limit = e.mini(window, all);
  emitDiagonals(e, slice, shape.patternOf(e, shape.r, head), nearest, far ? all : limit, shape.diagonals(),
                far ? limit : Value());
  if (far)
    emitFirstWeights(e, weights, places, shape.firstPlaces(e, head), shape.rows);
  Value lastStart = e.loadIndex(starts, e.addi(e.addi(place, count), -1));
  e.choose(
      e.compare(Predicate::sle, lastStart, key), [&] { fillTile(key, keys, false); },
      [&] { fillTile(key, keys, true); });
  Strided v = shape.valueRows(e, body.argument(op.getV()), row, key, kv);
  std::swap(v.rows, v.columns);
  emitTileProduct(e, {v, tile, sums, {}, e.number(shape.channel), keys, lanes, true});
}

/// Keys before the window that stay in sight as a document's first.
void MixEmitter::firstKeys() {
  Value last = e.addi(e.addi(place, count), -1), from = e.loadIndex(starts, place);
  Value first = shape.firstPlaces(e, head), behind = e.subi(e.addi(e.addi(last, offset), 1), window);
  Value to = e.mini(e.addi(e.loadIndex(starts, last), first), behind);
  e.when(e.compare(Predicate::sgt, first, e.number(0)),
         [&] { e.loop(from, to, shape.rows, [&](Value key) { keyBlock(key, to, true); }); });
}

void MixEmitter::finish() {
  Strided out = shape.outRows(e, body.result(0), row, place, head);
  Strided lse = shape.perQuery(e, body.result(1), row, place, head);
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Value sum = e.load(e.floats, total, lane);
    e.store(emitLog(e, sum), tile, lane);
    e.store(e.div(e.constant(e.floats, 1), sum), total, lane);
  });
  e.loop(e.number(0), count, 1,
         [&](Value i) { e.store(e.load(e.f32, tile, i), lse.base, e.muli(i, lse.rows)); });
  emitTransposeOut(e, out, sums, count, lanes, shape.channel, 1, total);
}

void MixEmitter::item(Value number) {
  auto item = shape.item(e, number, shape.heads, shape.blocks(shape.queries));
  row = item.row, head = item.head, place = item.place;
  kv = shape.kvOf(e, head);
  count = e.mini(e.subi(e.number(shape.queries), place), e.number(lanes));
  starts = shape.startsOf(e, row);
  window = e.loadIndex(shape.windows, head);
  offset = op.getOffset() ? e.loadIndex(body.argument(op.getOffset()), e.number(0)) : e.number(0);
  e.zero(sums, lanes * shape.channel);
  e.zero(total, lanes);
  e.loop(e.number(0), count, 1, [&](Value i) { e.store(e.load(e.i32, starts, e.addi(place, i)), first, i); });
  Value own = e.addi(place, offset);
  Value from = e.maxi(e.addi(e.subi(own, window), 1), e.loadIndex(starts, place));
  Value to = e.mini(e.addi(own, count), e.number(shape.keys));
  if (shape.twoRanges)
    firstKeys();
  e.loop(e.maxi(from, e.number(0)), to, shape.rows, [&](Value key) { keyBlock(key, to, false); });
  finish();
}

} // namespace

KernelKind mixKind(MixOp op) {
  MixShape shape(op.getV(), op.getA(), op.getDocStart());
  int64_t items = shape.batch * shape.heads * shape.blocks(shape.queries);
  return {[items] { return items; },
          [op](KernelBody &body) mutable -> LogicalResult {
            MixEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
