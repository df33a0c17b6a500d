//===- RunBeside.cpp - Calls that a GPU runs beside others ------------------===//

#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/Passes.h"

namespace weft {
#define GEN_PASS_DEF_RUNBESIDEPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// A product whose result has fewer elements leaves multiprocessors without a tile of
/// 128 x 256, of the 132 that an H100 or H200 has.
constexpr int64_t kFewElements = int64_t{132} * 128 * 256;

class Besides {
public:
  explicit Besides(ProgramOp program) : program(program) {}

  void run() {
    mark();
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
      if (isBeside(&op))
        moveUp(cast<CallOp>(op));
  }

private:
  static bool declares(Operation *op) { return isa<BufferOp, ViewOp>(op); }

  KernelOp kernelOf(CallOp call) {
    return SymbolTable::lookupNearestSymbolFrom<KernelOp>(call, call.getKernelAttr());
  }

  bool worksOnPatterns(CallOp call) {
    bool found = false;
    kernelOf(call).walk([&](Operation *op) { found |= isa<MixProductOp, MixScaleOp>(op); });
    return found;
  }

  /// Gradients of weights are none: they sum over all tokens into the state.
  bool isSmallProduct(CallOp call) {
    if (call.getOuts().size() != 1 || bufferOf(call.getOuts()[0]).getSpace() != BufferSpace::Arena ||
        cast<RankedTensorType>(call.getOuts()[0].getType()).getNumElements() >= kFewElements)
      return false;
    return llvm::any_of(kernelOf(call).getBody().front(), [](Operation &op) { return isa<ContractOp>(op); });
  }

  /// Whether what `call` makes is read by calls of `beside` alone.
  bool feedsOnlyThose(CallOp call) {
    return llvm::all_of(call.getOuts(), [&](Value out) {
      auto buffer = out.getDefiningOp<BufferOp>();
      return buffer && buffer.getSpace() == BufferSpace::Arena && !out.hasOneUse() &&
             llvm::all_of(out.getUsers(), [&](Operation *user) { return user == call || isBeside(user); });
    });
  }

  /// What is made again stays in its place: moved up it would take the memory that it frees.
  void mark() {
    for (Operation &op : llvm::reverse(program.getBody().front()))
      if (auto call = dyn_cast<CallOp>(op);
          call && !call->hasAttr("weft.again") &&
          (worksOnPatterns(call) || feedsOnlyThose(call) || (isSmallProduct(call) && passesACall(call))))
        call->setAttr(kBesideAttr, UnitAttr::get(call.getContext()));
  }

  static Operation *before(Operation *op) {
    do
      op = op->getPrevNode();
    while (op && declares(op));
    return op;
  }

  bool passesACall(CallOp call) {
    Operation *earlier = before(call);
    return earlier && !conflict(call, earlier);
  }

  /// Behind the last call that it shares memory with.
  void moveUp(CallOp call) {
    Operation *place = before(call);
    while (place && !conflict(call, place))
      place = before(place);
    if (place == before(call))
      return;
    Operation *end = place ? place->getNextNode() : &program.getBody().front().front();
    while (declares(end)) // what it reads may be declared there
      end = end->getNextNode();
    for (Value operand : call.getOperands())
      declareBefore(operand, end);
    call->moveBefore(end);
  }

  void declareBefore(Value value, Operation *end) {
    Operation *op = value.getDefiningOp();
    if (!op || op->isBeforeInBlock(end))
      return;
    if (auto view = dyn_cast<ViewOp>(op))
      declareBefore(view.getBuffer(), end);
    if (op != end)
      op->moveBefore(end);
  }

  static SmallVector<std::pair<Value, bool>> accesses(Operation *op) {
    SmallVector<std::pair<Value, bool>> list;
    auto call = dyn_cast<CallOp>(op);
    size_t reads = call ? call.getIns().size() : isa<CopyOp>(op) ? 1 : 0;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      list.emplace_back(operand, i >= reads);
    return list;
  }

  static bool conflict(Operation *a, Operation *b) {
    for (auto [x, writesX] : accesses(a))
      for (auto [y, writesY] : accesses(b))
        if ((writesX || writesY) && mayOverlap(x, y))
          return true;
    return false;
  }

  /// Buffers of the arena are apart until memory is planned; places of state and ports
  /// have numbers.
  static bool mayOverlap(Value a, Value b) {
    BufferOp x = bufferOf(a), y = bufferOf(b);
    if (x == y)
      return true;
    if (x.getSpace() != y.getSpace() || x.getSpace() == BufferSpace::Arena)
      return false;
    if (x.getSpace() != BufferSpace::State)
      return x.getOffset() == y.getOffset();
    auto begin = [](BufferOp buffer) { return static_cast<int64_t>(*buffer.getOffset()); };
    return begin(x) < begin(y) + bytesOf(y.getType()) && begin(y) < begin(x) + bytesOf(x.getType());
  }

  static bool isBeside(Operation *op) { return op->hasAttr(kBesideAttr); }

  ProgramOp program;
};

struct RunBeside : weft::impl::RunBesidePassBase<RunBeside> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      Besides(program).run();
  }
};

} // namespace
