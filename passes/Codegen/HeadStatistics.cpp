//===- HeadStatistics.cpp - What a window controller is told --------------===//
//
// An item is a head: its sums are added up in one order whatever the number of
// workers. It goes over rows and blocks of queries as attention does, with the
// log-sums already known, so nothing of size T x T is kept. Each block is summed
// on its own before it joins the total.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/VectorMath.h"

#include <numbers>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

class StatisticsEmitter {
public:
  StatisticsEmitter(HeadStatisticsOp op, KernelBody &body)
      : op(op), body(body), e(body.e),
        shape(op.getQ(), op.getK(), op.getV(), op.getKvOf(), body, numberOf(op.getScale())),
        lanes(shape.queryBlock), queries(body.take(lanes * shape.channel)),
        scores(body.take(lanes * shape.keyBlock)), logSums(body.take(lanes)), entropies(body.take(lanes)),
        weights(body.take(lanes)), first(body.take(lanes)), span(body.take(lanes)),
        totals(body.take(kHeadStatistics * e.width)) {}

  void item(Value number);

private:
  Value lastCounted();
  void start(Value last);
  void block(Value last);
  void keyBlock(Value key);
  void addEntropies();
  void addMoments(const Strided &rows, int64_t width, int64_t statistic);
  void addSquares();
  void add(int64_t statistic, Value sums);
  Value weightOf(Value row) { return e.splat(e.load(e.f32, weights, row)); }

  HeadStatisticsOp op;
  KernelBody &body;
  Emitter &e;
  AttendShape shape;
  int64_t lanes;
  Value queries, scores, logSums, entropies, weights, first, span, totals;
  Value row, head, kv, place, count;
  AttendMask mask;
};

/// Place of the row's last counted target, -1 if there is none.
Value StatisticsEmitter::lastCounted() {
  if (!op.getTargets())
    return e.number(shape.queries);
  Value targets = e.at(body.argument(op.getTargets()), e.muli(row, shape.queries));
  return e.loop(e.number(0), e.number(shape.queries), 1, {e.number(-1)}, [&](Value i, ValueRange carried) {
    Value counted = e.compare(Predicate::sge, e.loadIndex(targets, i), e.number(0));
    return SmallVector<Value>{e.select(counted, i, carried[0])};
  })[0];
}

void StatisticsEmitter::add(int64_t statistic, Value sums) {
  Value at = e.number(statistic * e.width);
  e.store(e.add(e.load(e.floats, totals, at), sums), totals, at);
}

void StatisticsEmitter::start(Value last) {
  Strided q = shape.queryRows(e, body.argument(op.getQ()), row, place, head);
  emitTransposeIn(e, queries, q, count, lanes, shape.channel, shape.scale * std::numbers::log2e);
  Strided lse = shape.perQuery(e, body.argument(op.getLse()), row, place, head);
  e.zero(logSums, lanes);
  e.loop(e.number(0), count, 1, [&](Value i) {
    Value logSum = e.load(e.f32, lse.base, e.muli(i, lse.rows));
    e.store(e.mul(logSum, e.constant(e.f32, std::numbers::log2e)), logSums, i);
  });
  Value limit = e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, last));
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Value valid = e.subi(count, lane);
    Visible visible = mask.ofLanes(e, e.addi(place, lane), valid);
    e.store(visible.first, first, lane);
    e.store(visible.span, span, lane);
    Lanes there = e.firstOf(valid);
    Value starts = LLVM::MaskedLoadOp::create(e.b, e.loc, e.ints, e.at(mask.starts, e.addi(place, lane)),
                                              there.mask, e.constantInt(e.ints, 0), 4);
    Value counts = e.both(there.mask, e.compare(Predicate::sle, starts, limit));
    e.store(e.select(counts, e.constant(e.floats, 1), e.constant(e.floats, 0)), weights, lane);
    e.store(e.constant(e.floats, 0), entropies, lane);
  });
}

/// entropy = sum p (lse - s), in powers of two.
void StatisticsEmitter::keyBlock(Value key) {
  Value keys = e.mini(e.subi(e.addi(place, count), key), e.number(shape.keyBlock));
  Strided k = shape.keyRows(e, body.argument(op.getK()), row, key, kv);
  emitTileProduct(e, {k, queries, scores, {}, keys, e.number(shape.channel), lanes, false});
  Value key32 = arith::TruncIOp::create(e.b, e.loc, e.i32, key);
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Visible visible{e.subi(e.load(e.ints, first, lane), e.splat(key32)), e.load(e.ints, span, lane)};
    Value logSum = e.load(e.floats, logSums, lane), before = e.load(e.floats, entropies, lane);
    Value sum = e.loop(e.number(0), keys, 1, {before}, [&](Value j, ValueRange carried) {
      Value seen = isSeen(e, e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32, j)), visible);
      Value below = e.sub(e.load(e.floats, scores, e.addi(e.muli(j, lanes), lane)), logSum);
      Value part = e.mul(emitExp2OfNegative(e, below), below);
      return SmallVector<Value>{e.sub(carried[0], e.select(seen, part, e.constant(e.floats, 0)))};
    })[0];
    e.store(sum, entropies, lane);
  });
}

/// Entropies over the log of the number of keys, and the number of rows.
void StatisticsEmitter::addEntropies() {
  e.loop(e.number(0), e.number(lanes), e.width, [&](Value lane) {
    Value weight = e.load(e.floats, weights, lane);
    Value after = e.load(e.ints, span, lane); // keys but one
    Value keys = arith::SIToFPOp::create(e.b, e.loc, e.floats, e.addi(after, e.constantInt(e.ints, 1)));
    Value several = e.compare(Predicate::sgt, after, e.constantInt(e.ints, 0));
    Value greatest = e.select(several, emitLog(e, keys), e.constant(e.floats, 1));
    Value entropy = e.mul(e.load(e.floats, entropies, lane), e.constant(e.floats, std::numbers::ln2));
    Value share = e.select(several, e.div(entropy, greatest), e.constant(e.floats, 0));
    constexpr int64_t kEntropy = 9, kRows = 11;
    add(kEntropy, e.mul(weight, share));
    add(kRows, weight);
  });
}

/// Adds sums of |x|, x and x^2 of the block's rows that count.
void StatisticsEmitter::addMoments(const Strided &rows, int64_t width, int64_t statistic) {
  SmallVector<Value> none(3, e.constant(e.floats, 0));
  auto sums = e.loop(e.number(0), count, 1, none, [&](Value i, ValueRange carried) {
    Value weight = weightOf(i), line = e.at(rows.base, e.muli(i, rows.rows));
    return e.strips(width, carried, [&](Value c, const Lanes &there, ValueRange in) {
      Value x = e.mul(e.loadLanes(line, c, there), weight);
      return SmallVector<Value>{e.add(in[0], e.larger(x, e.neg(x))), e.add(in[1], x), e.fma(x, x, in[2])};
    });
  });
  for (int64_t i = 0; i < 3; ++i)
    add(statistic + i, sums[i]);
}

void StatisticsEmitter::addSquares() {
  Strided out = shape.outRows(e, body.argument(op.getOut()), row, place, head);
  Value sum = e.loop(e.number(0), count, 1, {e.constant(e.floats, 0)}, [&](Value i, ValueRange carried) {
    Value weight = weightOf(i), line = e.at(out.base, e.muli(i, out.rows));
    return e.strips(shape.valueChannel, carried, [&](Value c, const Lanes &there, ValueRange in) {
      Value x = e.mul(e.loadLanes(line, c, there), weight);
      return SmallVector<Value>{e.fma(x, x, in[0])};
    });
  })[0];
  constexpr int64_t kOutput = 10;
  add(kOutput, sum);
}

void StatisticsEmitter::block(Value last) {
  count = e.mini(e.subi(e.number(shape.queries), place), e.number(lanes));
  start(last);
  Value from = e.maxi(mask.firstKey(e, place), e.number(0));
  e.loop(from, e.addi(place, count), shape.keyBlock, [&](Value key) { keyBlock(key); });
  addEntropies();
  addMoments(shape.queryRows(e, body.argument(op.getQ()), row, place, head), shape.channel, 0);
  addMoments(shape.keyRows(e, body.argument(op.getK()), row, place, kv), shape.channel, 3);
  addMoments(shape.valueRows(e, body.argument(op.getV()), row, place, kv), shape.valueChannel, 6);
  addSquares();
}

void StatisticsEmitter::item(Value number) {
  head = number;
  kv = shape.kvOf(e, head);
  e.zero(totals, kHeadStatistics * e.width);
  e.loop(e.number(0), e.number(shape.batch), 1, [&](Value batchRow) {
    row = batchRow;
    mask = {e.at(body.argument(op.getDocStart()), e.muli(row, shape.queries)),
            loadWindow(e, body.argument(op.getWindows()), head), e.number(0)};
    Value last = lastCounted();
    e.loop(e.number(0), e.number(shape.queries), lanes, [&](Value at) {
      place = at;
      block(last);
    });
  });
  Value result = e.at(body.result(0), e.muli(head, kHeadStatistics));
  for (int64_t i = 0; i < kHeadStatistics; ++i)
    e.store(e.sumOf(e.load(e.floats, totals, e.number(i * e.width))), result, e.number(i));
}

} // namespace

KernelKind headStatisticsKind(HeadStatisticsOp op) {
  int64_t heads = op.getType().getDimSize(0);
  return {[heads] { return heads; },
          [op](KernelBody &body) mutable -> LogicalResult {
            StatisticsEmitter emitter(op, body);
            body.e.loop(body.begin, body.end, 1, [&](Value number) { emitter.item(number); });
            return success();
          }};
}

} // namespace weft
