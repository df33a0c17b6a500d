//===- GatherGrad.cpp - Gradient of a table, without atomics on it --------===//
//
// Each block owns every so-manieth row of the table, so that frequent tokens, which
// have numbers close together, are spread out. It reads all indices and lists the
// places of its own rows, in any order; a full list is sorted by row and place. Each
// warp then takes an equal part of the list, however long the runs of a row are, and
// sums runs in registers. What a warp has of a run that began before its part is
// handed to the warp where the run began, which adds such parts in their order.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/Kinds.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <limits>

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;
constexpr int64_t kThreads = 512, kWarps = kThreads / Block::kWarp, kMostParts = 256;
/// A list is worked off when another round of indices might not fit.
constexpr int64_t kList = 8192, kPerThread = 8, kRound = kThreads * kPerThread;
/// Entries whose numbers are on their way at once, with their rows of the table; and
/// inside a run, where no row is read.
constexpr int64_t kUnderWay = 2, kInRun = 8;

class TableGradient {
public:
  TableGradient(GatherGradOp op, int64_t parts, Block &block)
      : op(op), block(block), e(block.e), parts(parts), lanes(e.width),
        rows(cast<RankedTensorType>(op.getDtable().getType()).getDimSize(0)),
        width(cast<RankedTensorType>(op.getDtable().getType()).getNumElements() / rows),
        places(cast<RankedTensorType>(op.getIndex().getType()).getNumElements()) {}
  void run();

private:
  /// What the list says of an entry, and its numbers.
  struct Entry {
    Value isThere, isStart, isEnd, row, part, before;
  };
  /// A warp's sum so far, and whether it holds the run's first part.
  struct Sum {
    Value value, started;
  };
  void start();
  SmallVector<Value> indices(Value from);
  void list(Value from, ValueRange indices);
  void workOff(Value length);
  void sort(Value length);
  void addRuns(Value length);
  Value partOf(Value key);
  Entry entry(Value at, Value length);
  Sum add(const Entry &entry, const Sum &sum);
  Sum addEntries(Value from, Value to, Value length, const Sum &sum);
  Sum addSome(Value from, Value length, const Sum &sum);
  Sum walk(Value length);
  void join(Value length, const Sum &sum);

  Value vectors() { return e.number(width / lanes); }
  Value rowAt(Value at) { return arith::ShRSIOp::create(e.b, e.loc, keyAt(at), e.number(32)); }
  Value keyAt(Value at) { return e.load(e.i64, keyPlace(at), 8); }
  Value keyPlace(Value at) {
    return LLVM::GEPOp::create(e.b, e.loc, e.ptr, e.i64, keys, ArrayRef<LLVM::GEPArg>{at});
  }
  /// This thread's columns of the table's row that is number `row` of this block's.
  Value tablePlace(Value row) {
    return e.at(block.result(0), e.addi(e.muli(e.addi(e.muli(row, parts), item), width), column));
  }
  Value handedPlace(Value warp) {
    return e.at(handed, e.muli(e.addi(e.muli(warp, Block::kWarp), block.lane), lanes));
  }
  Value equal(Value x, Value y) { return e.compare(Predicate::eq, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(e.b, e.loc, x, y); }
  int64_t alignment() const { return lanes == 1 ? 4 : 16; }

  GatherGradOp op;
  Block &block;
  Emitter &e;
  int64_t parts, lanes, rows, width, places;
  Value item, owned;
  Value keys, count, handed;                // shared: row << 32 | place; their number; sums of warps
  Value column, isColumn, first, last, per; // of a walk
};

/// The owned rows hold `init`, or zeros.
void TableGradient::start() {
  auto each = [&](Value from) {
    Value count = e.muli(owned, width / lanes);
    auto loop = scf::ForOp::create(e.b, e.loc, block.thread, count, e.number(kThreads));
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar(), row = e.divi(number, width / lanes);
    column = e.muli(e.remi(number, width / lanes), lanes);
    Value to = tablePlace(row), value = e.constant(e.floats, 0);
    if (from)
      value = e.load(e.floats, e.at(from, e.addi(e.muli(e.addi(e.muli(row, parts), item), width), column)),
                     alignment());
    e.store(value, to, alignment());
  };
  if (!op.getInit())
    return each({});
  Value from = block.argument(op.getInit());
  e.when(LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, from, block.result(0)),
         [&] { each(from); });
}

/// This thread's indices of a round; -1 past the last.
SmallVector<Value> TableGradient::indices(Value from) {
  SmallVector<Value> indices;
  for (int64_t i = 0; i < kPerThread; ++i) {
    Value place = e.addi(from, e.addi(block.thread, i * kThreads));
    Value inside = e.compare(Predicate::slt, place, e.number(places));
    Value index = e.load(e.i32, block.argument(op.getIndex()), e.select(inside, place, e.number(0)));
    indices.push_back(e.select(inside, index, e.constantInt(e.i32, -1)));
  }
  return indices;
}

/// Puts those of the round that are this block's on the list.
void TableGradient::list(Value from, ValueRange indices) {
  Value mine = arith::TruncIOp::create(e.b, e.loc, e.i32, item);
  for (auto [i, index] : llvm::enumerate(indices)) {
    Value inside = e.compare(Predicate::ult, index, e.constantInt(e.i32, rows));
    e.when(e.both(inside, equal(e.remi(index, parts), mine)), [&, i = i, index = index] {
      Value slot = LLVM::AtomicRMWOp::create(e.b, e.loc, LLVM::AtomicBinOp::add, count,
                                             e.constantInt(e.i32, 1), LLVM::AtomicOrdering::monotonic);
      Value place = e.addi(from, e.addi(block.thread, static_cast<int64_t>(i) * kThreads));
      Value row = arith::ShLIOp::create(e.b, e.loc, e.widen(e.divi(index, parts)), e.number(32));
      e.store(either(row, place), keyPlace(e.widen(slot)), 8);
    });
  }
}

/// Bitonic, over the next power of two (Batcher, 1968). Keys differ, so that the order
/// in which they were listed leaves no trace.
void TableGradient::sort(Value length) {
  Value last = e.subi(e.maxi(length, e.number(1)), e.number(1));
  Value steps = e.subi(e.number(64), math::CountLeadingZerosOp::create(e.b, e.loc, last));
  auto powerOf = [&](Value n) -> Value { return arith::ShLIOp::create(e.b, e.loc, e.number(1), n); };
  Value size = powerOf(steps);
  auto share = [&](Value from, Value to, function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(e.b, e.loc, e.addi(block.thread, from), to, e.number(kThreads));
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  };
  share(length, size,
        [&](Value at) { e.store(e.number(std::numeric_limits<int64_t>::max()), keyPlace(at), 8); });
  block.barrier();
  e.loop(e.number(1), e.addi(steps, 1), 1, [&](Value step) {
    e.loop(e.number(1), e.addi(step, 1), 1, [&](Value part) {
      Value distance = powerOf(e.subi(step, part)), below = e.subi(distance, e.number(1));
      share(e.number(0), arith::ShRUIOp::create(e.b, e.loc, size, e.number(1)), [&](Value pair) {
        Value low = e.both(pair, below);
        Value at = e.addi(e.muli(e.subi(pair, low), 2), low), other = e.addi(at, distance);
        Value x = keyAt(at), y = keyAt(other);
        Value rises = equal(e.both(at, powerOf(step)), e.number(0));
        Value least = e.mini(x, y), most = e.maxi(x, y);
        e.store(e.select(rises, least, most), keyPlace(at), 8);
        e.store(e.select(rises, most, least), keyPlace(other), 8);
      });
      block.barrier();
    });
  });
}

/// The numbers at an entry's place.
Value TableGradient::partOf(Value key) {
  Value dy = block.argument(op.getDy()), place = e.both(key, e.number(0xFFFFFFFF));
  return e.load(e.floats, e.at(dy, e.addi(e.muli(place, width), column)),
                e.halves.contains(dy) ? lanes * 2 : lanes * 4);
}

/// Entry `at` of the list, the last of this warp's where there are no more.
TableGradient::Entry TableGradient::entry(Value at, Value length) {
  Entry entry;
  entry.isThere = e.compare(Predicate::slt, at, last);
  at = e.select(entry.isThere, at, e.subi(last, e.number(1)));
  Value key = keyAt(at), end = e.subi(length, e.number(1));
  entry.row = arith::ShRSIOp::create(e.b, e.loc, key, e.number(32));
  Value isFirst = equal(at, e.number(0)), isLast = equal(at, end);
  Value rowBefore = rowAt(e.select(isFirst, at, e.subi(at, e.number(1))));
  Value rowAfter = rowAt(e.select(isLast, at, e.addi(at, 1)));
  entry.isStart = either(isFirst, e.compare(Predicate::ne, rowBefore, entry.row));
  entry.isEnd = either(isLast, e.compare(Predicate::ne, rowAfter, entry.row));
  entry.part = partOf(key);
  entry.before = e.load(e.floats, tablePlace(entry.row), alignment());
  return entry;
}

TableGradient::Sum TableGradient::add(const Entry &entry, const Sum &sum) {
  Value value = e.add(e.select(entry.isStart, entry.before, sum.value), entry.part);
  Value started = either(entry.isStart, sum.started);
  e.when(e.both(e.both(entry.isThere, entry.isEnd), isColumn), [&] {
    e.choose(
        started, [&] { e.store(value, tablePlace(entry.row), alignment()); },
        [&] { e.store(value, handedPlace(block.warp), alignment()); });
  });
  return {e.select(entry.isThere, value, sum.value), e.select(entry.isThere, started, sum.started)};
}

TableGradient::Sum TableGradient::addEntries(Value from, Value to, Value length, const Sum &sum) {
  auto sums = e.loop(from, to, kUnderWay, {sum.value, sum.started},
                     [&](Value i, ValueRange carried) -> SmallVector<Value> {
                       SmallVector<Entry> entries;
                       for (int64_t k = 0; k < kUnderWay; ++k)
                         entries.push_back(entry(e.addi(i, k), length));
                       Sum sum{carried[0], carried[1]};
                       for (const Entry &entry : entries)
                         sum = add(entry, sum);
                       return {sum.value, sum.started};
                     });
  return {sums[0], sums[1]};
}

/// kInRun entries from `from`, as many as there are. Inside a run they are only added
/// up: frequent tokens have runs of thousands.
TableGradient::Sum TableGradient::addSome(Value from, Value length, const Sum &sum) {
  Value end = e.addi(from, kInRun);
  Value inside = e.both(e.compare(Predicate::slt, first, from), e.compare(Predicate::slt, end, last));
  Value before = rowAt(e.select(inside, e.subi(from, e.number(1)), first));
  Value after = rowAt(e.select(inside, end, first));
  auto choice = scf::IfOp::create(e.b, e.loc, TypeRange{e.floats, e.b.getI1Type()},
                                  e.both(inside, equal(before, after)), true);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(choice.thenBlock());
  SmallVector<Value> parts;
  for (int64_t k = 0; k < kInRun; ++k)
    parts.push_back(partOf(keyAt(e.addi(from, k))));
  Value value = sum.value;
  for (Value part : parts)
    value = e.add(value, part);
  scf::YieldOp::create(e.b, e.loc, ValueRange{value, sum.started});
  e.b.setInsertionPointToStart(choice.elseBlock());
  Sum slow = addEntries(from, e.mini(end, last), length, sum);
  scf::YieldOp::create(e.b, e.loc, ValueRange{slow.value, slow.started});
  return {choice.getResult(0), choice.getResult(1)};
}

/// This warp's part of the list; the sum of the run in which it ends.
TableGradient::Sum TableGradient::walk(Value length) {
  Value none = e.constantInt(e.b.getI1Type(), 0);
  auto sums = e.loop(first, last, kInRun, {e.constant(e.floats, 0), none},
                     [&](Value i, ValueRange carried) -> SmallVector<Value> {
                       Sum sum = addSome(i, length, {carried[0], carried[1]});
                       return {sum.value, sum.started};
                     });
  return {sums[0], sums[1]};
}

/// Sums of a run that goes on past this warp's part.
void TableGradient::join(Value length, const Sum &sum) {
  Value some = e.compare(Predicate::slt, first, last), more = e.compare(Predicate::slt, last, length);
  Value zero = e.number(0), isAny = e.both(some, more);
  // Places that are read where nothing goes on are the list's first.
  Value row = rowAt(e.select(isAny, e.subi(last, e.number(1)), zero));
  Value open = e.both(isAny, equal(row, rowAt(e.select(isAny, last, zero))));
  Value no = e.constantInt(e.b.getI1Type(), 0);
  e.when(e.both(open, equal(sum.started, no)),
         [&] { e.store(sum.value, handedPlace(block.warp), alignment()); });
  block.barrier();
  e.when(e.both(e.both(open, sum.started), isColumn), [&] {
    Value yes = e.constantInt(e.b.getI1Type(), 1);
    Value all = e.loop(e.addi(block.warp, 1), e.number(kWarps), 1, {sum.value, yes},
                       [&](Value warp, ValueRange carried) -> SmallVector<Value> {
                         Value at = e.muli(warp, per), inside = e.compare(Predicate::slt, at, length);
                         Value same = equal(rowAt(e.select(inside, at, zero)), row);
                         Value goesOn = e.both(carried[1], e.both(inside, same));
                         Value part = e.load(e.floats, handedPlace(warp), alignment());
                         return {e.select(goesOn, e.add(carried[0], part), carried[0]), goesOn};
                       })[0];
    e.store(all, tablePlace(row), alignment());
  });
  block.barrier();
}

void TableGradient::addRuns(Value length) {
  per = arith::DivUIOp::create(e.b, e.loc, e.addi(length, kWarps - 1), e.number(kWarps));
  first = e.mini(e.muli(block.warp, per), length);
  last = e.mini(e.addi(first, per), length);
  e.loop(e.number(0), vectors(), Block::kWarp, [&](Value start) {
    Value vector = e.addi(start, block.lane);
    isColumn = e.compare(Predicate::slt, vector, vectors());
    column = e.muli(e.select(isColumn, vector, e.number(0)), lanes);
    join(length, walk(length));
  });
}

void TableGradient::workOff(Value length) {
  sort(length);
  addRuns(length);
}

/// Two blocks a multiprocessor: the assembler would take registers for one.
static void keepTwo(Emitter &e) {
  Operation *function = e.b.getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  function->setAttr("nvvm.minctasm", e.b.getI32IntegerAttr(2));
}

void TableGradient::run() {
  constexpr int64_t kKeyBytes = 8;
  keepTwo(e);
  keys = block.dynamic(kList * kKeyBytes);
  count = block.shared(1), handed = block.shared(kThreads * lanes);
  Value leader = equal(block.thread, e.number(0));
  auto startList = [&] { e.when(leader, [&] { e.store(e.constantInt(e.i32, 0), count); }); };
  block.items([&](Value number) {
    item = number;
    owned = e.divi(e.subi(e.number(rows + parts - 1), item), parts);
    start();
    startList();
    block.barrier();
    // The next round's indices are on their way while this one's are looked at.
    auto next = indices(e.number(0));
    e.loop(e.number(0), e.number(places), kRound, next,
           [&](Value round, ValueRange here) -> SmallVector<Value> {
             auto next = indices(e.addi(round, kRound));
             list(round, here);
             block.barrier();
             Value length = e.widen(e.load(e.i32, count));
             Value isEnd = e.compare(Predicate::sge, round, e.number(places - kRound));
             Value isFull = e.compare(Predicate::sgt, length, e.number(kList - kRound));
             block.barrier();
             e.when(either(isEnd, isFull), [&] {
               workOff(length);
               startList();
               block.barrier();
             });
             return next;
           });
  });
}

} // namespace

MaybeKind gatherGradKind(const BareKernel &bare, GatherGradOp op) {
  constexpr int64_t kHalves = 8, kFloats = 4;
  auto table = cast<RankedTensorType>(op.getDtable().getType());
  if (!bare.result(0).isF32() || table.getDimSize(0) > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  int64_t lanes = bare.argument(op.getDy()).isBF16() ? kHalves : kFloats;
  BlockKind kind;
  kind.threads = kThreads;
  kind.width = table.getNumElements() / table.getDimSize(0) % lanes == 0 ? lanes : 1;
  kind.items = std::min(table.getDimSize(0), kMostParts);
  kind.build = [op, parts = kind.items](Block &block) {
    TableGradient(op, parts, block).run();
    return success();
  };
  return kind;
}

} // namespace weft
