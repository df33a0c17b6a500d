//===- HeadStatistics.cpp - What a window controller is told --------------===//
//
// An item is a head: its sums are added up in one order whatever the number of
// workers. Each block of queries is summed on its own before it joins the total.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/AttendShape.h"
#include "passes/Codegen/VectorMath.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

class StatisticsEmitter {
public:
  StatisticsEmitter(HeadStatisticsOp op, KernelBody &body)
      : op(op), body(body), e(body.e), shape(op.getQ(), op.getK(), op.getV(), op.getKvOf(), body, 1),
        lanes(shape.queryBlock), weights(body.take(lanes)), totals(body.take(kHeadStatistics * e.width)) {}

  void item(Value number);

private:
  Value lastCounted();
  void block(Value last);
  void addRows(Value last);
  void addMoments(const Strided &rows, int64_t width, int64_t statistic);
  void addSquares();
  void add(int64_t statistic, Value sum);
  Value weightOf(Value row) { return e.splat(e.load(e.f32, weights, row)); }

  HeadStatisticsOp op;
  KernelBody &body;
  Emitter &e;
  AttendShape shape;
  int64_t lanes;
  Value weights, totals;
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

/// `sum`: a vector, or a scalar for its first lane.
void StatisticsEmitter::add(int64_t statistic, Value sum) {
  Value at = e.number(statistic * e.width);
  e.store(e.add(e.load(sum.getType(), totals, at), sum), totals, at);
}

/// Which rows count and how many do; their entropies over the log of the number of keys.
void StatisticsEmitter::addRows(Value last) {
  Strided entropy = shape.perQuery(e, body.argument(op.getEntropy()), row, place, head);
  Value none = e.constant(e.f32, 0), one = e.constant(e.f32, 1);
  auto sums = e.loop(e.number(0), count, 1, {none, none}, [&](Value i, ValueRange carried) {
    Value at = e.addi(place, i), start = e.loadIndex(mask.starts, at);
    Value counts = e.compare(Predicate::sle, start, last);
    e.store(e.select(counts, one, none), weights, i);
    Value before = e.subi(at, e.maxi(mask.firstKey(e, at), e.number(0))); // keys but the row's own
    Value several = e.compare(Predicate::sgt, before, e.number(0));
    Value keys = arith::SIToFPOp::create(e.b, e.loc, e.f32, e.addi(before, 1));
    Value most = e.select(several, emitLog(e, keys), one);
    Value share = e.div(e.load(e.f32, entropy.base, e.muli(i, entropy.rows)), most);
    share = e.select(e.both(several, counts), share, none);
    return SmallVector<Value>{e.add(carried[0], share), e.add(carried[1], e.select(counts, one, none))};
  });
  constexpr int64_t kEntropy = 9, kRows = 11;
  add(kEntropy, sums[0]);
  add(kRows, sums[1]);
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
  addRows(last);
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
