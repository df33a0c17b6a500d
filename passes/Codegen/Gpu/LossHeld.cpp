//===- LossHeld.cpp - Losses of rows that shared memory holds -------------===//
//
// A block a row, in shared memory. A thread reads back only what it copied there
// itself, so that its part of the next row comes into the place of what it has just
// written out: logits cross the memory bus once each way, reads beside writes, and
// the bound is that of a copy. Where two rows fit, two blocks share a
// multiprocessor: one computes while the other's row is on its way. What of a row does
// not fit is read twice, the second time mostly from the second cache, as few rows are
// worked on at once.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/Loss.h"
#include "passes/Codegen/VectorMath.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;
constexpr double kLow = -std::numeric_limits<double>::infinity();

/// Powers are of two: `shift` and `lse` below are logarithms to base 2.
class HeldLoss {
public:
  HeldLoss(const LossTerms &terms, int64_t near, Block &block)
      : terms(terms), block(block), e(block.e), lanes(e.width), near(near),
        base(block.argument(terms.logits)), to(block.result(0)) {}
  void run();

private:
  /// Of vector `v`, which is x, with what goes from vector to vector.
  using Each = function_ref<SmallVector<Value>(Value v, Value x, ValueRange in, bool isNear)>;
  SmallVector<Value> overRow(ValueRange start, Each body);
  Value isClass(Value v);
  Value number(double value) { return e.constant(e.f32, value); }
  Value same(Value value, Value x) { return isa<VectorType>(x.getType()) ? e.splat(value) : value; }
  Value load(Value row, Value v);
  Value powerOver(Value x, Value shift);
  void fetchIf(Value there, Value number, Value v);
  void hidePadding();
  std::pair<Value, Value> together(Value most, Value sum);
  void reduce(Value slot);
  Value share(Value x);
  Value pick(Value target);
  void counted(Value number, Value next, Value isNext, Value target, Value slot);
  void uncounted(Value number, Value next, Value isNext);

  const LossTerms &terms;
  Block &block;
  Emitter &e;
  int64_t lanes, near;         // vectors that are held
  Value base, to, far;         // far: the row in memory
  Value held, largest, powers; // shared: the row; of warps, for this row and the one before
  Value weight, lse, plain;
};

/// Vector `v` of a row. Halves are taken apart by shifts: a conversion that flushes
/// (flushTiny) shares the unit of the exponentials.
Value HeldLoss::load(Value row, Value v) {
  Value place = e.at(row, e.muli(v, lanes));
  if (!e.halves.contains(row))
    return e.load(e.floats, place, 16);
  auto words = VectorType::get({lanes / 2}, e.i32), halves = VectorType::get({lanes / 2}, e.f32);
  auto floatsOf = [&](Value bits) -> Value { return arith::BitcastOp::create(e.b, e.loc, halves, bits); };
  Value pairs = e.load(words, place, 16);
  Value low = floatsOf(arith::ShLIOp::create(e.b, e.loc, pairs, e.constantInt(words, 16)));
  Value high = floatsOf(e.both(pairs, e.constantInt(words, -65536)));
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < lanes / 2; ++i)
    order.append({i, i + lanes / 2});
  return vector::ShuffleOp::create(e.b, e.loc, low, high, order);
}

/// e^x over 2^shift. One rounding in all: rows of large logits lose nothing to `shift`.
Value HeldLoss::powerOver(Value x, Value shift) {
  Value scale = same(number(std::numbers::log2e), x);
  return emitExp2OfNegative(e, e.fma(x, scale, same(e.neg(shift), x)));
}

/// Starts to copy vector `v` of row `number`.
void HeldLoss::fetchIf(Value there, Value number, Value v) {
  e.when(there, [&] {
    Value place = e.muli(v, lanes);
    block.copy(e.at(e.at(base, e.muli(number, terms.width)), place), e.at(held, place));
  });
}

/// This thread's vectors of the row: those that are held, then the others.
SmallVector<Value> HeldLoss::overRow(ValueRange start, Each body) {
  auto sums = overVectors(block, e.number(near), start,
                          [&](Value v, ValueRange in) { return body(v, load(held, v), in, true); });
  int64_t count = terms.width / lanes;
  if (near == count)
    return sums;
  auto loop = scf::ForOp::create(e.b, e.loc, e.addi(block.thread, near), e.number(count),
                                 e.number(block.threads), sums);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value v = loop.getInductionVar(), x = load(far, v);
  if (terms.width != terms.vocab)
    x = e.select(isClass(v), x, e.constant(e.floats, kLow));
  auto next = body(v, x, loop.getRegionIterArgs(), false);
  if (!start.empty())
    scf::YieldOp::create(e.b, e.loc, next);
  return SmallVector<Value>(loop.getResults());
}

/// Which lanes of vector `v` are no padding.
Value HeldLoss::isClass(Value v) {
  Value first = e.muli(v, lanes);
  return e.compare(Predicate::slt, e.addi(e.splat(first), e.iota(e.i64)), e.splat(e.number(terms.vocab)));
}

/// Padding that is held is -inf from here on: nothing of the sum, and its gradient 0.
void HeldLoss::hidePadding() {
  if (terms.width == terms.vocab)
    return;
  // The first vector with padding, and the first of this thread's from there on.
  int64_t padded = terms.vocab / lanes, round = padded / block.threads * block.threads;
  Value own = e.addi(block.thread, round);
  Value late = e.compare(Predicate::slt, own, e.number(padded));
  Value start = e.select(late, e.addi(own, block.threads), own);
  auto loop = scf::ForOp::create(e.b, e.loc, start, e.number(near), e.number(block.threads));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value v = loop.getInductionVar();
  Value kept = e.select(isClass(v), load(held, v), e.constant(e.floats, kLow));
  e.store(kept, e.at(held, e.muli(v, lanes)), 16);
}

/// Largest shift of 32 neighbours, and their sums over it.
std::pair<Value, Value> HeldLoss::together(Value most, Value sum) {
  Value all = block.overLanes(most, Block::kWarp, true);
  Value low = number(kLow), none = number(0);
  Value over = emitExp2OfNegative(e, e.sub(most, e.select(e.less(low, all), all, none)));
  return {all, block.overLanes(e.mul(sum, over), Block::kWarp)};
}

/// lse of the row, and the sum of its logits where smoothing asks for it, in all threads.
void HeldLoss::reduce(Value slot) {
  Value low = number(kLow), none = number(0), log2e = number(std::numbers::log2e);
  // One reading: the largest so far, and the sum of powers over it (arXiv:1805.02867).
  auto sums = overRow({low, none, none}, [&](Value, Value x, ValueRange in, bool) -> SmallVector<Value> {
    Value most = e.larger(e.mul(e.largestOf(x), log2e), in[0]);
    // All of what was seen may be -inf: nothing is subtracted then.
    Value shift = e.select(e.less(low, most), most, none);
    Value power = e.sumOf(powerOver(x, shift));
    Value sum = e.fma(in[1], emitExp2OfNegative(e, e.sub(in[0], shift)), power);
    return {most, sum, terms.smoothing != 0 ? e.add(in[2], e.sumOf(x)) : in[2]};
  });
  auto [most, sum] = together(sums[0], sums[1]);
  // The row before, whose threads may still read, has the other slot.
  e.when(e.compare(Predicate::eq, block.lane, e.number(0)), [&, most = most, sum = sum] {
    e.store(most, e.at(largest, slot), block.warp);
    e.store(sum, e.at(powers, slot), block.warp);
  });
  block.barrier();
  auto [all, total] =
      together(block.ofWarps(e.at(largest, slot), kLow), block.ofWarps(e.at(powers, slot), 0));
  lse = e.fma(emitLog(e, total), log2e, e.select(e.less(low, all), all, none));
  if (terms.smoothing != 0)
    plain = block.overBlock(sums[2]);
}

/// The gradient by x of what is no target.
Value HeldLoss::share(Value x) {
  double shared = terms.smoothing / static_cast<double>(terms.vocab);
  Value slope = terms.z != 0 ? e.fma(number(2 * terms.z * std::numbers::ln2), lse, number(1)) : number(1);
  Value value = e.mul(same(e.mul(weight, slope), x), powerOver(x, lse));
  return terms.smoothing != 0 ? e.sub(value, same(e.mul(weight, number(shared)), x)) : value;
}

/// The target's logit, wherever it lies.
Value HeldLoss::pick(Value target) {
  if (near == terms.width / lanes)
    return e.load(e.f32, held, target);
  Value isNear = e.compare(Predicate::slt, target, e.number(near * lanes));
  Value inside = e.load(e.f32, held, e.select(isNear, target, e.muli(block.thread, lanes)));
  return e.select(isNear, inside, e.load(e.f32, far, target));
}

void HeldLoss::counted(Value row, Value next, Value isNext, Value target, Value slot) {
  reduce(slot);
  // The target's logit, loss and gradient are the affair of the thread that copied it.
  Value isOwner = e.compare(Predicate::eq, e.remi(e.divi(target, lanes), block.threads), block.thread);
  auto owner = scf::IfOp::create(e.b, e.loc, TypeRange{e.f32}, isOwner, true);
  {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(owner.thenBlock());
    Value picked = pick(target), natural = e.mul(lse, number(std::numbers::ln2));
    Value loss = e.sub(natural, e.mul(number(1 - terms.smoothing), picked));
    if (terms.smoothing != 0)
      loss = e.sub(loss, e.mul(number(terms.smoothing / static_cast<double>(terms.vocab)), plain));
    if (terms.z != 0)
      loss = e.add(loss, e.mul(number(terms.z), e.mul(natural, natural)));
    e.store(e.mul(weight, loss), block.result(1), row);
    scf::YieldOp::create(e.b, e.loc, e.sub(share(picked), e.mul(weight, number(1 - terms.smoothing))));
    e.b.setInsertionPointToStart(owner.elseBlock());
    scf::YieldOp::create(e.b, e.loc, number(0));
  }
  Value out = e.at(to, e.muli(row, terms.width));
  overRow({}, [&](Value v, Value x, ValueRange, bool isNear) -> SmallVector<Value> {
    e.store(share(x), e.at(out, e.muli(v, lanes)), 16);
    if (isNear)
      fetchIf(isNext, next, v);
    return {};
  });
  e.when(isOwner, [&] { e.store(owner.getResult(0), out, target); });
}

void HeldLoss::uncounted(Value row, Value next, Value isNext) {
  e.when(e.compare(Predicate::eq, block.thread, e.number(0)),
         [&] { e.store(number(0), block.result(1), row); });
  Value out = e.at(to, e.muli(row, terms.width));
  overRow({}, [&](Value v, Value, ValueRange, bool isNear) -> SmallVector<Value> {
    e.store(e.constant(e.floats, 0), e.at(out, e.muli(v, lanes)), 16);
    if (isNear)
      fetchIf(isNext, next, v);
    return {};
  });
}

/// Numbers below 2^-126 become 0 in this kernel: a probability that small is none, and
/// an exponential that keeps them takes three instructions more.
static void flushTiny(Emitter &e) {
  Operation *function = e.b.getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  function->setAttr(
      "passthrough",
      e.b.getArrayAttr({e.b.getStrArrayAttr({"denormal-fp-math-f32", "preserve-sign,preserve-sign"})}));
}

void HeldLoss::run() {
  constexpr int64_t kVectorBytes = 16;
  flushTiny(e);
  held = block.dynamic(near * kVectorBytes);
  largest = block.shared(2 * Block::kWarp), powers = block.shared(2 * Block::kWarp);
  if (e.halves.contains(base))
    e.halves.insert(held);
  auto isRow = [&](Value number) { return e.compare(Predicate::slt, number, e.number(block.itemCount)); };
  Value isFirst = isRow(block.block);
  overVectors(block, e.number(near), [&](Value v) { fetchIf(isFirst, block.block, v); });
  block.commitCopies();
  auto loop = scf::ForOp::create(e.b, e.loc, block.block, e.number(block.itemCount), block.blocks,
                                 ValueRange{e.number(0)});
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value item = loop.getInductionVar(), slot = loop.getRegionIterArgs()[0];
  Value next = e.addi(item, block.blocks), isNext = isRow(next);
  far = e.at(base, e.muli(item, terms.width));
  // Their way from memory goes beside the row's.
  Value target = e.loadIndex(block.argument(terms.targets), item);
  weight = terms.weight ? e.load(e.f32, block.argument(terms.weight), item) : number(1);
  block.awaitCopies(0);
  hidePadding();
  Value counts = e.compare(Predicate::ult, target, e.number(terms.vocab));
  e.choose(
      counts, [&] { counted(item, next, isNext, target, slot); }, [&] { uncounted(item, next, isNext); });
  block.commitCopies();
  // Rows that do not count pass no barrier.
  Value other = e.subi(e.number(Block::kWarp), slot);
  scf::YieldOp::create(e.b, e.loc, ValueRange{e.select(counts, other, slot)});
}

} // namespace

MaybeKind heldLossKind(const BareKernel &bare, const LossTerms &terms) {
  constexpr int64_t kVectors = 4, kLeastThreads = 64, kMostThreads = 1024, kOwn = 2048;
  int64_t lanes = logitsInVector(bare, terms.logits), vectors = terms.width / lanes;
  int64_t blocks = bare.sharedBytes / (vectors * 16 + kOwn); // of a multiprocessor
  // Smoothing would count the padding.
  bool smooth = terms.smoothing != 0 && terms.width != terms.vocab;
  if (terms.width % lanes != 0 || smooth)
    return std::nullopt;
  BlockKind kind;
  kind.items = terms.rows;
  kind.width = lanes;
  int64_t warps = (vectors + kVectors * Block::kWarp - 1) / (kVectors * Block::kWarp);
  int64_t most = blocks < 2 ? kMostThreads : kMostThreads / 2;
  kind.threads = std::clamp(warps * Block::kWarp, kLeastThreads, most);
  // Whole rounds of the threads: a vector is the same thread's, wherever it lies.
  int64_t round = kind.threads * 16, near = (bare.sharedBytes - kOwn) / round * kind.threads;
  near = blocks == 0 ? near : vectors;
  kind.build = [terms, near](Block &block) {
    HeldLoss(terms, near, block).run();
    return success();
  };
  return kind;
}

} // namespace weft
