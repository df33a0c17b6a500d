//===- GatherGrad.cpp - Gradient of a table, without atomics --------------===//
//
// Each block owns some rows of the table. It reads all indices in order and lists
// the places of its own, in order. A full list is sorted by row, stable, and then
// each row's run is summed in registers, in order of place, and added to the row.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/Kinds.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;
constexpr int64_t kThreads = 256, kMostBlocks = 528;
/// A list is worked off when another round of indices might not fit.
constexpr int64_t kList = 2048, kPerThread = 4, kRound = kThreads * kPerThread;

class TableGradient {
public:
  TableGradient(GatherGradOp op, int64_t parts, Block &block)
      : op(op), block(block), e(block.e), parts(parts),
        rows(cast<RankedTensorType>(op.getDtable().getType()).getDimSize(0)),
        width(cast<RankedTensorType>(op.getDtable().getType()).getNumElements() / rows),
        places(cast<RankedTensorType>(op.getIndex().getType()).getNumElements()) {}
  void run();

private:
  void start();
  /// Adds this round's places to the list; its new length.
  Value listed(Value from, Value length);
  void workOff(Value length);
  void sort(Value length);
  void addRuns(Value length);

  GatherGradOp op;
  Block &block;
  Emitter &e;
  int64_t parts, rows, width, places;
  Value first, owned;
  Value listRows, listPlaces, sortedRows, sortedPlaces, counts; // shared
};

/// The owned rows hold `init`, or zeros.
void TableGradient::start() {
  Value base = e.muli(first, width), count = e.muli(owned, width);
  Value to = e.at(block.result(0), base);
  auto copy = [&](function_ref<Value(Value)> value) {
    auto loop = scf::ForOp::create(e.b, e.loc, block.thread, count, e.number(kThreads));
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    e.store(value(loop.getInductionVar()), to, loop.getInductionVar());
  };
  if (!op.getInit())
    return copy([&](Value) { return e.constant(e.f32, 0); });
  Value from = e.at(block.argument(op.getInit()), base);
  e.when(LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, from, to),
         [&] { copy([&](Value i) { return e.load(e.f32, from, i); }); });
}

Value TableGradient::listed(Value from, Value length) {
  Value zero = e.constantInt(e.i32, 0), one = e.constantInt(e.i32, 1);
  // Thread t looks at kPerThread places side by side, so that threads are in order of place.
  SmallVector<Value> rowsHere, placesHere, mine;
  Value count = zero;
  for (int64_t i = 0; i < kPerThread; ++i) {
    Value place = e.addi(from, e.addi(e.muli(block.thread, kPerThread), i));
    Value inside = e.compare(Predicate::slt, place, e.number(places));
    Value row =
        e.subi(e.loadIndex(block.argument(op.getIndex()), e.select(inside, place, e.number(0))), first);
    Value own = e.both(inside, e.compare(Predicate::ult, row, owned));
    rowsHere.push_back(arith::TruncIOp::create(e.b, e.loc, e.i32, row));
    placesHere.push_back(arith::TruncIOp::create(e.b, e.loc, e.i32, place));
    mine.push_back(own);
    count = e.addi(count, e.select(own, one, zero));
  }
  // Places before this thread's: in its warp by scan, in the warps before by their counts.
  Value before = count;
  for (int64_t step = 1; step < Block::kWarp; step *= 2) {
    Value other = block.fromBelow(before, step);
    Value has = e.compare(Predicate::sge, block.lane, e.number(step));
    before = e.addi(before, e.select(has, other, zero));
  }
  e.when(e.compare(Predicate::eq, block.lane, e.number(Block::kWarp - 1)),
         [&] { e.store(before, counts, block.warp); });
  block.barrier();
  Value offset = e.subi(before, count), all = zero;
  for (int64_t warp = 0; warp < kThreads / Block::kWarp; ++warp) {
    Value there = e.load(e.i32, counts, e.number(warp));
    Value earlier = e.compare(Predicate::slt, e.number(warp), block.warp);
    offset = e.addi(offset, e.select(earlier, there, zero));
    all = e.addi(all, there);
  }
  Value slot = e.addi(length, e.widen(offset));
  for (int64_t i = 0; i < kPerThread; ++i) {
    e.when(mine[i], [&] {
      e.store(rowsHere[i], listRows, slot);
      e.store(placesHere[i], listPlaces, slot);
    });
    slot = e.addi(slot, e.select(mine[i], e.number(1), e.number(0)));
  }
  block.barrier();
  return e.addi(length, e.widen(all));
}

/// Each entry's new slot is the count of entries that come before it.
void TableGradient::sort(Value length) {
  auto loop = scf::ForOp::create(e.b, e.loc, block.thread, length, e.number(kThreads));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value mine = loop.getInductionVar(), row = e.load(e.i32, listRows, mine);
  Value rank =
      e.loop(e.number(0), length, 1, {e.number(0)}, [&](Value i, ValueRange carried) -> SmallVector<Value> {
        Value other = e.load(e.i32, listRows, i);
        Value less = e.compare(Predicate::slt, other, row);
        Value tied = e.both(e.compare(Predicate::eq, other, row), e.compare(Predicate::slt, i, mine));
        Value before = arith::OrIOp::create(e.b, e.loc, less, tied);
        return {e.addi(carried[0], e.select(before, e.number(1), e.number(0)))};
      })[0];
  e.store(row, sortedRows, rank);
  e.store(e.load(e.i32, listPlaces, mine), sortedPlaces, rank);
}

void TableGradient::addRuns(Value length) {
  Value dy = block.argument(op.getDy()), table = e.at(block.result(0), e.muli(first, width));
  auto columns = scf::ForOp::create(e.b, e.loc, block.thread, e.number(width), e.number(kThreads));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(columns.getBody());
  Value column = columns.getInductionVar();
  auto placeOf = [&](Value row) { return e.addi(e.muli(e.widen(row), width), column); };
  // Carried: the row that is summed, and its sum so far.
  Value none = e.constantInt(e.i32, -1);
  auto flush = [&](Value row, Value sum) {
    e.when(e.compare(Predicate::sge, row, e.constantInt(e.i32, 0)), [&] {
      Value at = placeOf(row);
      e.store(e.add(e.load(e.f32, table, at), sum), table, at);
    });
  };
  auto sums = e.loop(e.number(0), length, 1, {none, e.constant(e.f32, 0)},
                     [&](Value i, ValueRange carried) -> SmallVector<Value> {
                       Value row = e.load(e.i32, sortedRows, i);
                       Value part = e.load(e.f32, dy, placeOf(e.load(e.i32, sortedPlaces, i)));
                       Value same = e.compare(Predicate::eq, row, carried[0]);
                       e.choose(
                           same, [] {}, [&] { flush(carried[0], carried[1]); });
                       Value sum = e.add(e.select(same, carried[1], e.constant(e.f32, 0)), part);
                       return {row, sum};
                     });
  flush(sums[0], sums[1]);
}

void TableGradient::workOff(Value length) {
  sort(length);
  block.barrier();
  addRuns(length);
  block.barrier();
}

void TableGradient::run() {
  listRows = block.shared(kList), listPlaces = block.shared(kList);
  sortedRows = block.shared(kList), sortedPlaces = block.shared(kList);
  counts = block.shared(Block::kWarp);
  block.items([&](Value item) {
    auto [from, to] = e.range(item, rows, parts);
    first = from, owned = e.subi(to, from);
    start();
    block.barrier();
    Value left = e.loop(e.number(0), e.number(places), kRound, {e.number(0)},
                        [&](Value round, ValueRange carried) -> SmallVector<Value> {
                          Value length = listed(round, carried[0]);
                          Value full = e.compare(Predicate::sgt, length, e.number(kList - kRound));
                          e.when(full, [&] { workOff(length); });
                          return {e.select(full, e.number(0), length)};
                        })[0];
    workOff(left);
  });
}

} // namespace

MaybeKind gatherGradKind(const BareKernel &bare, GatherGradOp op) {
  if (!bare.result(0).isF32())
    return std::nullopt;
  BlockKind kind;
  kind.threads = kThreads;
  kind.items = std::min(cast<RankedTensorType>(op.getDtable().getType()).getDimSize(0), kMostBlocks);
  kind.build = [op, parts = kind.items](Block &block) {
    TableGradient(op, parts, block).run();
    return success();
  };
  return kind;
}

} // namespace weft
