//===- Slice.cpp - The part of a kernel that makes some of its results ----===//

#include "passes/Recompute/Slice.h"

using namespace mlir;
using namespace weft;

static bool isRowWork(Operation *op) {
  return isa<UnaryOp, UnaryGradOp, BinaryOp, DropoutOp, LayerNormOp, RmsNormOp, SoftmaxOp, RopeOp, SumToOp,
             ConvertOp, ConstantOp>(op);
}

static bool movesData(Operation *op) {
  return isa<GatherOp, TakeOp, PutOp, PositionOp, DocumentOp, IntegersOp, MixScaleOp>(op);
}

KernelWork::KernelWork(ModuleOp module) {
  for (KernelOp kernel : module.getOps<KernelOp>())
    kernels[kernel.getSymNameAttr()] = kernel;
}

const KernelWork::Work &KernelWork::of(LaunchOp launch) {
  KernelOp kernel = kernelOf(launch);
  auto [entry, isNew] = known.try_emplace(kernel);
  Work &work = entry->second;
  if (!isNew)
    return work;
  Operation *core = coreOf(kernel);
  auto body = kernel.getBody().front().without_terminator();
  if (core && movesData(core))
    work.kind = Kind::Moving;
  else if (isa_and_nonnull<ContractOp, MixOp, MixDenseOp, MixProductOp>(core))
    work.kind = Kind::Product;
  else if (llvm::all_of(body, [](Operation &op) { return isRowWork(&op); }))
    work.kind = Kind::Rows;
  for (Operation &op : body) {
    if (auto priced = dyn_cast<CostOpInterface>(op))
      work.flops += priced.getCost().productFlops;
    work.loss |= isa<LossHeadGradOp, CrossEntropyGradOp>(op);
  }
  return work;
}

KernelWork::Kind KernelWork::kindOf(LaunchOp launch) { return of(launch).kind; }
double KernelWork::flopsOf(LaunchOp launch) { return of(launch).flops; }
bool KernelWork::isLoss(LaunchOp launch) { return of(launch).loss; }

//===----------------------------------------------------------------------===//
// Cuts
//===----------------------------------------------------------------------===//

static YieldOp yieldOf(KernelOp kernel) { return cast<YieldOp>(kernel.getBody().front().getTerminator()); }

/// The result of `launch` that `value` of its kernel's body becomes, rounded or not,
/// if `kept` has it.
static Value keptResult(LaunchOp launch, KernelOp kernel, Value value, function_ref<bool(Value)> kept) {
  for (auto [result, yielded] : llvm::zip(launch.getResults(), yieldOf(kernel).getValues()))
    if ((yielded == value || withoutConverts(yielded) == value) && kept(result))
      return result;
  return {};
}

/// Calls `read` on each value outside the cut that it starts from, and `inside` on
/// each op in it: from what is yielded back to operands and kept results.
static void walkCut(LaunchOp launch, KernelOp kernel, ArrayRef<unsigned> results,
                    function_ref<bool(Value)> kept, function_ref<void(Value value, Value outer)> read,
                    function_ref<void(Operation *)> inside) {
  llvm::DenseSet<Value> seen;
  SmallVector<Value> stack;
  for (unsigned result : results)
    stack.push_back(yieldOf(kernel).getValues()[result]);
  while (!stack.empty()) {
    Value value = stack.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      read(value, launch.getOperands()[argument.getArgNumber()]);
      continue;
    }
    if (Value outer = keptResult(launch, kernel, value, kept)) {
      read(value, outer);
      continue;
    }
    inside(value.getDefiningOp());
    llvm::append_range(stack, value.getDefiningOp()->getOperands());
  }
}

Slice weft::sliceOf(LaunchOp launch, KernelOp kernel, bool canCut, ArrayRef<unsigned> results,
                    function_ref<bool(Value)> kept) {
  Slice slice;
  slice.results.assign(results.begin(), results.end());
  llvm::SmallSetVector<Value, 8> operands;
  if (canCut)
    walkCut(
        launch, kernel, results, kept, [&](Value, Value outer) { operands.insert(outer); },
        [](Operation *) {});
  bool readsOwn = llvm::any_of(operands, [&](Value value) { return value.getDefiningOp() == launch; });
  slice.whole = !canCut || (results.size() == launch.getNumResults() && !readsOwn);
  if (slice.whole)
    slice.operands.assign(launch.getOperands().begin(), launch.getOperands().end());
  else // in the order of the launch, so that equal cuts make equal kernels
    for (ValueRange range : {ValueRange(launch.getOperands()), ValueRange(launch.getResults())})
      for (Value value : range)
        if (operands.contains(value) && !llvm::is_contained(slice.operands, value))
          slice.operands.push_back(value);
  return slice;
}

KernelOp weft::cutKernel(OpBuilder &builder, LaunchOp launch, KernelOp kernel, const Slice &slice) {
  SmallVector<Type> operands =
      llvm::map_to_vector(slice.operands, [](Value value) { return value.getType(); });
  SmallVector<Type> types =
      llvm::map_to_vector(slice.results, [&](unsigned result) { return launch.getResult(result).getType(); });
  auto made = KernelOp::create(builder, kernel.getLoc(), builder.getStringAttr("kernel"),
                               TypeAttr::get(builder.getFunctionType(operands, types)), kernel.getRowsAttr(),
                               kernel.getChunksAttr(), ArrayAttr(), ArrayAttr());
  Block &body = made.getBody().emplaceBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  llvm::DenseMap<Value, Value> arguments;
  for (Value value : slice.operands)
    arguments[value] = body.addArgument(value.getType(), value.getLoc());
  IRMapping mapping;
  llvm::DenseSet<Operation *> wanted;
  walkCut(
      launch, kernel, slice.results, [&](Value value) { return arguments.contains(value); },
      [&](Value value, Value outer) {
        Value argument = arguments.lookup(outer);
        if (argument.getType() != value.getType())
          argument = ConvertOp::create(inner, value.getLoc(), value.getType(), argument);
        mapping.map(value, argument);
      },
      [&](Operation *op) { wanted.insert(op); });
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (wanted.contains(&op))
      inner.clone(op, mapping);
  SmallVector<Value> yields = llvm::map_to_vector(
      slice.results, [&](unsigned result) { return mapping.lookup(yieldOf(kernel).getValues()[result]); });
  YieldOp::create(inner, kernel.getLoc(), yields);
  return made;
}
