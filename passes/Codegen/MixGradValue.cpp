//===- MixGradValue.cpp - Backward of fixed patterns, for the values -------===//
//
// An item is a block of keys of one value head; keys stand in lanes. The tile is
// that of Mix.cpp turned over: diagonals run the other way, and a query's
// 1 / Z stands beside its row.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/MixShape.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

class MixGradValueEmitter {
public:
  MixGradValueEmitter(MixGradValueOp op, KernelBody &body)
      : op(op), body(body), e(body.e), shape(op, op.getDv(), body), lanes(shape.lanes),
        ahead(body.take(shape.diagonals())), slice(body.take(shape.diagonals())), weights(body.take(lanes)),
        places(body.take(lanes)), inverses(body.take(shape.rows)), tile(body.take(lanes * shape.rows)),
        sums(body.take(lanes * shape.channel)) {}

  void item(Value number);

private:
  void ofHead(Value reader);
  void queryBlock(Value query, Value end, bool far);
  void laterQueries(Value lastKey);
  void fillTile(Value query, Value queries, bool masked);

  MixGradValueOp op;
  KernelBody &body;
  Emitter &e;
  MixShape shape;
  int64_t lanes;
  Value ahead, slice, weights, places, inverses, tile, sums;
  Value row, head, kv, place, count, starts, window;
};

/// tile[q, lane] = P of query q and key lane.
void MixGradValueEmitter::fillTile(Value query, Value queries, bool masked) {
  SmallVector<Value> weight, key;
  Value first = e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, place));
  for (int64_t lane = 0; lane < lanes; lane += e.width) {
    weight.push_back(e.load(e.floats, weights, e.number(lane)));
    key.push_back(e.addi(e.addi(first, e.iota(e.i32)), lane));
  }
  e.loop(e.number(0), queries, 1, [&](Value q) {
    Value inverse = e.splat(e.load(e.f32, inverses, q));
    Value diagonal = e.subi(e.number(shape.rows - 1), q), line = e.muli(q, lanes);
    Value start;
    if (masked)
      start = e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, e.loadIndex(starts, e.addi(query, q))));
    for (int64_t lane = 0; lane < lanes; lane += e.width) {
      auto at = static_cast<size_t>(lane / e.width);
      Value power = e.mul(e.load(e.floats, slice, e.addi(diagonal, lane)), e.mul(weight[at], inverse));
      if (masked)
        power = e.select(e.compare(Predicate::slt, key[at], start), e.constant(e.floats, 0), power);
      e.store(power, tile, e.addi(line, lane));
    }
  });
}

/// `far`: of the pairs behind the window; weights of other than first places are 0 there.
void MixGradValueEmitter::queryBlock(Value query, Value end, bool far) {
  Value queries = e.mini(e.subi(end, query), e.number(shape.rows));
  // Distance of query q and key lane: (query - place) + q - lane.
  Value apart = e.subi(query, place);
  Value all = e.number(shape.places), limit = e.mini(window, all);
  emitDiagonals(e, ahead, shape.patternOf(e, shape.r, head), e.addi(apart, -lanes), far ? all : limit,
                shape.diagonals(), far ? limit : Value());
  // slice[m] is the distance apart + rows - 1 - m.
  int64_t top = lanes + shape.rows - 1;
  e.loop(e.number(0), e.number(top), 1,
         [&](Value m) { e.store(e.load(e.f32, ahead, e.subi(e.number(top), m)), slice, m); });
  emitInverses(e, inverses, shape.perQuery(e, body.argument(op.getLse()), row, query, head), queries,
               shape.rows);
  Value lastStart = e.loadIndex(starts, e.addi(e.addi(query, queries), -1));
  e.choose(
      e.compare(Predicate::sle, lastStart, place), [&] { fillTile(query, queries, false); },
      [&] { fillTile(query, queries, true); });
  Strided slope = shape.outRows(e, body.argument(op.getDout()), row, query, head);
  std::swap(slope.rows, slope.columns);
  emitTileProduct(e, {slope, tile, sums, {}, e.number(shape.channel), queries, lanes, true});
}

void MixGradValueEmitter::ofHead(Value reader) {
  head = reader;
  window = e.loadIndex(shape.windows, head);
  emitKeyWeights(e, weights, places, shape.patternOf(e, shape.a, head), starts, false, place, count, lanes);
  Value lastKey = e.addi(e.addi(place, count), -1);
  Value end = e.mini(e.addi(lastKey, window), e.number(shape.queries));
  e.loop(place, end, shape.rows, [&](Value query) {
    // Later documents see nothing of this block.
    e.when(e.compare(Predicate::sle, e.loadIndex(starts, query), lastKey),
           [&] { queryBlock(query, end, false); });
  });
  if (shape.twoRanges)
    laterQueries(lastKey);
}

/// Queries behind the window that see keys of the block as their document's first.
void MixGradValueEmitter::laterQueries(Value lastKey) {
  Value first = shape.firstPlaces(e, head), end = e.number(shape.queries);
  Value begins = e.compare(Predicate::sgt, e.loadIndex(starts, lastKey), place);
  Value early = e.compare(Predicate::slt, e.loadIndex(places, e.number(0)), first);
  Value there =
      e.both(e.compare(Predicate::sgt, first, e.number(0)), arith::OrIOp::create(e.b, e.loc, begins, early));
  e.when(there, [&] {
    emitFirstWeights(e, weights, places, first, lanes);
    e.loop(e.addi(place, window), end, shape.rows, [&](Value query) {
      e.when(e.compare(Predicate::sle, e.loadIndex(starts, query), lastKey),
             [&] { queryBlock(query, end, true); });
    });
  });
}

void MixGradValueEmitter::item(Value number) {
  // Early keys are seen by most queries: the first block first.
  Value pair = e.remi(number, shape.batch * shape.kvHeads);
  row = e.divi(pair, shape.kvHeads), kv = e.remi(pair, shape.kvHeads);
  place = e.muli(e.divi(number, shape.batch * shape.kvHeads), lanes);
  count = e.mini(e.subi(e.number(shape.keys), place), e.number(lanes));
  starts = shape.startsOf(e, row);
  e.zero(sums, lanes * shape.channel);
  if (shape.kvTable)
    e.loop(e.number(0), e.number(shape.heads), 1, [&](Value reader) {
      e.when(e.compare(Predicate::eq, shape.kvOf(e, reader), kv), [&] { ofHead(reader); });
    });
  else
    ofHead(kv);
  Strided dv = shape.valueRows(e, body.result(0), row, place, kv);
  emitTransposeOut(e, dv, sums, count, lanes, shape.channel, 1, {});
}

} // namespace

KernelKind mixGradValueKind(MixGradValueOp op) {
  MixShape shape(op.getDv(), op.getA(), op.getDocStart());
  int64_t items = shape.batch * shape.kvHeads * shape.blocks(shape.keys);
  return {[items] { return items; },
          [op](KernelBody &body) mutable -> LogicalResult {
            MixGradValueEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
