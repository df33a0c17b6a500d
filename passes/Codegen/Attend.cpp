//===- Attend.cpp - Attention, block by block -----------------------------===//
//
// An item is a block of queries of one head. Queries stand in lanes: scores are
// kept transposed (S[key, query]), so the maximum and the sum over keys are
// plain vector operations, keys and values are read where they lie, and only
// the queries are turned over, once a block. Probabilities are powers of two:
// log2(e) is in the scale.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/VectorMath.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace weft {
namespace {

constexpr double kLog2e = std::numbers::log2e;
/// A maximum before any key, finite so that no difference of it is NaN.
constexpr double kLowest = -1e30;

class AttendEmitter {
public:
  AttendEmitter(AttendOp op, KernelBody &body)
      : op(op), body(body), e(body.e),
        shape(op.getQ(), op.getK(), op.getV(), op.getKvOf(), body, numberOf(op.getScale())),
        lanes(shape.queryBlock), queries(body.take(lanes * shape.channel)),
        scores(body.take(lanes * shape.keyBlock)), sums(body.take(lanes * shape.valueChannel)),
        most(body.take(lanes)), total(body.take(lanes)), ratio(body.take(lanes)), first(body.take(lanes)),
        span(body.take(lanes)), spread(op.getEntropy() ? body.take(lanes) : Value()) {}

  void item(Value number);

private:
  void start();
  void keyBlock(Value key);
  void softmax(Value key, Value count);
  void finish();

  AttendOp op;
  KernelBody &body;
  Emitter &e;
  AttendShape shape;
  int64_t lanes;
  Value queries, scores, sums, most, total, ratio, first, span;
  /// With entropies: sum of p log2(p) of each query, p over its greatest.
  Value spread;
  // Of the item.
  Value row, head, kv, place, count;
  AttendMask mask;
};

void AttendEmitter::start() {
  Strided rows = shape.queryRows(e, body.argument(op.getQ()), row, place, head);
  emitTransposeIn(e, queries, rows, count, lanes, shape.channel, shape.scale * kLog2e);
  e.zero(sums, lanes * shape.valueChannel);
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    e.store(e.constant(e.floats, kLowest), most, lane);
    e.store(e.constant(e.floats, 0), total, lane);
    if (spread)
      e.store(e.constant(e.floats, 0), spread, lane);
    Visible visible = mask.ofLanes(e, e.addi(place, lane), e.subi(count, lane));
    e.store(visible.first, first, lane);
    e.store(visible.span, span, lane);
  });
}

/// Scores to probabilities; what was summed so far must be multiplied by `ratio`.
void AttendEmitter::softmax(Value key, Value keys) {
  Value key32 = arith::TruncIOp::create(e.b, e.loc, e.i32, key);
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Visible visible{e.subi(e.load(e.ints, first, lane), e.splat(key32)), e.load(e.ints, span, lane)};
    Value before = e.load(e.floats, most, lane);
    Value low = e.constant(e.floats, -std::numeric_limits<double>::infinity());
    Value now = e.loop(e.number(0), keys, 1, {before}, [&](Value j, ValueRange carried) {
      Value at = e.addi(e.muli(j, lanes), lane);
      Value seen = isSeen(e, e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, j)), visible);
      Value score = e.select(seen, e.load(e.floats, scores, at), low);
      e.store(score, scores, at);
      return SmallVector<Value>{e.larger(score, carried[0])};
    })[0];
    Value fade = emitExp2OfNegative(e, e.sub(before, now));
    e.store(now, most, lane);
    e.store(fade, ratio, lane);
    Value old = e.load(e.floats, total, lane);
    SmallVector<Value> start{e.mul(old, fade)};
    if (spread) // p log2(p) of a lower greatest: by the fade, and the fade's own logarithm
      start.push_back(e.mul(fade, e.fma(e.sub(before, now), old, e.load(e.floats, spread, lane))));
    auto sum = e.loop(e.number(0), keys, 1, start, [&](Value j, ValueRange carried) {
      Value at = e.addi(e.muli(j, lanes), lane);
      Value below = e.sub(e.load(e.floats, scores, at), now);
      Value power = emitExp2OfNegative(e, below);
      e.store(power, scores, at);
      SmallVector<Value> sums{e.add(carried[0], power)};
      if (spread) // 0 times a finite number where a key is not seen
        sums.push_back(e.fma(power, e.larger(below, e.constant(e.floats, kLowest)), carried[1]));
      return sums;
    });
    e.store(sum[0], total, lane);
    if (spread)
      e.store(sum[1], spread, lane);
  });
}

void AttendEmitter::keyBlock(Value key) {
  Value end = e.mini(e.addi(e.addi(place, mask.offset), count), e.number(shape.keys));
  Value keys = e.mini(e.subi(end, key), e.number(shape.keyBlock));
  Strided k = shape.keyRows(e, body.argument(op.getK()), row, key, kv);
  emitTileProduct(e, {k, queries, scores, {}, keys, e.number(shape.channel), lanes, false});
  softmax(key, keys);
  Strided v = shape.valueRows(e, body.argument(op.getV()), row, key, kv);
  std::swap(v.rows, v.columns);
  emitTileProduct(e, {v, scores, sums, ratio, e.number(shape.valueChannel), keys, lanes, true});
}

void AttendEmitter::finish() {
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Value sum = e.load(e.floats, total, lane);
    Value inverse = e.div(e.constant(e.floats, 1), sum);
    e.store(inverse, ratio, lane);
    if (spread) {
      Value part =
          e.mul(e.mul(e.load(e.floats, spread, lane), inverse), e.constant(e.floats, std::numbers::ln2));
      e.store(e.sub(emitLog(e, sum), part), spread, lane);
    }
    Value base = e.mul(e.load(e.floats, most, lane), e.constant(e.floats, std::numbers::ln2));
    e.store(e.add(base, emitLog(e, sum)), most, lane);
  });
  Strided out = shape.outRows(e, body.result(0), row, place, head);
  emitTransposeOut(e, out, sums, count, lanes, shape.valueChannel, 1, ratio);
  auto storeRows = [&](Value values, int64_t result) {
    Strided to = shape.perQuery(e, body.result(result), row, place, head);
    e.loop(e.number(0), count, 1,
           [&](Value i) { e.store(e.load(e.f32, values, i), to.base, e.muli(i, to.rows)); });
  };
  storeRows(most, 1);
  if (spread)
    storeRows(spread, 2);
}

void AttendEmitter::item(Value number) {
  auto item = shape.item(e, number, shape.heads, shape.queryBlocks(), op.getOrder());
  row = item.row, head = item.head, place = item.place;
  kv = shape.kvOf(e, head);
  count = e.mini(e.subi(e.number(shape.queries), place), e.number(lanes));
  mask.starts =
      op.getDocStart() ? e.at(body.argument(op.getDocStart()), e.muli(row, shape.queries)) : Value();
  mask.window = loadWindow(e, op.getWindows() ? body.argument(op.getWindows()) : Value(), head);
  mask.offset = op.getOffset() ? e.loadIndex(body.argument(op.getOffset()), e.number(0)) : e.number(0);
  start();
  // The first query sees the furthest back: starts and windows only move on.
  Value from = e.maxi(mask.firstKey(e, place), e.number(0));
  Value to = e.mini(e.addi(e.addi(place, mask.offset), count), e.number(shape.keys));
  e.loop(from, to, shape.keyBlock, [&](Value key) { keyBlock(key); });
  finish();
}

} // namespace

KernelKind attendKind(AttendOp op) {
  AttendShape shape(op.getQ(), op.getK(), op.getV(), numberOf(op.getScale()));
  int64_t items = shape.batch * shape.heads * shape.queryBlocks();
  return {[items] { return items; },
          [op](KernelBody &body) mutable -> LogicalResult {
            AttendEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
