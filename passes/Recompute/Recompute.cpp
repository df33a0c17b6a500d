//===- Recompute.cpp - Launches before the loss, again after it -----------===//
//
// 1. Saved: results of launches before the loss that launches after it read.
// 2. In the order of the program each saved value is given up if what makes it
//    again is allowed, starts from what is there then, and is cheap for its bytes.
//    What it starts from and is given up too counts as a part of its price where
//    it would have been made later.
// 3. The launches after the loss are walked in order. Before the first that reads
//    a value given up, what makes it is put again.
// 4. Launches before the loss no longer make what nobody reads.
//
//===----------------------------------------------------------------------===//

#include "passes/Recompute/Recompute.h"
#include "passes/Recompute/Passes.h"
#include "passes/Unroll/Scope.h"

#include "llvm/ADT/StringExtras.h"

namespace weft {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/Recompute/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// Bytes moved for a byte freed, at most.
constexpr double kMostMoved = 8;
/// FLOPs for a byte freed, at most, in those of a saved byte on average.
constexpr double kMostFlops = 4;
/// Values smaller than this part of the largest are not worth a launch.
constexpr int64_t kSmallest = 1024;

int64_t bytesIn(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * static_cast<int64_t>(type.getElementTypeBitWidth() / 8);
}

} // namespace

Value weft::origin(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getX();
  return value;
}

//===----------------------------------------------------------------------===//
// What is saved
//===----------------------------------------------------------------------===//

/// Notes `value` if something after the loss reads it, and nothing keeps it anyway.
void Recompute::findUses(Value value) {
  Saved entry;
  bool stays = false;
  SmallVector<Value> named{value};
  while (!named.empty())
    for (Operation *user : named.pop_back_val().getUsers()) {
      if (isa<ReshapeOp>(user))
        named.push_back(user->getResult(0));
      stays |= isa<SetOp, SetFlatOp, func::ReturnOp>(user);
      bool first = isa<LaunchOp>(user) && loss->isBeforeInBlock(user) &&
                   (!entry.reader || user->isBeforeInBlock(entry.reader));
      if (first)
        entry.reader = user, entry.firstUse = number.lookup(user);
    }
  if (!entry.reader || stays)
    return;
  saved[value] = entry;
  savedBytes += bytesIn(value);
  largest = std::max(largest, bytesIn(value));
}

bool Recompute::findSaved() {
  int64_t count = 0;
  for (Operation &op : block) {
    number[&op] = count++;
    if (auto launch = dyn_cast<LaunchOp>(op); launch && !loss && work.isLoss(launch))
      loss = &op;
  }
  if (!loss)
    return false;
  for (Operation &op : block) {
    if (&op == loss)
      break;
    bool fromState = llvm::all_of(op.getOperands(), [&](Value value) { return ofState.contains(value); });
    if (fromState && !isa<LaunchOp, ReshapeOp>(op))
      fromState = isa<GetOp, GetFlatOp, ConstantOp>(op);
    for (Value result : op.getResults())
      if (fromState)
        ofState.insert(result);
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      continue;
    if (work.kindOf(launch) == KernelWork::Kind::Product)
      forwardFlops += work.flopsOf(launch);
    for (Value result : launch.getResults())
      findUses(result);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// What is made again
//===----------------------------------------------------------------------===//

bool Recompute::isAllowed(LaunchOp launch) {
  KernelWork::Kind kind = work.kindOf(launch);
  return kind == KernelWork::Kind::Rows || kind == KernelWork::Kind::Moving ||
         (products && kind == KernelWork::Kind::Product);
}

/// Cut from results that are there then: those saved, and those made again by
/// products, which cost more than the bytes that they take meanwhile.
Slice Recompute::slice(LaunchOp launch, ArrayRef<unsigned> results) {
  return sliceOf(launch, work.kernelOf(launch), work.kindOf(launch) == KernelWork::Kind::Rows, results,
                 [&](Value value) {
                   auto found = saved.find(value);
                   return found != saved.end() && (!found->second.again || found->second.price.fresh > 0) &&
                          !llvm::is_contained(results, cast<OpResult>(value).getResultNumber());
                 });
}

/// The price of `value` for a reader at `need`: none if it is there, nullopt if it can't be.
std::optional<Price> Recompute::priceOf(Value value, int64_t need) {
  value = origin(value);
  auto launch = value.getDefiningOp<LaunchOp>();
  if (!launch) {
    Operation *op = value.getDefiningOp();
    return !op || isa<GetOp, GetFlatOp, ConstantOp>(op) ? std::optional(Price{}) : std::nullopt;
  }
  if (auto found = saved.find(value); found != saved.end()) {
    bool isThere = !found->second.again || found->second.firstUse <= need;
    return isThere ? Price{} : Price{found->second.price.flops, found->second.price.moved, 0};
  }
  if (!isAllowed(launch) || !launch->isBeforeInBlock(loss))
    return std::nullopt;
  return priceOf(launch, slice(launch, cast<OpResult>(value).getResultNumber()), need);
}

/// Of the launch alone.
Price Recompute::ownPrice(LaunchOp launch, const Slice &slice) {
  Price price{work.flopsOf(launch), 0, work.flopsOf(launch)};
  for (Value operand : slice.operands)
    price.moved += bytesIn(operand);
  for (unsigned i = 0; i < launch.getNumResults(); ++i)
    if (slice.whole || llvm::is_contained(slice.results, i))
      price.moved += bytesIn(launch.getResult(i));
  return price;
}

std::optional<Price> Recompute::priceOf(LaunchOp launch, const Slice &slice, int64_t need) {
  Price price;
  for (Value operand : slice.operands) {
    std::optional<Price> part = priceOf(operand, need);
    if (!part)
      return std::nullopt;
    price += *part;
  }
  price += ownPrice(launch, slice);
  return price;
}

bool Recompute::isWorth(Value value, const Price &price) {
  auto bytes = static_cast<double>(bytesIn(value));
  if (bytesIn(value) * kSmallest < largest)
    return false;
  // What products read and write is little beside what they compute.
  if (price.flops == 0)
    return static_cast<double>(price.moved) <= kMostMoved * bytes;
  return price.flops * static_cast<double>(savedBytes) <= kMostFlops * forwardFlops * bytes;
}

void Recompute::decide(int64_t enough) {
  int64_t freed = 0;
  for (auto &[value, entry] : saved) {
    auto launch = value.getDefiningOp<LaunchOp>();
    if (!isAllowed(launch) || (keepsState && ofState.contains(value)))
      continue;
    // A region's results are in the order of its body: what one is cut from is decided by then.
    Slice cut = slice(launch, cast<OpResult>(value).getResultNumber());
    bool later = llvm::any_of(cut.operands, [&](Value operand) {
      auto own = dyn_cast<OpResult>(operand);
      return own && own.getOwner() == launch &&
             own.getResultNumber() > cast<OpResult>(value).getResultNumber();
    });
    if (later)
      continue;
    std::optional<Price> price = priceOf(launch, cut, entry.firstUse);
    if (!price || !isWorth(value, *price))
      continue;
    if (price->fresh > 0) {
      if (enough > 0 && freed >= enough)
        continue;
      freed += bytesIn(value);
    }
    entry.again = true;
    entry.price = *price;
  }
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

/// The label of its kernel and the axes that follow batch and position.
std::string Recompute::nameOf(OpResult value) {
  std::string name = labelOf(work.kernelOf(cast<LaunchOp>(value.getOwner()))).str();
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<StringRef> axes;
  for (StringAttr axis : axesOf(type).drop_front(leadingRows(type).size()))
    axes.push_back(axis.getValue());
  return name + " [" + llvm::join(axes, ", ") + "]";
}

std::vector<SavedValue> Recompute::values() {
  std::vector<SavedValue> values;
  for (auto &[value, entry] : saved) {
    std::string scope = commonScope(value.getDefiningOp()->getLoc());
    values.push_back({nameOf(cast<OpResult>(value)), scope, bytesIn(value), entry.again, entry.spent.flops,
                      entry.spent.moved});
  }
  return values;
}

namespace {
struct RecomputeImpl : weft::impl::RecomputePassBase<RecomputeImpl> {
  using RecomputePassBase::RecomputePassBase;
  RecomputeImpl(const RecomputePassOptions &options, RecomputeReport *report)
      : RecomputePassBase(options), filled(report) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (policy != "fast" && policy != "lean" && policy != "tight") {
      module.emitError("weft-recompute: policy: expected fast, lean or tight, found '") << policy << "'";
      return signalPassFailure();
    }
    KernelWork work(module);
    KernelNames names(module);
    for (func::FuncOp function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Recompute recompute(function, module, work, names, policy == "tight");
      if (!recompute.findSaved())
        continue;
      if (policy != "fast")
        recompute.decide(enough);
      recompute.place();
      if (filled && function.getName() == "micro")
        filled->values = recompute.values();
      if (policy != "fast")
        recompute.prune();
    }
    dropUnlaunched(module);
  }

  RecomputeReport *filled = nullptr;
};
} // namespace

std::unique_ptr<Pass> weft::createRecomputePass(const std::string &policy, RecomputeReport *report) {
  RecomputePassOptions options;
  options.policy = policy;
  options.enough = report ? report->enough : 0;
  return std::make_unique<RecomputeImpl>(options, report);
}
