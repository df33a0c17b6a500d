//===- AttendGradKeyValue.cpp - Backward of attention, for keys and values ===//
//
// An item is a block of keys of one key-value head; it goes over the heads that
// read it and their blocks of queries, so no two items write one number. Keys
// stand in lanes: queries are read where they lie.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/VectorMath.h"

#include <numbers>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

class GradKeyValueEmitter {
public:
  GradKeyValueEmitter(AttendGradKeyValueOp op, KernelBody &body)
      : op(op), body(body), e(body.e),
        shape(op.getQ(), op.getK(), op.getV(), op.getKvOf(), body, numberOf(op.getScale())),
        lanes(shape.queryBlock), rows(shape.keyBlock), keyTile(body.take(lanes * shape.channel)),
        valueTile(body.take(lanes * shape.valueChannel)), scores(body.take(lanes * rows)),
        products(body.take(lanes * rows)), keySums(body.take(lanes * shape.channel)),
        valueSums(body.take(lanes * shape.valueChannel)) {}

  void item(Value number);

private:
  void headOfGroup(Value reader);
  void queryBlock(Value query, Value end);
  void slopesOfScores(Value query, Value queries);

  AttendGradKeyValueOp op;
  KernelBody &body;
  Emitter &e;
  AttendShape shape;
  int64_t lanes; // keys of a block
  int64_t rows;  // queries of a block
  Value keyTile, valueTile, scores, products, keySums, valueSums;
  Value row, head, kv, place, count;
  AttendMask mask;
};

/// scores become p, products become p (dp - delta).
void GradKeyValueEmitter::slopesOfScores(Value query, Value queries) {
  Strided lse = shape.perQuery(e, body.argument(op.getLse()), row, query, head);
  Strided delta = shape.perQuery(e, body.argument(op.getDelta()), row, query, head);
  Value key32 = arith::TruncIOp::create(e.b, e.loc, e.i32, place);
  Value keys = e.addi(e.splat(key32), e.iota(e.i32));
  e.loop(e.number(0), queries, 1, [&](Value i) {
    Visible visible = mask.ofOne(e, e.addi(query, i));
    Value logSum = e.load(e.f32, lse.base, e.muli(i, lse.rows));
    logSum = e.splat(e.mul(logSum, e.constant(e.f32, std::numbers::log2e)));
    Value shift = e.splat(e.load(e.f32, delta.base, e.muli(i, delta.rows)));
    Value line = e.muli(i, lanes);
    for (int64_t lane = 0; lane < lanes; lane += e.width) {
      Value at = e.addi(line, lane);
      Value seen = isSeen(e, e.addi(keys, lane), visible);
      Value none = e.constant(e.floats, 0);
      Value power = emitExp2OfNegative(e, e.sub(e.load(e.floats, scores, at), logSum));
      power = e.select(seen, power, none);
      Value slope = e.mul(power, e.sub(e.load(e.floats, products, at), shift));
      e.store(power, scores, at);
      e.store(e.select(seen, slope, none), products, at);
    }
  });
}

void GradKeyValueEmitter::queryBlock(Value query, Value end) {
  Value queries = e.mini(e.subi(end, query), e.number(rows));
  Strided q = shape.queryRows(e, body.argument(op.getQ()), row, query, head);
  Strided slope = shape.outRows(e, body.argument(op.getDout()), row, query, head);
  emitTileProduct(e, {q, keyTile, scores, {}, queries, e.number(shape.channel), lanes, false});
  emitTileProduct(e, {slope, valueTile, products, {}, queries, e.number(shape.valueChannel), lanes, false});
  slopesOfScores(query, queries);
  std::swap(q.rows, q.columns);
  std::swap(slope.rows, slope.columns);
  emitTileProduct(e, {slope, scores, valueSums, {}, e.number(shape.valueChannel), queries, lanes, true});
  emitTileProduct(e, {q, products, keySums, {}, e.number(shape.channel), queries, lanes, true});
}

void GradKeyValueEmitter::headOfGroup(Value reader) {
  head = reader;
  mask.window = loadWindow(e, body.argument(op.getWindows()), head);
  Value lastKey = e.addi(e.addi(place, count), -1);
  // The last query that still sees the last key.
  Value end = e.mini(e.addi(lastKey, mask.window), e.number(shape.queries));
  e.loop(place, end, rows, [&](Value query) {
    // Later documents see nothing of this block.
    Value starts = e.loadIndex(mask.starts, query);
    e.when(e.compare(Predicate::sle, starts, lastKey), [&] { queryBlock(query, end); });
  });
}

void GradKeyValueEmitter::item(Value number) {
  auto item = shape.item(e, number, shape.kvHeads, shape.queryBlocks(), op.getOrder());
  row = item.row, kv = item.head, place = item.place;
  count = e.mini(e.subi(e.number(shape.keys), place), e.number(lanes));
  mask = {e.at(body.argument(op.getDocStart()), e.muli(row, shape.queries)), {}, e.number(0)};
  Strided k = shape.keyRows(e, body.argument(op.getK()), row, place, kv);
  Strided v = shape.valueRows(e, body.argument(op.getV()), row, place, kv);
  emitTransposeIn(e, keyTile, k, count, lanes, shape.channel, shape.scale * std::numbers::log2e);
  emitTransposeIn(e, valueTile, v, count, lanes, shape.valueChannel, 1);
  e.zero(keySums, lanes * shape.channel);
  e.zero(valueSums, lanes * shape.valueChannel);
  shape.forEachHead(e, kv, [&](Value reader) { headOfGroup(reader); });
  Strided dk = shape.keyRows(e, body.result(0), row, place, kv);
  Strided dv = shape.valueRows(e, body.result(1), row, place, kv);
  emitTransposeOut(e, dk, keySums, count, lanes, shape.channel, shape.scale, {});
  emitTransposeOut(e, dv, valueSums, count, lanes, shape.valueChannel, 1, {});
}

} // namespace

KernelKind attendGradKeyValueKind(AttendGradKeyValueOp op) {
  AttendShape shape(op.getQ(), op.getK(), op.getV(), numberOf(op.getScale()));
  // As many keys as queries, in blocks of one size.
  int64_t items = shape.batch * shape.kvHeads * shape.queryBlocks();
  return {[items] { return items; },
          [op](KernelBody &body) mutable -> LogicalResult {
            GradKeyValueEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
