//===- Loss.cpp - Cross entropy and its gradient --------------------------===//
#include "passes/Codegen/Builders.h"
#include "passes/Codegen/VectorMath.h"

#include <limits>

using namespace mlir;

namespace weft {
namespace {

/// The loss of one row, and what its gradient needs.
class LossRow {
public:
  template <typename Op>
  LossRow(Op op, KernelBody &body)
      : e(body.e), vocab(cast<RankedTensorType>(op.getLogits().getType()).getShape().back()),
        z(numberOf(op.getZ())), smoothing(numberOf(op.getSmoothing())), logits(body.argument(op.getLogits())),
        targets(body.argument(op.getTargets())),
        weights(op.getWeight() ? body.argument(op.getWeight()) : Value()) {}

  /// Does row `number` count? Its target must be a row of the table.
  Value open(Value number);
  /// weight (lse - (1 - smoothing) x[t] - smoothing mean(x) + z lse^2); sets `lse`.
  Value loss();
  /// Writes dlogits, which may be the logits.
  void gradient(Value to);

  Emitter &e;
  int64_t vocab;
  double z, smoothing;

private:
  Value logits, targets, weights;
  Value row, target, weight, lse;
};

Value LossRow::open(Value number) {
  row = e.at(logits, e.muli(number, vocab));
  target = e.loadIndex(targets, number);
  weight = weights ? e.load(e.f32, weights, number) : e.constant(e.f32, 1);
  return e.compare(arith::CmpIPredicate::ult, target, e.number(vocab));
}

Value LossRow::loss() {
  double low = -std::numeric_limits<double>::infinity();
  auto highest =
      e.strips(vocab, {e.constant(e.floats, low)}, [&](Value i, const Lanes &lanes, ValueRange in) {
        Value x = e.loadLanes(row, i, lanes, e.constant(e.floats, low));
        return SmallVector<Value>{e.larger(x, in[0])};
      });
  Value most = e.largestOf(highest[0]);
  Value shift = e.splat(most);
  Value none = e.constant(e.floats, 0);
  auto sums = e.strips(vocab, {none, none}, [&](Value i, const Lanes &lanes, ValueRange in) {
    Value x = e.loadLanes(row, i, lanes);
    Value power = emitExp(e, e.sub(x, shift));
    if (lanes.mask)
      power = e.select(lanes.mask, power, none);
    return SmallVector<Value>{e.add(in[0], power), smoothing != 0 ? e.add(in[1], x) : in[1]};
  });
  lse = e.add(most, emitLog(e, e.sumOf(sums[0])));
  auto number = [&](double value) { return e.constant(e.f32, value); };
  Value result = e.sub(lse, e.mul(number(1 - smoothing), e.load(e.f32, row, target)));
  if (smoothing != 0)
    result = e.sub(result, e.mul(number(smoothing / static_cast<double>(vocab)), e.sumOf(sums[1])));
  if (z != 0)
    result = e.add(result, e.mul(number(z), e.mul(lse, lse)));
  return e.mul(weight, result);
}

void LossRow::gradient(Value to) {
  auto number = [&](double value) { return e.constant(e.f32, value); };
  Value slope = z != 0 ? e.add(number(1), e.mul(number(2 * z), lse)) : number(1);
  Value scale = e.splat(e.mul(weight, slope)), shift = e.splat(lse);
  Value even = e.splat(e.mul(weight, number(smoothing / static_cast<double>(vocab))));
  e.strips(vocab, [&](Value i, const Lanes &lanes) {
    Value share = e.mul(scale, emitExp(e, e.sub(e.loadLanes(row, i, lanes), shift)));
    if (smoothing != 0)
      share = e.sub(share, even);
    e.storeLanes(share, to, i, lanes);
  });
  Value at = e.at(to, target);
  e.store(e.sub(e.load(e.f32, at), e.mul(weight, number(1 - smoothing))), at);
}

} // namespace

KernelKind crossEntropyKind(CrossEntropyOp op) {
  auto build = [op](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    int64_t rows = cast<RankedTensorType>(op.getTargets().getType()).getNumElements();
    e.loop(body.begin, body.end, 1, [&](Value) {
      // The sum is kept in memory: rows that do not count leave it alone.
      e.store(e.constant(e.f32, 0), body.result(0));
      e.loop(e.number(0), e.number(rows), 1, [&](Value number) {
        LossRow row(op, body);
        e.when(row.open(number), [&] {
          Value loss = row.loss();
          e.store(e.add(e.load(e.f32, body.result(0)), loss), body.result(0));
        });
      });
    });
    return success();
  };
  return {[] { return int64_t{1}; }, build};
}

KernelKind crossEntropyGradKind(CrossEntropyGradOp op) {
  int64_t rows = cast<RankedTensorType>(op.getTargets().getType()).getNumElements();
  auto build = [op](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    e.loop(body.begin, body.end, 1, [&](Value number) {
      LossRow row(op, body);
      Value to = e.at(body.result(0), e.muli(number, row.vocab));
      e.choose(
          row.open(number),
          [&] {
            e.store(row.loss(), body.result(1), number);
            row.gradient(to);
          },
          [&] {
            e.store(e.constant(e.f32, 0), body.result(1), number);
            e.zero(to, row.vocab);
          });
    });
    return success();
  };
  return {[rows] { return rows; }, build};
}

} // namespace weft
