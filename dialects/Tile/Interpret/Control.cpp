//===- Control.cpp - One operation; order of operations -------------------===//

#include "dialects/Tile/Interpret/State.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "absl/strings/str_cat.h"

using namespace mlir;

namespace weft::tile {

void Cta::enter(Warpgroup &w, Block &block) {
  Frame frame;
  frame.block = &block;
  frame.next = block.begin();
  w.frames.push_back(frame);
}

void Cta::move(Warpgroup &w, ValueRange from, ValueRange to) {
  // Through copies: a loop may hand its values on in another order.
  llvm::SmallVector<Value> values;
  for (mlir::Value value : from)
    values.push_back(at(w, value));
  for (auto [value, target] : llvm::zip(values, to))
    at(w, target) = value;
}

absl::Status Cta::step(Warpgroup &w) {
  ++w.operations;
  Frame &frame = w.frames.back();
  Operation *op = &*frame.next;
  ++frame.next;
  return perform(w, op);
}

absl::Status Cta::perform(Warpgroup &w, Operation *op) {
  if (isa<TileDialect>(op->getDialect()))
    return performTile(w, op);
  if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return performScalar(w, op);
  if (isa<scf::ForOp>(op))
    return startFor(w, op);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    Region &region = integer(w, branch.getCondition()) ? branch.getThenRegion() : branch.getElseRegion();
    if (!region.empty())
      enter(w, region.front());
    return absl::OkStatus();
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    move(w, loop.getInits(), loop.getBeforeArguments());
    enter(w, loop.getBefore().front());
    return absl::OkStatus();
  }
  if (isa<scf::YieldOp, scf::ConditionOp>(op))
    return endBlock(w, op);
  return absl::UnimplementedError(
      absl::StrCat("the tile interpreter gives '", op->getName().getStringRef().str(), "' no meaning"));
}

absl::Status Cta::performTile(Warpgroup &w, Operation *op) {
  if (isa<AllocOp, AllocBarriersOp, AllocCellsOp>(op))
    return absl::OkStatus();
  if (isa<StageOp, SliceOp, PanelOp, HankelOp>(op))
    return performTileRef(w, op);
  if (isa<InitBarrierOp, FenceInitOp, ExpectOp, ArriveOp, WaitOp, SyncOp, SyncArriveOp, FenceAsyncOp>(op))
    return performBarrier(w, op);
  if (isa<FenceProductsOp, ProductOp, CommitProductsOp, WaitProductsOp, ProductSyncOp>(op))
    return performProduct(w, op);
  if (isa<Exp2Op>(op))
    return performScalar(w, op);
  if (auto map = dyn_cast<MapOp>(op))
    return performMap(w, map);
  if (isa<ReduceOp, QuadOp, CastOp, ColumnsOp, ZeroOp, SplatOp>(op))
    return performFragment(w, op);
  if (auto next = dyn_cast<NextItemOp>(op))
    return nextItem(w, next);
  if (auto write = dyn_cast<WriteOp>(op))
    return writeCell(w, write);
  if (auto read = dyn_cast<ReadOp>(op))
    return readCell(w, read);
  if (isa<CtaOp>(op)) {
    at(w, op->getResult(0)).integer = number;
  } else if (isa<GridSizeOp>(op)) {
    at(w, op->getResult(0)).integer = schedule.ctas;
  } else if (isa<WarpgroupOp>(op)) {
    at(w, op->getResult(0)).integer = static_cast<int64_t>(w.index);
  } else if (auto elect = dyn_cast<ElectOp>(op)) {
    if (elect.getCta() && w.index != 0)
      return absl::OkStatus();
    w.outside.push_back(w.clock);
    ++w.electNumber;
    enter(w, elect.getBody().front());
  } else if (auto roles = dyn_cast<SpecializeOp>(op)) {
    enter(w, w.index == 0 ? roles.getProducer().front() : roles.getConsumers().front());
  } else if (isa<EndOp>(op)) {
    return isa<ElectOp>(op->getParentOp()) ? endElect(w) : (w.frames.pop_back(), absl::OkStatus());
  } else if (isa<ReturnOp>(op)) {
    w.waits = Waits::Done;
  } else {
    return performMemory(w, op);
  }
  return absl::OkStatus();
}

/// What the thread waited for the others have not waited for.
absl::Status Cta::endElect(Warpgroup &w) {
  w.frames.pop_back();
  w.clock = std::move(w.outside.back());
  w.outside.pop_back();
  return absl::OkStatus();
}

absl::Status Cta::startFor(Warpgroup &w, Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  int64_t first = integer(w, loop.getLowerBound()), end = integer(w, loop.getUpperBound()),
          step = integer(w, loop.getStep());
  if (step <= 0)
    return fault(kDeadlock, op, absl::StrCat("the loop's step is ", step));
  if (first >= end) {
    move(w, loop.getInitArgs(), loop.getResults());
    return absl::OkStatus();
  }
  move(w, loop.getInitArgs(), loop.getRegionIterArgs());
  at(w, loop.getInductionVar()).integer = first;
  enter(w, *loop.getBody());
  Frame &frame = w.frames.back();
  frame.counter = first, frame.end = end, frame.step = step;
  return absl::OkStatus();
}

absl::Status Cta::endBlock(Warpgroup &w, Operation *op) {
  Operation *parent = op->getParentOp();
  Frame &frame = w.frames.back();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    frame.counter += frame.step;
    bool again = frame.counter < frame.end;
    move(w, op->getOperands(), again ? ValueRange(loop.getRegionIterArgs()) : ValueRange(loop.getResults()));
    if (again) {
      at(w, loop.getInductionVar()).integer = frame.counter;
      frame.next = frame.block->begin();
    } else {
      w.frames.pop_back();
    }
  } else if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
    auto loop = cast<scf::WhileOp>(parent);
    bool again = integer(w, condition.getCondition()) != 0;
    move(w, condition.getArgs(),
         again ? ValueRange(loop.getAfterArguments()) : ValueRange(loop.getResults()));
    w.frames.pop_back();
    if (again)
      enter(w, loop.getAfter().front());
  } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    move(w, op->getOperands(), loop.getBeforeArguments());
    w.frames.pop_back();
    enter(w, loop.getBefore().front());
  } else {
    move(w, op->getOperands(), parent->getResults());
    w.frames.pop_back();
  }
  return absl::OkStatus();
}

} // namespace weft::tile
