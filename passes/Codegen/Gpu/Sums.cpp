//===- Sums.cpp - Sums over axes and norms on the GPU ---------------------===//
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/RowProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"

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

/// Parts of fixed size in f64, one a block; the block that comes last adds them up in order.
MaybeKind normKind(const BareKernel &, NormOp op) {
  constexpr int64_t kThreads = 512, kSteps = 8, kMostParts = 1024;
  int64_t count = cast<RankedTensorType>(op.getX().getType()).getNumElements();
  BlockKind kind;
  kind.threads = kThreads;
  kind.items = std::clamp<int64_t>(count / (kThreads * kSteps), 1, kMostParts);
  kind.build = [op, count, parts = kind.items](Block &block) mutable {
    Emitter &e = block.e;
    Type f64 = e.b.getF64Type();
    Value x = block.argument(op.getX()), sums = block.global(e.b.getF32Type(), 2 * kMostParts);
    auto partAt = [&](Value part) -> Value {
      return LLVM::GEPOp::create(e.b, e.loc, e.ptr, f64, sums, ArrayRef<LLVM::GEPArg>{part});
    };
    Value memory = block.shared(2 * kThreads);
    // Sums f64 of all threads in order, in thread 0.
    auto gathered = [&](Value mine) -> Value {
      auto slot = [&](Value at) -> Value {
        return LLVM::GEPOp::create(e.b, e.loc, e.ptr, f64, memory, ArrayRef<LLVM::GEPArg>{at});
      };
      for (int64_t half = kThreads / 2; half > 0; half /= 2) {
        block.barrier();
        e.store(mine, slot(block.thread), 8);
        block.barrier();
        // Threads past the half read their own again, which nobody asks for.
        Value other = e.select(e.compare(Predicate::slt, block.thread, e.number(half)),
                               e.addi(block.thread, half), block.thread);
        mine = e.add(mine, e.load(f64, slot(other), 8));
      }
      return mine;
    };
    Value leader = e.compare(Predicate::eq, block.thread, e.number(0));
    auto sumOver = [&](Value from, Value to, function_ref<Value(Value)> term) -> Value {
      auto loop = scf::ForOp::create(e.b, e.loc, e.addi(from, block.thread), to, e.number(kThreads),
                                     ValueRange{e.constant(f64, 0)});
      {
        OpBuilder::InsertionGuard guard(e.b);
        e.b.setInsertionPointToStart(loop.getBody());
        Value sum = e.add(loop.getRegionIterArgs()[0], term(loop.getInductionVar()));
        scf::YieldOp::create(e.b, e.loc, sum);
      }
      return gathered(loop.getResult(0));
    };
    block.items([&](Value item) {
      auto [from, to] = e.range(item, count, parts);
      Value sum = sumOver(from, to, [&](Value i) -> Value {
        Value wide = arith::ExtFOp::create(e.b, e.loc, f64, e.load(e.f32, x, i));
        return e.mul(wide, wide);
      });
      e.when(leader, [&] { e.store(sum, partAt(item), 8); });
    });
    block.last([&] {
      Value sum =
          sumOver(e.number(0), e.number(parts), [&](Value part) { return e.load(f64, partAt(part), 8); });
      e.when(leader, [&] {
        // The root of the machine's own precision: this one number decides every step.
        Value root = math::SqrtOp::create(e.b, e.loc, sum);
        Value norm = arith::TruncFOp::create(e.b, e.loc, e.f32, root);
        if (op.getFactor())
          norm = e.mul(norm, e.load(e.f32, block.argument(op.getFactor())));
        e.store(norm, block.result(0));
      });
    });
    return success();
  };
  return kind;
}

} // namespace weft
