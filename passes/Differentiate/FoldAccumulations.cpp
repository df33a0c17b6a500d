//===- FoldAccumulations.cpp - Sums of products in place ------------------===//
#include "passes/Differentiate/Passes.h"
#include "passes/Differentiate/Programs.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FOLDACCUMULATIONS
#include "passes/Differentiate/Passes.h.inc"

namespace {

/// An add of two values of one type.
bool isPlainAdd(Operation *op) {
  auto add = dyn_cast_or_null<BinaryOp>(op);
  return add && add.getFn() == BinaryFn::Add && add.getX().getType() == add.getY().getType();
}

bool canAccumulate(Value value, bool ontoState) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse())
    return false;
  if (auto contract = dyn_cast<ContractOp>(op))
    return !contract.getInit();
  if (auto gather = dyn_cast<GatherGradOp>(op))
    return !gather.getInit();
  if (auto head = dyn_cast<LossHeadGradOp>(op))
    return value == head.getDtable() && !head.getInit();
  // In the middle of a program a sum fuses better with its surroundings.
  if (auto sum = dyn_cast<SumToOp>(op))
    return ontoState && !sum.getInit();
  return false;
}

void setInit(Operation *op, Value init) {
  if (auto contract = dyn_cast<ContractOp>(op))
    contract.getInitMutable().assign(init);
  else if (auto gather = dyn_cast<GatherGradOp>(op))
    gather.getInitMutable().assign(init);
  else if (auto head = dyn_cast<LossHeadGradOp>(op))
    head.getInitMutable().assign(init);
  else
    cast<SumToOp>(op).getInitMutable().assign(init);
}

/// Terms of the sum whose last add is `root`, left to right, and its adds.
void collect(BinaryOp root, SmallVector<Value> &terms, SmallVector<Operation *> &adds) {
  adds.push_back(root);
  for (Value operand : {root.getX(), root.getY()}) {
    auto inner = operand.getDefiningOp<BinaryOp>();
    if (inner && isPlainAdd(inner) && operand.hasOneUse())
      collect(inner, terms, adds);
    else
      terms.push_back(operand);
  }
}

bool isGradientRead(Value value, ModuleOp module) {
  auto get = value.getDefiningOp<GetOp>();
  auto state = get ? module.lookupSymbol<StateOp>(get.getState()) : StateOp();
  return state && state.getRole() == Role::Gradient && value.hasOneUse();
}

/// Takes the first term out of `rest` that is there when `product` starts, or null.
Value takeEarlier(SmallVector<Value> &rest, Value product) {
  auto *found = llvm::find_if(rest, [&](Value term) {
    Operation *op = term.getDefiningOp();
    return !op || op->isBeforeInBlock(product.getDefiningOp());
  });
  if (found == rest.end())
    return {};
  Value term = *found;
  rest.erase(found);
  return term;
}

/// Rewrites the sum of `root` as a chain of inits and then adds.
void fold(BinaryOp root, ModuleOp module, bool residuals) {
  SmallVector<Value> terms, chain, rest;
  SmallVector<Operation *> adds;
  collect(root, terms, adds);
  auto *old = llvm::find_if(terms, [&](Value term) { return isGradientRead(term, module); });
  bool ontoState = old != terms.end();
  for (Value term : terms)
    if (ontoState && term == *old)
      continue;
    else
      (canAccumulate(term, ontoState) ? chain : rest).push_back(term);
  llvm::sort(chain, [](Value a, Value b) { return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp()); });
  if (chain.empty())
    return;
  Value sum = ontoState ? *old : Value();
  if (!ontoState && residuals)
    sum = takeEarlier(rest, chain.front());
  if (!sum && chain.size() < 2)
    return;
  if (ontoState) // what a state holds when the program starts can be read at its start
    sum.getDefiningOp()->moveBefore(&root->getBlock()->front());
  for (Value term : chain) {
    if (sum)
      setInit(term.getDefiningOp(), sum);
    sum = term;
  }
  OpBuilder builder(root);
  for (Value term : rest)
    sum = BinaryOp::create(builder, root.getLoc(), BinaryFn::Add, sum, term);
  root.getZ().replaceAllUsesWith(sum);
  for (Operation *add : adds)
    add->erase();
}

struct FoldAccumulations : impl::FoldAccumulationsBase<FoldAccumulations> {
  using FoldAccumulationsBase::FoldAccumulationsBase;
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        run(bodyOf(function));
  }

  void run(Block &block) {
    SmallVector<BinaryOp> roots;
    for (auto add : block.getOps<BinaryOp>()) {
      bool inner = add.getZ().hasOneUse() && isPlainAdd(*add->user_begin());
      if (isPlainAdd(add) && !inner)
        roots.push_back(add);
    }
    for (BinaryOp root : roots)
      fold(root, getOperation(), residuals);
  }
};

} // namespace
} // namespace weft
