//===- Loss.cpp - Cross entropy and its gradient on the GPU ---------------===//
//
// A block a row of logits, of any length: the gradient reads the row again where
// shared memory does not hold it (LossHeld.cpp). Rows need not start at multiples of
// 16 bytes: vectors are counted from the multiple before the row, and elements
// outside are masked.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/Loss.h"
#include "passes/Codegen/VectorMath.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace weft {

SmallVector<Value> overVectors(Block &block, Value count, ValueRange start,
                               function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Emitter &e = block.e;
  auto loop = scf::ForOp::create(e.b, e.loc, block.thread, count, e.number(block.threads), start);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  auto next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!start.empty())
    scf::YieldOp::create(e.b, e.loc, next);
  return SmallVector<Value>(loop.getResults());
}

void overVectors(Block &block, Value count, function_ref<void(Value)> body) {
  overVectors(block, count, {}, [&](Value v, ValueRange) {
    body(v);
    return SmallVector<Value>{};
  });
}
namespace {

using Predicate = arith::CmpIPredicate;
constexpr int64_t kThreads = 512;

/// One row, in the threads of a block.
class LossRow {
public:
  LossRow(const LossTerms &terms, Block &block)
      : terms(terms), block(block), e(block.e), lanes(e.width), base(block.argument(terms.logits)) {}

  void open(Value number);
  Value counts(); // is the target a row of the table?
  /// weight (lse - (1 - smoothing) x[t] - smoothing mean(x) + z lse^2), in all threads; keeps lse.
  Value loss();
  void gradient(Value to);
  void zero(Value to);
  void clearPadding(Value to);

private:
  /// Elements of vector `v` as the threads see them; `outside` where there are none.
  Value load(Value v, double outside);
  void store(Value v, Value to, function_ref<Value(Value)> make);
  Value vectors();
  Value insideMask(Value v);
  Value isWhole(Value v);

  const LossTerms &terms;
  Block &block;
  Emitter &e;
  int64_t lanes;
  Value base, start, skew, target, weight, lse;
};

void LossRow::open(Value number) {
  start = e.muli(number, terms.width);
  // Elements between the multiple of a vector before the row and the row.
  skew = e.remi(start, lanes);
  target = e.loadIndex(block.argument(terms.targets), number);
  weight = terms.weight ? e.load(e.f32, block.argument(terms.weight), number) : e.constant(e.f32, 1);
}

Value LossRow::counts() { return e.compare(Predicate::ult, target, e.number(terms.vocab)); }

Value LossRow::vectors() { return e.divi(e.addi(e.addi(skew, terms.vocab), lanes - 1), lanes); }

Value LossRow::isWhole(Value v) {
  Value from = e.muli(v, lanes);
  return e.both(e.compare(Predicate::sge, from, skew),
                e.compare(Predicate::sle, e.addi(from, lanes), e.addi(skew, terms.vocab)));
}

/// Which lanes of `v` are the row's.
Value LossRow::insideMask(Value v) {
  Value at = e.addi(e.splat(e.subi(e.muli(v, lanes), skew)), e.iota(e.i64));
  return e.compare(Predicate::ult, at, e.splat(e.number(terms.vocab)));
}

static int64_t alignmentOf(Emitter &e, Value base) { return e.width * (e.halves.contains(base) ? 2 : 4); }

Value LossRow::load(Value v, double outside) {
  auto op = scf::IfOp::create(e.b, e.loc, TypeRange{e.floats}, isWhole(v), true);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(op.thenBlock());
  Value place = e.addi(e.subi(start, skew), e.muli(v, lanes));
  scf::YieldOp::create(e.b, e.loc, e.load(e.floats, e.at(base, place), alignmentOf(e, base)));
  e.b.setInsertionPointToStart(op.elseBlock());
  place = e.addi(e.subi(start, skew), e.muli(v, lanes));
  Value mask = insideMask(v);
  SmallVector<Value> parts;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value there = vector::ExtractOp::create(e.b, e.loc, mask, lane);
    Value safe = e.select(there, e.addi(place, lane), start);
    parts.push_back(e.select(there, e.load(e.f32, base, safe), e.constant(e.f32, outside)));
  }
  scf::YieldOp::create(e.b, e.loc, vector::FromElementsOp::create(e.b, e.loc, e.floats, parts).getResult());
  return op.getResult(0);
}

void LossRow::store(Value v, Value to, function_ref<Value(Value)> make) {
  Value value = make(load(v, 0)), whole = isWhole(v), mask = insideMask(v);
  Value place = e.addi(e.subi(start, skew), e.muli(v, lanes));
  e.choose(
      whole, [&] { e.store(value, e.at(to, place), alignmentOf(e, to)); },
      [&] {
        for (int64_t lane = 0; lane < lanes; ++lane)
          e.when(vector::ExtractOp::create(e.b, e.loc, mask, lane), [&] {
            e.store(vector::ExtractOp::create(e.b, e.loc, value, lane), to, e.addi(place, lane));
          });
      });
}

Value LossRow::loss() {
  constexpr double kLow = -std::numeric_limits<double>::infinity();
  Value low = e.constant(e.f32, kLow), none = e.constant(e.f32, 0);
  // One reading: the largest so far, and the sum of powers over it (arXiv:1805.02867).
  auto sums =
      overVectors(block, vectors(), {low, none, none}, [&](Value v, ValueRange in) -> SmallVector<Value> {
        Value x = load(v, kLow);
        Value most = e.larger(e.largestOf(x), in[0]);
        // All of what was seen may be -inf: nothing is subtracted then.
        Value shift = e.select(e.less(low, most), most, none);
        Value power = e.sumOf(emitExp(e, e.sub(x, e.splat(shift))));
        Value sum = e.fma(in[1], emitExp(e, e.sub(in[0], shift)), power);
        Value plain = in[2];
        if (terms.smoothing != 0)
          plain = e.add(plain, e.sumOf(e.select(insideMask(v), x, e.constant(e.floats, 0))));
        return {most, sum, plain};
      });
  Value most = block.overBlock(sums[0], true);
  Value shift = e.select(e.less(low, most), most, none);
  Value scaled = e.mul(sums[1], emitExp(e, e.sub(sums[0], shift)));
  lse = e.add(shift, emitLog(e, block.overBlock(scaled)));
  auto number = [&](double value) { return e.constant(e.f32, value); };
  Value picked = e.load(e.f32, base, e.addi(start, target));
  Value result = e.sub(lse, e.mul(number(1 - terms.smoothing), picked));
  if (terms.smoothing != 0) {
    Value plain = block.overBlock(sums[2]);
    result = e.sub(result, e.mul(number(terms.smoothing / static_cast<double>(terms.vocab)), plain));
  }
  if (terms.z != 0)
    result = e.add(result, e.mul(number(terms.z), e.mul(lse, lse)));
  return e.mul(weight, result);
}

void LossRow::gradient(Value to) {
  auto number = [&](double value) { return e.constant(e.f32, value); };
  Value slope = terms.z != 0 ? e.add(number(1), e.mul(number(2 * terms.z), lse)) : number(1);
  Value scale = e.splat(e.mul(weight, slope)), shift = e.splat(lse);
  Value even = e.splat(e.mul(weight, number(terms.smoothing / static_cast<double>(terms.vocab))));
  Value hit = e.splat(e.mul(weight, number(1 - terms.smoothing)));
  // The target's logit was read by all before any is overwritten.
  block.barrier();
  overVectors(block, vectors(), [&](Value v) {
    store(v, to, [&](Value x) {
      Value share = e.mul(scale, emitExp(e, e.sub(x, shift)));
      if (terms.smoothing != 0)
        share = e.sub(share, even);
      Value at = e.addi(e.splat(e.subi(e.muli(v, lanes), skew)), e.iota(e.i64));
      Value picked = e.compare(Predicate::eq, at, e.splat(target));
      return e.select(picked, e.sub(share, hit), share);
    });
  });
}

void LossRow::clearPadding(Value to) {
  if (terms.width == terms.vocab)
    return;
  Value from = e.addi(block.thread, terms.vocab);
  auto loop = scf::ForOp::create(e.b, e.loc, from, e.number(terms.width), e.number(kThreads));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  e.store(e.constant(e.f32, 0), to, e.addi(start, loop.getInductionVar()));
}

void LossRow::zero(Value to) {
  overVectors(block, vectors(),
              [&](Value v) { store(v, to, [&](Value) { return e.constant(e.floats, 0); }); });
}

} // namespace

int64_t logitsInVector(const BareKernel &bare, Value logits) {
  constexpr int64_t kHalves = 8, kFloats = 4;
  return bare.argument(logits).isBF16() ? kHalves : kFloats;
}

MaybeKind crossEntropyGradKind(const BareKernel &bare, CrossEntropyGradOp op) {
  if (bare.argument(op.getLogits()) != bare.result(0))
    return std::nullopt;
  LossTerms terms(op);
  if (MaybeKind held = heldLossKind(bare, terms))
    return held;
  BlockKind kind;
  kind.items = terms.rows;
  kind.threads = kThreads;
  kind.width = logitsInVector(bare, op.getLogits());
  kind.build = [terms](Block &block) {
    Emitter &e = block.e;
    block.items([&](Value number) {
      LossRow row(terms, block);
      row.open(number);
      Value leader = e.compare(Predicate::eq, block.thread, e.number(0));
      row.clearPadding(block.result(0));
      e.choose(
          row.counts(),
          [&] {
            Value loss = row.loss();
            e.when(leader, [&] { e.store(loss, block.result(1), number); });
            row.gradient(block.result(0));
          },
          [&] {
            e.when(leader, [&] { e.store(e.constant(e.f32, 0), block.result(1), number); });
            row.zero(block.result(0));
          });
    });
    return success();
  };
  return kind;
}

/// Losses of rows go to memory of the module; the block that comes last adds them up in order.
MaybeKind crossEntropyKind(const BareKernel &bare, CrossEntropyOp op) {
  constexpr int64_t kMostRows = 1 << 20;
  LossTerms terms(op);
  if (terms.rows > kMostRows)
    return std::nullopt;
  BlockKind kind;
  kind.items = terms.rows;
  kind.threads = kThreads;
  kind.width = logitsInVector(bare, op.getLogits());
  kind.build = [terms](Block &block) {
    Emitter &e = block.e;
    Value losses = block.global(e.f32, terms.rows);
    Value leader = e.compare(Predicate::eq, block.thread, e.number(0));
    block.items([&](Value number) {
      LossRow row(terms, block);
      row.open(number);
      e.choose(
          row.counts(),
          [&] {
            Value loss = row.loss();
            e.when(leader, [&] { e.store(loss, losses, number); });
          },
          [&] { e.when(leader, [&] { e.store(e.constant(e.f32, 0), losses, number); }); });
    });
    block.last([&] {
      auto loop = scf::ForOp::create(e.b, e.loc, block.thread, e.number(terms.rows), e.number(kThreads),
                                     ValueRange{e.constant(e.f32, 0)});
      {
        OpBuilder::InsertionGuard guard(e.b);
        e.b.setInsertionPointToStart(loop.getBody());
        Value sum = e.add(loop.getRegionIterArgs()[0], e.load(e.f32, losses, loop.getInductionVar()));
        scf::YieldOp::create(e.b, e.loc, sum);
      }
      Value sum = block.overBlock(loop.getResult(0));
      e.when(leader, [&] { e.store(sum, block.result(0)); });
    });
    return success();
  };
  return kind;
}

} // namespace weft
