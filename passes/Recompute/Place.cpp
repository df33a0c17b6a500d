//===- Place.cpp - What is made again, before its first reader ------------===//

#include "passes/Recompute/Recompute.h"

using namespace mlir;
using namespace weft;

/// `value` as `point`, after the loss, can read it.
Value Recompute::there(Value value, Operation *point) {
  if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    Value inner = there(reshape.getX(), point);
    if (inner == reshape.getX())
      return value;
    OpBuilder builder(point);
    return ReshapeOp::create(builder, reshape.getLoc(), reshape.getType(), inner);
  }
  auto launch = value.getDefiningOp<LaunchOp>();
  if (!launch || !launch->isBeforeInBlock(loss) || isSaved(value))
    return value;
  return makeAgain(cast<OpResult>(value), point);
}

/// A launch of `cut` before `point`.
LaunchOp Recompute::launchOf(LaunchOp launch, const Slice &cut, ValueRange operands, Operation *point) {
  KernelOp kernel = work.kernelOf(launch);
  std::string name = launch.getKernel().str();
  if (!cut.whole) {
    OpBuilder outer(kernel);
    name = names.nameOf(cutKernel(outer, launch, kernel, cut), labelOf(kernel));
  }
  SmallVector<Type> types;
  for (unsigned i = 0; i < launch.getNumResults(); ++i)
    if (cut.whole || llvm::is_contained(cut.results, i))
      types.push_back(launch.getResult(i).getType());
  OpBuilder builder(point);
  return LaunchOp::create(builder, launch.getLoc(), types, FlatSymbolRefAttr::get(builder.getContext(), name),
                          operands);
}

/// Puts before `point` what makes `value`, with those given up that the same launch
/// makes and `point` reads first too.
Value Recompute::makeAgain(OpResult value, Operation *point) {
  bool givenUp = saved.contains(value);
  llvm::DenseMap<Value, Value> &again = givenUp ? made : passing;
  if (!givenUp && passingFor != point) {
    passing.clear();
    passingFor = point;
  }
  if (Value known = again.lookup(value))
    return known;
  auto launch = cast<LaunchOp>(value.getOwner());
  SmallVector<unsigned> results;
  bool ahead = givenUp && saved.find(value)->second.reader != point; // of its own first reader
  for (OpResult result : launch->getResults()) {
    auto found = saved.find(result);
    bool together = givenUp && !ahead && found != saved.end() && found->second.again &&
                    found->second.reader == point && !made.contains(result);
    if (result == value || together)
      results.push_back(result.getResultNumber());
  }
  Slice cut = slice(launch, results);
  if (givenUp)
    spender = &saved.find(value)->second;
  spender->spent += ownPrice(launch, cut);
  SmallVector<Value> operands;
  for (Value operand : cut.operands) {
    Saved *outer = spender;
    operands.push_back(there(operand, point));
    spender = outer;
  }
  LaunchOp clone = launchOf(launch, cut, operands, point);
  clone->setAttr("weft.again", UnitAttr::get(clone.getContext()));
  for (auto [index, result] : llvm::enumerate(results))
    again[launch.getResult(result)] = clone.getResult(cut.whole ? result : static_cast<unsigned>(index));
  return again.lookup(value);
}

void Recompute::place() {
  for (Operation *op = loss->getNextNode(); op; op = op->getNextNode())
    if (isa<LaunchOp>(op))
      for (OpOperand &operand : op->getOpOperands()) {
        auto found = saved.find(origin(operand.get()));
        if (found != saved.end() && found->second.again)
          operand.set(there(operand.get(), op));
      }
}

/// Forgets the values that were saved: some of them go.
void Recompute::prune() {
  saved.clear();
  for (Operation *op = loss->getPrevNode(), *next = nullptr; op; op = next) {
    next = op->getPrevNode();
    auto launch = dyn_cast<LaunchOp>(op);
    if (isa<ReshapeOp>(op) && op->use_empty())
      op->erase();
    if (!launch)
      continue;
    SmallVector<unsigned> used;
    for (OpResult result : launch->getResults())
      if (!result.use_empty())
        used.push_back(result.getResultNumber());
    if (used.size() == launch.getNumResults() ||
        (!used.empty() && work.kindOf(launch) != KernelWork::Kind::Rows))
      continue;
    if (!used.empty()) {
      Slice cut = sliceOf(launch, work.kernelOf(launch), true, used, [](Value) { return false; });
      LaunchOp less = launchOf(launch, cut, cut.operands, launch);
      for (auto [index, result] : llvm::enumerate(used))
        launch.getResult(result).replaceAllUsesWith(less.getResult(static_cast<unsigned>(index)));
    }
    launch.erase();
  }
}
