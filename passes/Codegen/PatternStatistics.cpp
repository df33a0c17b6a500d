//===- PatternStatistics.cpp - What calibration measures of each head -----===//
//
// An item is one head: it goes through blocks of rows and of keys in order, and in
// each tile through the documents, so sums have one order. Rows stand in lanes.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/VectorMath.h"

#include <cmath>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

class PatternStatisticsEmitter {
public:
  PatternStatisticsEmitter(PatternStatisticsOp op, KernelBody &body)
      : op(op), body(body), e(body.e),
        shape(op.getQ(), op.getK(), op.getK(), op.getKvOf(), body, numberOf(op.getScale())),
        lanes(shape.queryBlock), queries(body.take(lanes * shape.channel)), scores(takeTile()),
        means(takeTile()), powers(takeTile()), logs(takeTile()), counts(takeTile()),
        slice(body.take(diagonals())), totals(body.take(diagonals())), logSums(body.take(lanes)),
        reached(body.take(lanes)), normalisers(body.take(lanes)), sums(body.take(kPatternSums * lanes)) {}

  void item(Value number);

private:
  Value takeTile() { return body.take(lanes * shape.keyBlock); }
  int64_t diagonals() const { return lanes + shape.keyBlock; }
  /// Distance of lane 0's row to the tile's key `k`, counted from the tile's nearest.
  Value diagonalOf(Value k) { return e.subi(e.number(shape.keyBlock - 1), k); }
  void rowBlock(Value place);
  void readRows();
  void tile(Value first, Value count);
  void fillPattern();
  void document(Value number);
  void addPairs(Value narrow, Value share, Value lane, Value limit);
  void addMeans();
  void addEntropies();
  Value sumLanes(int64_t number);
  void addTo(Value memory, Value at, Value sum) {
    e.store(e.add(e.load(e.f32, memory, at), sum), memory, at);
  }
  Value narrow(Value value) { return arith::TruncIOp::create(e.b, e.loc, e.i32, value); }

  PatternStatisticsOp op;
  KernelBody &body;
  Emitter &e;
  AttendShape shape;
  int64_t lanes;
  Value queries, scores, means, powers, logs, counts, slice, totals, logSums, reached, normalisers, sums;
  Value head, kv, window, row, key, keys; // of the tile: first row, first key, number of keys
};

/// Of each row of the block: the documents that reach it and z.
void PatternStatisticsEmitter::readRows() {
  Value last = e.number(shape.queries - 1), z = e.at(body.argument(op.getZ()), e.muli(head, shape.queries));
  e.loop(e.number(0), e.number(lanes), 1, [&](Value lane) {
    Value at = e.addi(row, lane), place = e.mini(at, last);
    Value reach = e.load(e.i32, body.argument(op.getReach()), place);
    Value there = e.compare(Predicate::sle, at, last);
    e.store(e.select(there, reach, e.constantInt(e.i32, 0)), reached, lane);
    e.store(e.load(e.f32, z, place), normalisers, lane);
  });
}

/// exp and floored logarithm of the pattern's pairs, and how many documents see them.
void PatternStatisticsEmitter::fillPattern() {
  Value table = e.muli(head, shape.queries);
  Value a = e.at(body.argument(op.getA()), table), r = e.at(body.argument(op.getR()), table);
  Value nearest = e.addi(e.subi(row, key), 1 - shape.keyBlock);
  e.loop(e.number(0), e.number(diagonals()), 1, [&](Value number) {
    Value distance = e.addi(nearest, number);
    Value there = e.compare(Predicate::ult, distance, e.number(shape.queries));
    e.store(e.load(e.f32, r, e.select(there, distance, e.number(0))), slice, number);
  });
  Value window32 = e.splat(narrow(window)), floor = e.constant(e.floats, std::log(1e-30));
  e.loop(e.number(0), keys, 1, [&](Value k) {
    Value own = e.splat(e.load(e.f32, a, e.addi(key, k)));
    Value distance = e.subi(e.subi(row, key), k), line = e.muli(k, lanes), diagonal = diagonalOf(k);
    e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
      Value at = e.addi(line, lane);
      Value back = e.addi(e.splat(narrow(e.addi(distance, lane))), e.iota(e.i32));
      Value seen = e.both(e.compare(Predicate::sge, back, e.constantInt(e.ints, 0)),
                          e.compare(Predicate::slt, back, window32));
      Value log = e.sub(e.add(own, e.load(e.floats, slice, e.addi(diagonal, lane))),
                        e.load(e.floats, normalisers, lane));
      e.store(e.select(seen, e.load(e.ints, reached, lane), e.constantInt(e.ints, 0)), counts, at);
      e.store(emitExp(e, log), powers, at);
      e.store(e.larger(log, floor), logs, at);
      e.store(e.constant(e.floats, 0), means, at);
    });
  });
}

/// Of document `number`: the tile's pairs into the moving means and the sums.
void PatternStatisticsEmitter::document(Value number) {
  const int64_t tokens = shape.batch * shape.queries;
  Value start = e.loadIndex(body.argument(op.getDocuments()), number), none = e.number(0);
  Value first = e.addi(start, row), firstKey = e.addi(start, key);
  Value valid = e.mini(e.subi(e.number(tokens), first), e.number(lanes));
  Value limit = e.maxi(e.mini(e.subi(e.number(tokens), firstKey), keys), none); // keys may lie past all rows
  Strided q = headRows(e, body.argument(op.getQ()), none, first, head, tokens, shape.heads, shape.channel);
  Strided k = headRows(e, body.argument(op.getK()), none, firstKey, kv, tokens, shape.kvHeads, shape.channel);
  emitTransposeIn(e, queries, q, valid, lanes, shape.channel, shape.scale);
  emitTileProduct(e, {k, queries, scores, {}, limit, e.number(shape.channel), lanes, false});
  e.loop(none, e.number(lanes), 1, [&](Value lane) {
    Value token = e.addi(first, e.mini(lane, e.addi(valid, -1)));
    Value at = e.addi(e.muli(token, shape.heads), head);
    e.store(e.load(e.f32, body.argument(op.getLse()), at), logSums, lane);
  });
  Value narrowed = narrow(number);
  Value share = e.div(e.constant(e.f32, 1), arith::SIToFPOp::create(e.b, e.loc, e.f32, e.addi(narrowed, 1)));
  e.loop(none, e.number(lanes), e.width,
         [&](Value lane) { addPairs(e.splat(narrowed), e.splat(share), lane, limit); });
}

/// Sums in the order of weft.pattern_statistics, but for 0 and 3.
void PatternStatisticsEmitter::addPairs(Value number, Value share, Value lane, Value limit) {
  Value logSum = e.load(e.floats, logSums, lane), none = e.constant(e.floats, 0);
  const SmallVector<int64_t> kept{1, 2, 4, 5, 6, 7};
  SmallVector<Value> start;
  for (int64_t sum : kept)
    start.push_back(e.load(e.floats, sums, e.addi(lane, sum * lanes)));
  auto found = e.loop(e.number(0), limit, 1, start, [&](Value k, ValueRange in) -> SmallVector<Value> {
    Value at = e.addi(e.muli(k, lanes), lane);
    Value there = e.compare(Predicate::slt, number, e.load(e.ints, counts, at));
    Value log = e.sub(e.load(e.floats, scores, at), logSum), mean = e.load(e.floats, means, at);
    Value p = e.load(e.floats, powers, at), value = e.select(there, emitExp(e, log), none);
    Value off = e.select(there, e.sub(value, mean), none);
    mean = e.fma(off, share, mean);
    e.store(mean, means, at);
    Value gap = e.select(there, e.sub(value, p), none);
    return {e.fma(off, e.sub(value, mean), in[0]),
            e.sub(in[1], e.mul(value, log)),
            e.fma(gap, gap, in[2]),
            e.fma(value, e.sub(log, e.load(e.floats, logs, at)), in[3]),
            e.add(in[4], e.sqrt(e.mul(value, p))),
            e.fma(e.larger(gap, e.neg(gap)), e.constant(e.floats, 0.5), in[5])};
  });
  for (auto [sum, value] : llvm::zip_equal(kept, found))
    e.store(value, sums, e.addi(lane, sum * lanes));
}

/// The tile's means, times their documents: sums over columns and diagonals, and M log M.
void PatternStatisticsEmitter::addMeans() {
  Value table = e.muli(head, shape.queries);
  Value columns = e.at(body.result(0), table), ahead = e.at(body.result(1), table);
  e.zero(totals, diagonals());
  e.loop(e.number(0), keys, 1, [&](Value k) {
    Value line = e.muli(k, lanes), diagonal = diagonalOf(k);
    Value column = e.loop(e.number(0), e.number(lanes), e.width, {e.constant(e.floats, 0)},
                          [&](Value lane, ValueRange carried) -> SmallVector<Value> {
                            Value at = e.addi(line, lane), mean = e.load(e.floats, means, at);
                            Value count =
                                arith::SIToFPOp::create(e.b, e.loc, e.floats, e.load(e.ints, counts, at));
                            Value total = e.mul(mean, count), to = e.addi(diagonal, lane);
                            Value log = emitLog(e, e.larger(mean, e.constant(e.floats, 1e-37)));
                            e.store(e.fma(total, log, e.load(e.floats, sums, lane)), sums, lane);
                            e.store(e.add(e.load(e.floats, totals, to), total), totals, to);
                            return {e.add(carried[0], total)};
                          })[0];
    addTo(columns, e.addi(key, k), e.sumOf(column));
  });
  Value nearest = e.addi(e.subi(row, key), 1 - shape.keyBlock), none = e.number(0);
  Value to = e.mini(e.subi(e.number(shape.queries), nearest), e.number(diagonals()));
  e.loop(e.maxi(e.subi(none, nearest), none), to, 1,
         [&](Value number) { addTo(ahead, e.addi(nearest, number), e.load(e.f32, totals, number)); });
}

void PatternStatisticsEmitter::tile(Value first, Value count) {
  key = first, keys = count;
  fillPattern();
  e.loop(e.number(0), e.loadIndex(body.argument(op.getReach()), row), 1,
         [&](Value number) { document(number); });
  addMeans();
}

Value PatternStatisticsEmitter::sumLanes(int64_t number) {
  Value sum = e.loop(e.number(0), e.number(lanes), e.width, {e.constant(e.floats, 0)},
                     [&](Value lane, ValueRange carried) -> SmallVector<Value> {
                       return {e.add(carried[0], e.load(e.floats, sums, e.addi(lane, number * lanes)))};
                     })[0];
  return e.sumOf(sum);
}

/// Number 3: entropies over the log of how many keys their rows see.
void PatternStatisticsEmitter::addEntropies() {
  constexpr int64_t kEntropy = 2, kShare = 3;
  e.loop(e.number(0), e.number(lanes), 1, [&](Value lane) {
    Value seen = e.mini(e.addi(e.addi(row, lane), 1), window);
    Value several = e.compare(Predicate::sgt, seen, e.number(1));
    Value log = emitLog(e, arith::SIToFPOp::create(e.b, e.loc, e.f32, e.maxi(seen, e.number(2))));
    Value share = e.div(e.load(e.f32, sums, e.addi(lane, kEntropy * lanes)), log);
    e.store(e.select(several, share, e.constant(e.f32, 0)), sums, e.addi(lane, kShare * lanes));
  });
}

void PatternStatisticsEmitter::rowBlock(Value place) {
  row = place;
  e.zero(sums, kPatternSums * lanes);
  readRows();
  Value from = e.maxi(e.addi(e.subi(row, window), 1), e.number(0));
  Value to = e.mini(e.addi(row, lanes), e.number(shape.queries));
  e.loop(from, to, shape.keyBlock,
         [&](Value first) { tile(first, e.mini(e.subi(to, first), e.number(shape.keyBlock))); });
  addEntropies();
  Value result = e.at(body.result(2), e.muli(head, kPatternSums));
  for (int64_t sum = 0; sum < kPatternSums; ++sum)
    addTo(result, e.number(sum), sumLanes(sum));
}

void PatternStatisticsEmitter::item(Value number) {
  head = number;
  kv = shape.kvOf(e, head);
  window = e.loadIndex(body.argument(op.getWindows()), head);
  for (int64_t result : {0, 1})
    e.zero(e.at(body.result(result), e.muli(head, shape.queries)), shape.queries);
  e.zero(e.at(body.result(2), e.muli(head, kPatternSums)), kPatternSums);
  e.loop(e.number(0), e.number(shape.queries), lanes, [&](Value place) { rowBlock(place); });
}

} // namespace

KernelKind patternStatisticsKind(PatternStatisticsOp op) {
  int64_t heads = cast<RankedTensorType>(op.getColumns().getType()).getDimSize(0);
  return {[heads] { return heads; },
          [op](KernelBody &body) mutable -> LogicalResult {
            PatternStatisticsEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
