//===- MixRows.cpp - Tables of fixed patterns, scaled values --------------===//
//
// mix_table: a block does kRows places of a head: their weights and sums of rows
// and its share of the head's tiles. Sums are of the pairs within the window, then
// of those behind it that stay in sight. A thread sums four rows at once over a
// quarter of the keys; the quarters are added in their order.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/VectorMath.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;
constexpr int64_t kThreads = 256;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

class TableEmitter {
public:
  static constexpr int64_t kRows = 256, kKeys = 128;             // of an item; of a step
  static constexpr int64_t kWidth = 4;                           // rows of a thread, keys at once
  static constexpr int64_t kParts = kThreads / (kRows / kWidth); // threads that share rows
  static constexpr int64_t kSlice = kRows + kKeys;               // distances of a step

  TableEmitter(MixTableOp op, Block &block)
      : op(op), block(block), e(block.e), heads(typeOf(op.getA()).getDimSize(0)),
        places(typeOf(op.getA()).getDimSize(1)), tables(typeOf(op.getWindows()).getDimSize(0) / heads),
        slice(block.shared(kSlice)), keyWeights(block.shared(kKeys)), partial(block.shared(kParts * kRows)) {}
  static int64_t groupsOf(int64_t places) { return (places + kRows - 1) / kRows; }
  void item(Value number);

private:
  Value largest(Value values);
  /// exp(values[place] - most) where `there`, else 0.
  Value power(Value values, Value place, Value most, Value there);
  Value distance(Value d, Value there); // E[d] or F[d]
  Value within(Value d) { return e.compare(Predicate::ult, d, window); }
  Value behind(Value d) {
    return e.both(e.compare(Predicate::ult, d, e.number(places)), e.compare(Predicate::uge, d, window));
  }
  void fillStep(Value key, bool far);
  Value sumStep(Value sums);
  Value sumSteps(Value from, Value to, bool far, Value sums);
  void sumRows();
  void finishRows();
  void fillTables(Value group);

  MixTableOp op;
  Block &block;
  Emitter &e;
  int64_t heads, places, tables; // the last of a head
  Value slice, keyWeights, partial;
  Value head, a, r, mostA, mostR, window, sights, row; // of the item; `row` is its first
};

Value TableEmitter::largest(Value values) {
  Value own = e.loop(block.thread, e.number(places), kThreads, {e.load(e.f32, values, e.number(0))},
                     [&](Value at, ValueRange carried) -> SmallVector<Value> {
                       return {e.larger(carried[0], e.load(e.f32, values, at))};
                     })[0];
  return block.overBlock(own, /*largest=*/true);
}

Value TableEmitter::power(Value values, Value place, Value most, Value there) {
  Value inside = e.select(there, place, e.number(0));
  return e.select(there, emitExp(e, e.sub(e.load(e.f32, values, inside), most)), e.constant(e.f32, 0));
}

Value TableEmitter::distance(Value d, Value there) {
  Value exact = power(r, d, mostR, there);
  Value stored = arith::TruncFOp::create(e.b, e.loc, e.b.getBF16Type(), exact);
  return arith::ExtFOp::create(e.b, e.loc, e.f32, stored);
}

/// Weights of kKeys keys, and E from the item's first row less that of the last key on.
void TableEmitter::fillStep(Value key, bool far) {
  block.barrier();
  e.when(e.compare(Predicate::slt, block.thread, e.number(kKeys)), [&] {
    Value own = e.addi(key, block.thread);
    Value end = far ? e.mini(sights, e.number(places)) : e.number(places);
    e.store(power(a, own, mostA, e.compare(Predicate::slt, own, end)), keyWeights, block.thread);
  });
  Value first = e.addi(e.subi(row, key), -kKeys);
  e.loop(block.thread, e.number(kSlice), kThreads, [&](Value at) {
    Value d = e.addi(first, at);
    e.store(distance(d, far ? behind(d) : within(d)), slice, at);
  });
  block.barrier();
}

/// Adds the thread's keys of a step to its rows.
Value TableEmitter::sumStep(Value sums) {
  constexpr int64_t kOwn = kKeys / kParts, kAlignment = 16;
  Value quad = e.muli(e.remi(block.thread, kRows / kWidth), kWidth);
  Value from = e.muli(e.divi(block.thread, kRows / kWidth), kOwn);
  auto four = [&](Value memory, Value at) { return e.load(e.floats, e.at(memory, at), kAlignment); };
  Value start = e.addi(e.subi(quad, from), kKeys);
  return e.loop(from, e.addi(from, kOwn), kWidth, {sums, four(slice, start)},
                [&](Value key, ValueRange carried) -> SmallVector<Value> {
                  Value sum = carried[0], upper = carried[1];
                  Value lower = four(slice, e.addi(e.subi(quad, key), kKeys - kWidth));
                  Value weights = four(keyWeights, key);
                  for (int32_t k = 0; k < kWidth; ++k) {
                    SmallVector<int32_t> lanes; // E of rows 0.. less key k, of [lower, upper]
                    for (int32_t lane = 0; lane < kWidth; ++lane)
                      lanes.push_back(static_cast<int32_t>(kWidth) + lane - k);
                    Value powers = LLVM::ShuffleVectorOp::create(e.b, e.loc, lower, upper, lanes);
                    Value weight =
                        LLVM::ExtractElementOp::create(e.b, e.loc, weights, e.constantInt(e.i32, k));
                    sum = e.fma(powers, e.splat(weight), sum);
                  }
                  return {sum, lower};
                })[0];
}

Value TableEmitter::sumSteps(Value from, Value to, bool far, Value sums) {
  return e.loop(from, to, kKeys, {sums}, [&](Value key, ValueRange carried) -> SmallVector<Value> {
    fillStep(key, far);
    return {sumStep(carried[0])};
  })[0];
}

void TableEmitter::sumRows() {
  Value oldest = e.maxi(e.addi(e.subi(row, window), 1), e.number(0));
  Value from = e.muli(e.divi(oldest, kKeys), kKeys);
  Value to = e.mini(e.addi(row, kRows), e.number(places));
  Value sums = sumSteps(from, to, /*far=*/false, e.constant(e.floats, 0));
  if (tables > 1)
    sums = sumSteps(e.number(0), e.mini(sights, e.subi(to, window)), /*far=*/true, sums);
  constexpr int64_t kAlignment = 16;
  e.store(sums, e.at(partial, e.muli(block.thread, kWidth)), kAlignment);
  block.barrier();
}

void TableEmitter::finishRows() {
  Value own = e.addi(row, block.thread);
  e.when(e.compare(Predicate::slt, own, e.number(places)), [&] {
    Value sum = e.constant(e.f32, 0);
    for (int64_t part = 0; part < kParts; ++part)
      sum = e.add(sum, e.load(e.f32, partial, e.addi(block.thread, part * kRows)));
    Value at = e.addi(e.muli(head, places), own);
    Value weight = emitExp(e, e.sub(e.load(e.f32, a, own), mostA));
    e.store(weight, block.result(2), at);
    e.store(e.div(e.constant(e.f32, 1), sum), block.result(3), at);
    e.store(e.add(emitLog(e, sum), e.add(mostA, mostR)), block.result(4), at);
  });
}

void TableEmitter::fillTables(Value group) {
  constexpr int64_t kCore = MixTableOp::kCore, kCells = kCore * kCore, kReach = MixTableOp::kReach;
  int64_t cores = MixTableOp::coresOf(places), cells = tables * cores * kCells, groups = groupsOf(places);
  int64_t share = (cells + groups - 1) / groups;
  Value first = e.muli(group, share), end = e.mini(e.addi(first, share), e.number(cells));
  e.loop(e.addi(first, block.thread), end, kThreads, [&](Value cell) {
    Value inside = e.remi(cell, kCells), core = e.divi(cell, kCells);
    Value ofTable = tables > 1 ? e.remi(core, cores) : core;
    Value n = e.addi(e.addi(e.muli(ofTable, kCore), e.divi(inside, kCore)), e.remi(inside, kCore));
    auto power = [&](Value d) {
      Value there = within(d);
      if (tables > 1)
        there = e.select(e.compare(Predicate::slt, core, e.number(cores)), there, behind(d));
      return distance(d, there);
    };
    Value at = e.addi(e.muli(head, cells), cell);
    e.store(power(e.subi(e.number(kCore * (cores - kReach) - 1), n)), block.result(0), at);
    e.store(power(e.addi(n, 1 - kCore * (kReach + 1))), block.result(1), at);
  });
}

void TableEmitter::item(Value number) {
  int64_t groups = groupsOf(places);
  head = e.remi(number, heads);
  Value group = e.subi(e.number(groups - 1), e.divi(number, heads)); // the longest sums first
  row = e.muli(group, kRows);
  a = e.at(block.argument(op.getA()), e.muli(head, places));
  r = e.at(block.argument(op.getR()), e.muli(head, places));
  window = e.mini(e.loadIndex(block.argument(op.getWindows()), head), e.number(places));
  if (tables > 1)
    sights = e.loadIndex(block.argument(op.getWindows()), e.addi(head, heads));
  mostA = largest(a);
  mostR = largest(r);
  sumRows();
  finishRows();
  fillTables(group);
}

} // namespace

MaybeKind mixTableKind(const BareKernel &, MixTableOp op) {
  auto type = typeOf(op.getA());
  BlockKind kind;
  kind.threads = kThreads;
  kind.width = TableEmitter::kWidth;
  kind.items = type.getDimSize(0) * TableEmitter::groupsOf(type.getDimSize(1));
  kind.build = [op](Block &block) {
    TableEmitter table(op, block);
    block.items([&](Value number) { table.item(number); });
    return success();
  };
  return kind;
}

MaybeKind mixScaleKind(const BareKernel &, MixScaleOp op) {
  constexpr int64_t kWidth = 8, kAlignment = 16;
  auto x = typeOf(op.getX()), y = typeOf(op.getY());
  int64_t channel = y.getDimSize(3);
  if (channel % kWidth != 0)
    return std::nullopt;
  BlockKind kind;
  int64_t strips = y.getNumElements() / kWidth, heads = y.getDimSize(2);
  kind.threads = kThreads;
  kind.width = kWidth;
  kind.items = (strips + kThreads - 1) / kThreads;
  kind.build = [=](Block &block) mutable {
    Emitter &e = block.e;
    int64_t ofRow = channel / kWidth, places = typeOf(op.getScale()).getDimSize(1);
    block.items([&](Value item) {
      Value strip = e.addi(e.muli(item, kThreads), block.thread);
      e.when(e.compare(Predicate::slt, strip, e.number(strips)), [&] {
        Value row = e.divi(strip, ofRow), token = e.divi(row, heads), head = e.remi(row, heads);
        Value batch = e.divi(token, y.getDimSize(1)), place = e.remi(token, y.getDimSize(1));
        Value kv = op.getKvOf() ? e.loadIndex(block.argument(op.getKvOf()), head) : head;
        Value own = e.subi(place, e.loadIndex(block.argument(op.getDocStart()), token));
        Value scale = e.load(e.f32, block.argument(op.getScale()), e.addi(e.muli(head, places), own));
        Value from = e.addi(e.muli(batch, x.getDimSize(1)), place);
        from = e.addi(e.muli(from, headCount(x)), kv);
        from = e.addi(e.muli(from, channel), e.muli(e.remi(strip, ofRow), kWidth));
        Value values = e.load(e.floats, e.at(block.argument(op.getX()), from), kAlignment);
        e.store(e.mul(values, e.splat(scale)), e.at(block.result(0), e.muli(strip, kWidth)), kAlignment);
      });
    });
    return success();
  };
  return kind;
}

} // namespace weft
