//===- AttendGradQuery.cpp - Backward of attention, for the queries -------===//
//
// Queries stand in lanes, as in Attend.cpp.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/VectorMath.h"

#include <numbers>

using namespace mlir;

namespace weft {
namespace {

class GradQueryEmitter {
public:
  GradQueryEmitter(AttendGradQueryOp op, KernelBody &body)
      : op(op), body(body), e(body.e),
        shape(op.getQ(), op.getK(), op.getV(), op.getKvOf(), body, numberOf(op.getScale())),
        lanes(shape.queryBlock), queries(body.take(lanes * shape.channel)),
        slopes(body.take(lanes * shape.valueChannel)), scores(body.take(lanes * shape.keyBlock)),
        products(body.take(lanes * shape.keyBlock)), sums(body.take(lanes * shape.channel)),
        logSums(body.take(lanes)), deltas(body.take(lanes)), first(body.take(lanes)), span(body.take(lanes)) {
  }

  void item(Value number);

private:
  void start();
  void readRows();
  void keyBlock(Value key, Value end);
  void slopesOfScores(Value key, Value keys);

  AttendGradQueryOp op;
  KernelBody &body;
  Emitter &e;
  AttendShape shape;
  int64_t lanes;
  Value queries, slopes, scores, products, sums, logSums, deltas, first, span;
  Value row, head, kv, place, count;
  AttendMask mask;
};

/// delta of each query, and lse as a power of two.
void GradQueryEmitter::readRows() {
  Strided out = shape.outRows(e, body.argument(op.getOut()), row, place, head);
  Strided slope = shape.outRows(e, body.argument(op.getDout()), row, place, head);
  Strided lse = shape.perQuery(e, body.argument(op.getLse()), row, place, head);
  Strided delta = shape.perQuery(e, body.result(1), row, place, head);
  e.loop(e.number(0), count, 1, [&](Value i) {
    Value left = e.at(out.base, e.muli(i, out.rows)), right = e.at(slope.base, e.muli(i, slope.rows));
    Value dot = e.strips(
        shape.valueChannel, {e.constant(e.floats, 0)}, [&](Value c, const Lanes &there, ValueRange in) {
          return SmallVector<Value>{e.fma(e.loadLanes(left, c, there), e.loadLanes(right, c, there), in[0])};
        })[0];
    Value sum = e.sumOf(dot);
    e.store(sum, deltas, i);
    e.store(sum, delta.base, e.muli(i, delta.rows));
    Value logSum = e.load(e.f32, lse.base, e.muli(i, lse.rows));
    e.store(e.mul(logSum, e.constant(e.f32, std::numbers::log2e)), logSums, i);
  });
}

void GradQueryEmitter::start() {
  Strided q = shape.queryRows(e, body.argument(op.getQ()), row, place, head);
  emitTransposeIn(e, queries, q, count, lanes, shape.channel, shape.scale * std::numbers::log2e);
  Strided slope = shape.outRows(e, body.argument(op.getDout()), row, place, head);
  emitTransposeIn(e, slopes, slope, count, lanes, shape.valueChannel, 1);
  e.zero(sums, lanes * shape.channel);
  readRows();
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Visible visible = mask.ofLanes(e, e.addi(place, lane), e.subi(count, lane));
    e.store(visible.first, first, lane);
    e.store(visible.span, span, lane);
  });
}

/// scores become p (dp - delta).
void GradQueryEmitter::slopesOfScores(Value key, Value keys) {
  Value key32 = arith::TruncIOp::create(e.b, e.loc, e.i32, key);
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Visible visible{e.subi(e.load(e.ints, first, lane), e.splat(key32)), e.load(e.ints, span, lane)};
    Value logSum = e.load(e.floats, logSums, lane), delta = e.load(e.floats, deltas, lane);
    e.loop(e.number(0), keys, 1, [&](Value j) {
      Value at = e.addi(e.muli(j, lanes), lane);
      Value seen = isSeen(e, e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, j)), visible);
      Value power = emitExp2OfNegative(e, e.sub(e.load(e.floats, scores, at), logSum));
      Value slope = e.mul(power, e.sub(e.load(e.floats, products, at), delta));
      e.store(e.select(seen, slope, e.constant(e.floats, 0)), scores, at);
    });
  });
}

void GradQueryEmitter::keyBlock(Value key, Value end) {
  Value keys = e.mini(e.subi(end, key), e.number(shape.keyBlock));
  Strided k = shape.keyRows(e, body.argument(op.getK()), row, key, kv);
  Strided v = shape.valueRows(e, body.argument(op.getV()), row, key, kv);
  emitTileProduct(e, {k, queries, scores, {}, keys, e.number(shape.channel), lanes, false});
  emitTileProduct(e, {v, slopes, products, {}, keys, e.number(shape.valueChannel), lanes, false});
  slopesOfScores(key, keys);
  std::swap(k.rows, k.columns);
  emitTileProduct(e, {k, scores, sums, {}, e.number(shape.channel), keys, lanes, true});
}

void GradQueryEmitter::item(Value number) {
  auto item = shape.item(e, number, shape.heads, shape.queryBlocks(), op.getOrder());
  row = item.row, head = item.head, place = item.place;
  kv = shape.kvOf(e, head);
  count = e.mini(e.subi(e.number(shape.queries), place), e.number(lanes));
  mask = {e.at(body.argument(op.getDocStart()), e.muli(row, shape.queries)),
          loadWindow(e, body.argument(op.getWindows()), head), e.number(0)};
  start();
  Value from = e.maxi(mask.firstKey(e, place), e.number(0));
  Value to = e.addi(place, count);
  e.loop(from, to, shape.keyBlock, [&](Value key) { keyBlock(key, to); });
  Strided dq = shape.queryRows(e, body.result(0), row, place, head);
  emitTransposeOut(e, dq, sums, count, lanes, shape.channel, shape.scale, {});
}

} // namespace

KernelKind attendGradQueryKind(AttendGradQueryOp op) {
  AttendShape shape(op.getQ(), op.getK(), op.getV(), numberOf(op.getScale()));
  int64_t items = shape.batch * shape.heads * shape.queryBlocks();
  return {[items] { return items; },
          [op](KernelBody &body) mutable -> LogicalResult {
            GradQueryEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
