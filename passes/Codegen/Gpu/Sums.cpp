//===- Sums.cpp - Sums over axes and norms on the GPU ---------------------===//
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/RowProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace weft {
namespace {

using Predicate = arith::CmpIPredicate;

/// Axes of a sum. Lanes run along the last kept axis where it is the source's
/// last too; else a whole block, or all of them, sums one number.
struct SumAxes {
  Axes source, kept, summed;
  bool columns = false;

  explicit SumAxes(SumToOp op) : source(allAxes(op.getX().getType())), kept(allAxes(op.getType())) {
    for (const Axis &axis : source)
      if (!llvm::is_contained(kept, axis))
        summed.push_back(axis);
    columns = summed.empty() || (!kept.empty() && kept.back() == source.back());
  }

  Value offset(Emitter &e, Value index, ArrayRef<Axis> axes) const {
    Value offset = e.number(0);
    for (const Axis &axis : axes) {
      Value at = e.remi(e.divi(index, strideOf(axes, axis.name)), axis.size);
      offset = e.addi(offset, e.muli(at, strideOf(source, axis.name)));
    }
    return offset;
  }
};

constexpr int64_t kColumns = 32, kGroups = 32;

/// 32 results a block, a lane each; warps share the summed places, then add up in order.
void sumColumns(SumToOp op, const SumAxes &axes, Block &block) {
  Emitter &e = block.e;
  int64_t count = countOf(axes.kept), parts = countOf(axes.summed);
  Value x = block.argument(op.getX()), memory = block.shared(kGroups * kColumns);
  block.items([&](Value item) {
    Value column = e.addi(e.muli(item, kColumns), block.lane);
    Value there = e.compare(Predicate::slt, column, e.number(count));
    Value start = axes.offset(e, e.select(there, column, e.number(count - 1)), axes.kept);
    auto loop = scf::ForOp::create(e.b, e.loc, block.warp, e.number(parts), e.number(kGroups),
                                   ValueRange{e.constant(e.f32, 0)});
    {
      OpBuilder::InsertionGuard guard(e.b);
      e.b.setInsertionPointToStart(loop.getBody());
      Value place = e.addi(start, axes.offset(e, loop.getInductionVar(), axes.summed));
      Value sum = e.add(loop.getRegionIterArgs()[0], e.load(e.f32, x, place));
      scf::YieldOp::create(e.b, e.loc, sum);
    }
    block.barrier();
    e.store(loop.getResult(0), memory, block.thread);
    block.barrier();
    Value first = e.compare(Predicate::eq, block.warp, e.number(0));
    e.when(e.both(first, there), [&] {
      Value sum = op.getInit() ? e.load(e.f32, block.argument(op.getInit()), column) : e.constant(e.f32, 0);
      for (int64_t group = 0; group < kGroups; ++group)
        sum = e.add(sum, e.load(e.f32, memory, e.addi(block.lane, group * kColumns)));
      e.store(sum, block.result(0), column);
    });
  });
}

/// One result a block: threads share the summed places, several under way at a time.
void sumRows(SumToOp op, const SumAxes &axes, Block &block) {
  constexpr int64_t kUnderWay = 8;
  Emitter &e = block.e;
  Value x = block.argument(op.getX());
  int64_t count = countOf(axes.summed), step = block.threads * kUnderWay;
  // Those that stand last need no taking apart.
  bool inOrder = ArrayRef(axes.source).take_back(axes.summed.size()) == ArrayRef(axes.summed);
  block.items([&](Value item) {
    Value start = axes.offset(e, item, axes.kept);
    auto placeOf = [&](Value i) { return e.addi(start, inOrder ? i : axes.offset(e, i, axes.summed)); };
    SmallVector<Value> none(kUnderWay, e.constant(e.f32, 0));
    auto whole =
        scf::ForOp::create(e.b, e.loc, block.thread, e.number(count / step * step), e.number(step), none);
    {
      OpBuilder::InsertionGuard guard(e.b);
      e.b.setInsertionPointToStart(whole.getBody());
      SmallVector<Value> sums;
      for (int64_t part = 0; part < kUnderWay; ++part) {
        Value place = placeOf(e.addi(whole.getInductionVar(), part * block.threads));
        sums.push_back(
            e.add(whole.getRegionIterArgs()[static_cast<unsigned>(part)], e.load(e.f32, x, place)));
      }
      scf::YieldOp::create(e.b, e.loc, sums);
    }
    Value before = whole.getResult(0);
    for (Value part : whole.getResults().drop_front())
      before = e.add(before, part);
    auto rest = scf::ForOp::create(e.b, e.loc, e.addi(block.thread, count / step * step), e.number(count),
                                   e.number(block.threads), ValueRange{before});
    {
      OpBuilder::InsertionGuard guard(e.b);
      e.b.setInsertionPointToStart(rest.getBody());
      Value place = placeOf(rest.getInductionVar());
      scf::YieldOp::create(e.b, e.loc, e.add(rest.getRegionIterArgs()[0], e.load(e.f32, x, place)));
    }
    Value sum = block.overBlock(rest.getResult(0));
    e.when(e.compare(Predicate::eq, block.thread, e.number(0)), [&] {
      if (op.getInit())
        sum = e.add(e.load(e.f32, block.argument(op.getInit()), item), sum);
      e.store(sum, block.result(0), item);
    });
  });
}

} // namespace

MaybeKind sumToKind(const BareKernel &, SumToOp op) {
  SumAxes axes(op);
  BlockKind kind;
  int64_t kept = countOf(axes.kept);
  kind.threads = axes.columns ? kColumns * kGroups : countOf(axes.summed) > 4096 ? 1024 : 128;
  kind.items = axes.columns ? (kept + kColumns - 1) / kColumns : kept;
  kind.build = [op, axes](Block &block) mutable {
    axes.columns ? sumColumns(op, axes, block) : sumRows(op, axes, block);
    return success();
  };
  return kind;
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

namespace {

/// Sums of squares in f64, in an order that the number of blocks does not change.
class SquareSum {
public:
  SquareSum(NormOp op, int64_t parts, Block &block)
      : op(op), parts(parts), count(cast<RankedTensorType>(op.getX().getType()).getNumElements()),
        block(block), e(block.e), f64(e.b.getF64Type()), x(block.argument(op.getX())) {}
  void run();

  static constexpr int64_t kThreads = 512, kLanes = 4, kUnderWay = 4;

private:
  Value doubleAt(Value base, Value at) {
    return LLVM::GEPOp::create(e.b, e.loc, e.ptr, f64, base, ArrayRef<LLVM::GEPArg>{at});
  }
  Value gathered(Value mine);
  Value loop(Value from, Value to, int64_t step, Value start, function_ref<Value(Value, Value)> body);
  Value squares(Value vector, Value sums);
  Value rest(Value item);
  Value partOf(Value item);
  void finish();

  NormOp op;
  int64_t parts, count;
  Block &block;
  Emitter &e;
  Type f64;
  Value x, sums, memory, leader;
};

/// Sums of all threads in order, in thread 0.
Value SquareSum::gathered(Value mine) {
  for (int64_t half = kThreads / 2; half > 0; half /= 2) {
    block.barrier();
    e.store(mine, doubleAt(memory, block.thread), 8);
    block.barrier();
    // Threads past the half read their own again, which nobody asks for.
    Value other = e.select(e.compare(Predicate::slt, block.thread, e.number(half)),
                           e.addi(block.thread, half), block.thread);
    mine = e.add(mine, e.load(f64, doubleAt(memory, other), 8));
  }
  return mine;
}

Value SquareSum::loop(Value from, Value to, int64_t step, Value start,
                      function_ref<Value(Value, Value)> body) {
  auto op = scf::ForOp::create(e.b, e.loc, e.addi(from, block.thread), to, e.number(step), start);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(op.getBody());
  scf::YieldOp::create(e.b, e.loc, body(op.getInductionVar(), op.getRegionIterArgs()[0]));
  return op.getResult(0);
}

/// Adds the squares of a vector of numbers, lane by lane.
Value SquareSum::squares(Value numbers, Value sums) {
  Value wide = arith::ExtFOp::create(e.b, e.loc, sums.getType(), numbers);
  return e.add(sums, e.mul(wide, wide));
}

/// Numbers past the last whole vector, for the last part.
Value SquareSum::rest(Value item) {
  Value at = e.addi(block.thread, count / kLanes * kLanes);
  Value isLast = e.compare(Predicate::eq, item, e.number(parts - 1));
  Value there = e.both(isLast, e.compare(Predicate::slt, at, e.number(count)));
  Value number = e.load(e.f32, x, e.select(there, at, e.number(0)));
  return e.select(there, squares(number, e.constant(f64, 0)), e.constant(f64, 0));
}

/// One part's sum, in thread 0: vectors, several under way at a time.
Value SquareSum::partOf(Value item) {
  constexpr int64_t kStep = kThreads * kUnderWay;
  auto load = [&](Value vector) { return e.load(e.floats, e.at(x, e.muli(vector, kLanes)), 16); };
  // Parts of one size, whose places need no division.
  int64_t vectors = count / kLanes, size = (vectors + parts - 1) / parts;
  auto upTo = [&](Value at) {
    return e.select(e.compare(Predicate::slt, at, e.number(vectors)), at, e.number(vectors));
  };
  Value start = e.muli(item, size), from = upTo(start), to = upTo(e.addi(start, size));
  Value whole = e.addi(from, e.muli(e.divi(e.subi(to, from), kStep), kStep));
  Value none = e.constant(VectorType::get({kLanes}, f64), 0);
  Value lanes = loop(from, whole, kStep, none, [&](Value vector, Value sums) {
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < kUnderWay; ++i)
      numbers.push_back(load(e.addi(vector, i * kThreads)));
    for (Value number : numbers)
      sums = squares(number, sums);
    return sums;
  });
  lanes =
      loop(whole, to, kThreads, lanes, [&](Value vector, Value sums) { return squares(load(vector), sums); });
  Value sum = rest(item);
  for (int64_t lane = 0; lane < kLanes; ++lane)
    sum = e.add(sum, vector::ExtractOp::create(e.b, e.loc, lanes, lane));
  return gathered(sum);
}

void SquareSum::finish() {
  auto add = [&](Value part, Value sum) { return e.add(sum, e.load(f64, doubleAt(sums, part), 8)); };
  Value sum = gathered(loop(e.number(0), e.number(parts), kThreads, e.constant(f64, 0), add));
  e.when(leader, [&] {
    // The root of the machine's own precision: this one number decides every step.
    Value root = math::SqrtOp::create(e.b, e.loc, sum);
    Value norm = arith::TruncFOp::create(e.b, e.loc, e.f32, root);
    if (op.getFactor())
      norm = e.mul(norm, e.load(e.f32, block.argument(op.getFactor())));
    e.store(norm, block.result(0));
  });
}

void SquareSum::run() {
  sums = block.global(e.f32, 2 * parts), memory = block.shared(2 * kThreads);
  leader = e.compare(Predicate::eq, block.thread, e.number(0));
  block.items([&](Value item) {
    Value sum = partOf(item);
    e.when(leader, [&] { e.store(sum, doubleAt(sums, item), 8); });
  });
  block.last([&] { finish(); });
}

} // namespace

/// Parts of fixed size, one a block; the block that comes last adds them up in order.
MaybeKind normKind(const BareKernel &, NormOp op) {
  constexpr int64_t kSteps = 16, kMostParts = 12 * 132; // 12 for each multiprocessor of an H200
  int64_t count = cast<RankedTensorType>(op.getX().getType()).getNumElements();
  BlockKind kind;
  kind.threads = SquareSum::kThreads;
  kind.width = SquareSum::kLanes;
  kind.items = std::clamp<int64_t>(count / (SquareSum::kThreads * kSteps), 1, kMostParts);
  kind.build = [op, parts = kind.items](Block &block) {
    SquareSum(op, parts, block).run();
    return success();
  };
  return kind;
}

} // namespace weft
