//===- LossHeld.cpp - Losses of rows that shared memory holds -------------===//
//
// A block a row, in shared memory; where two rows fit, the next one comes while
// this one is worked on. Logits cross the memory bus once each way: the bound is
// that of a copy, which the two exponentials an element stay below.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/Loss.h"
#include "passes/Codegen/VectorMath.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <limits>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;
constexpr double kLow = -std::numeric_limits<double>::infinity();

class HeldLoss {
public:
  HeldLoss(const LossTerms &terms, int64_t rowsHeld, Block &block)
      : terms(terms), rowsHeld(rowsHeld), block(block), e(block.e), lanes(e.width), bytes(16 / lanes),
        base(block.argument(terms.logits)), to(block.result(0)) {}
  void run();

private:
  Value vectors() { return e.number(terms.width / lanes); }
  void fetch(Value number, Value slot);
  void row(Value number);
  void hidePadding();
  void counted(Value number, Value target);
  void reduce();
  void writeGradient(Value number, Value target);
  Value load(Value v) { return e.load(e.floats, e.at(held, e.muli(v, lanes)), 16); }
  Value number(double value) { return e.constant(e.f32, value); }

  const LossTerms &terms;
  int64_t rowsHeld;
  Block &block;
  Emitter &e;
  int64_t lanes, bytes;
  Value base, to;
  Value memory, largest, powers; // shared: rows; of warps
  Value held;                    // the row
  Value weight, lse, plain;
};

/// Starts to copy row `number` to `slot`.
void HeldLoss::fetch(Value number, Value slot) {
  Value from = e.at(base, e.muli(number, terms.width));
  overVectors(block, vectors(), [&](Value v) {
    Value place = e.muli(v, lanes);
    block.copy(e.at(from, place), e.at(slot, place));
  });
}

/// lse of the row, and the sum of its logits where smoothing asks for it, in all threads.
void HeldLoss::reduce() {
  Value low = number(kLow), none = number(0);
  // One reading: the largest so far, and the sum of powers over it (arXiv:1805.02867).
  auto sums =
      overVectors(block, vectors(), {low, none, none}, [&](Value v, ValueRange in) -> SmallVector<Value> {
        Value x = load(v);
        Value most = e.larger(e.largestOf(x), in[0]);
        // All of what was seen may be -inf: nothing is subtracted then.
        Value shift = e.select(e.less(low, most), most, none);
        Value power = e.sumOf(emitExp(e, e.sub(x, e.splat(shift))));
        Value sum = e.fma(in[1], emitExp(e, e.sub(in[0], shift)), power);
        return {most, sum, terms.smoothing != 0 ? e.add(in[2], e.sumOf(x)) : in[2]};
      });
  // Largest and sum of 32 neighbours.
  auto together = [&](Value most, Value sum) -> std::pair<Value, Value> {
    Value all = block.overLanes(most, Block::kWarp, true);
    Value shift = e.select(e.less(low, all), all, none);
    return {all, block.overLanes(e.mul(sum, emitExp(e, e.sub(most, shift))), Block::kWarp)};
  };
  auto [most, sum] = together(sums[0], sums[1]);
  // What the row before left there was read before this row's first barrier.
  e.when(e.compare(Predicate::eq, block.lane, e.number(0)), [&, most = most, sum = sum] {
    e.store(most, largest, block.warp);
    e.store(sum, powers, block.warp);
  });
  block.barrier();
  auto [all, total] = together(block.ofWarps(largest, kLow), block.ofWarps(powers, 0));
  lse = e.add(e.select(e.less(low, all), all, none), emitLog(e, total));
  if (terms.smoothing != 0)
    plain = block.overBlock(sums[2]);
}

void HeldLoss::writeGradient(Value row, Value target) {
  double shared = terms.smoothing / static_cast<double>(terms.vocab);
  Value slope = terms.z != 0 ? e.add(number(1), e.mul(number(2 * terms.z), lse)) : number(1);
  Value scale = e.mul(weight, slope), even = e.mul(weight, number(shared));
  Value out = e.at(to, e.muli(row, terms.width));
  auto share = [&](Value x) {
    auto wide = [&](Value value) { return isa<VectorType>(x.getType()) ? e.splat(value) : value; };
    Value value = e.mul(wide(scale), emitExp(e, e.sub(x, wide(lse))));
    return terms.smoothing != 0 ? e.sub(value, wide(even)) : value;
  };
  overVectors(block, vectors(), [&](Value v) { e.store(share(load(v)), e.at(out, e.muli(v, lanes)), 16); });
  // Once more the target's element, by the thread that wrote it.
  Value owner = e.remi(e.divi(target, lanes), block.threads);
  e.when(e.compare(Predicate::eq, owner, block.thread), [&] {
    Value hit = e.mul(weight, number(1 - terms.smoothing));
    e.store(e.sub(share(e.load(e.f32, held, target)), hit), out, target);
  });
}

void HeldLoss::counted(Value row, Value target) {
  weight = terms.weight ? e.load(e.f32, block.argument(terms.weight), row) : number(1);
  reduce();
  Value picked = e.load(e.f32, held, target);
  Value loss = e.sub(lse, e.mul(number(1 - terms.smoothing), picked));
  if (terms.smoothing != 0)
    loss = e.sub(loss, e.mul(number(terms.smoothing / static_cast<double>(terms.vocab)), plain));
  if (terms.z != 0)
    loss = e.add(loss, e.mul(number(terms.z), e.mul(lse, lse)));
  e.when(e.compare(Predicate::eq, block.thread, e.number(0)),
         [&] { e.store(e.mul(weight, loss), block.result(1), row); });
  writeGradient(row, target);
}

/// Padding is -inf from here on: nothing of the sum, and its gradient 0.
void HeldLoss::hidePadding() {
  if (terms.width == terms.vocab)
    return;
  auto loop = scf::ForOp::create(e.b, e.loc, e.addi(block.thread, terms.vocab), e.number(terms.width),
                                 e.number(block.threads));
  {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    e.store(number(kLow), held, loop.getInductionVar());
  }
  block.barrier();
}

void HeldLoss::row(Value row) {
  Value target = e.loadIndex(block.argument(terms.targets), row);
  e.choose(
      e.compare(Predicate::ult, target, e.number(terms.vocab)), [&] { counted(row, target); },
      [&] {
        e.when(e.compare(Predicate::eq, block.thread, e.number(0)),
               [&] { e.store(number(0), block.result(1), row); });
        Value out = e.at(to, e.muli(row, terms.width));
        overVectors(block, vectors(),
                    [&](Value v) { e.store(e.constant(e.floats, 0), e.at(out, e.muli(v, lanes)), 16); });
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
  flushTiny(e);
  memory = block.dynamic(rowsHeld * terms.width * bytes);
  largest = block.shared(Block::kWarp), powers = block.shared(Block::kWarp);
  if (e.halves.contains(base))
    e.halves.insert(memory);
  auto fetchIfThere = [&](Value number, Value offset) {
    e.when(e.compare(Predicate::slt, number, e.number(block.itemCount)),
           [&] { fetch(number, e.at(memory, offset)); });
    block.commitCopies();
  };
  Value zero = e.number(0);
  fetchIfThere(block.block, zero);
  auto loop =
      scf::ForOp::create(e.b, e.loc, block.block, e.number(block.itemCount), block.blocks, ValueRange{zero});
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value item = loop.getInductionVar(), offset = loop.getRegionIterArgs()[0];
  Value next = e.addi(item, block.blocks);
  block.awaitCopies(0);
  // All copies of this row are there, and all threads are done with the row before.
  block.barrier();
  held = e.at(memory, offset);
  hidePadding();
  if (rowsHeld == 2) {
    offset = e.subi(e.number(terms.width), offset);
    fetchIfThere(next, offset);
    row(item);
  } else {
    row(item);
    block.barrier();
    fetchIfThere(next, offset);
  }
  scf::YieldOp::create(e.b, e.loc, ValueRange{offset});
}

} // namespace

MaybeKind heldLossKind(const BareKernel &bare, const LossTerms &terms) {
  constexpr int64_t kVectors = 4, kLeastThreads = 64, kMostThreads = 1024, kOwn = 1024;
  int64_t lanes = logitsInVector(bare, terms.logits), vectors = terms.width / lanes;
  int64_t rowBytes = vectors * 16, rowsHeld = std::min<int64_t>(2, (bare.sharedBytes - kOwn) / rowBytes);
  // Smoothing would count the padding.
  bool smooth = terms.smoothing != 0 && terms.width != terms.vocab;
  if (terms.width % lanes != 0 || rowsHeld == 0 || smooth)
    return std::nullopt;
  BlockKind kind;
  kind.items = terms.rows;
  kind.width = lanes;
  int64_t warps = (vectors + kVectors * Block::kWarp - 1) / (kVectors * Block::kWarp);
  kind.threads = std::clamp(warps * Block::kWarp, kLeastThreads, kMostThreads);
  kind.build = [terms, rowsHeld](Block &block) {
    HeldLoss(terms, rowsHeld, block).run();
    return success();
  };
  return kind;
}

} // namespace weft
