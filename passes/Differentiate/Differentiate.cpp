//===- Differentiate.cpp - Reverse mode over @micro -----------------------===//
#include "passes/Differentiate/Passes.h"
#include "passes/Differentiate/Programs.h"

#include "dialects/Weft/Gradients.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Differentiate/Passes.h.inc"

namespace {

class Reverse {
public:
  explicit Reverse(func::FuncOp program)
      : program(program), module(program->getParentOfType<ModuleOp>()),
        builder(bodyOf(program).getTerminator()) {}

  LogicalResult run() {
    markNeeds();
    Value loss = bodyOf(program).getTerminator()->getOperand(0);
    if (!needs.contains(loss))
      return program.emitError(
          "the loss depends on no trained parameter: nothing to differentiate");
    gradients[loss] = constantOf(builder, namedLocation("grad", loss.getLoc()), tensorType(loss), 1.0);
    for (Operation *op : llvm::reverse(forward))
      if (failed(visit(op)))
        return failure();
    accumulate();
    addGates(program, [&](Value value) { return gradients.lookup(value); });
    eraseDeadOps(bodyOf(program));
    return success();
  }

private:
  /// Values that a trained parameter reaches through floats.
  void markNeeds() {
    for (Operation &op : bodyOf(program).without_terminator()) {
      forward.push_back(&op);
      auto get = dyn_cast<GetOp>(op);
      bool needed = get ? isTrained(get.getState())
                        : llvm::any_of(op.getOperands(), [&](Value value) { return needs.contains(value); });
      for (Value result : op.getResults())
        if (needed && isa<FloatType>(getElementTypeOrSelf(result)))
          needs.insert(result);
    }
  }

  bool isTrained(StringRef path) {
    auto state = module.lookupSymbol<StateOp>(path);
    return state && state.getRole() == Role::Parameter && module.lookupSymbol(gradientName(path));
  }

  /// Builds the gradients of the operands of `op` from those of its results.
  LogicalResult visit(Operation *op) {
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(needs.contains(result) ? gradients.lookup(result) : Value());
    if (isa<GetOp>(op) || !llvm::any_of(results, [](Value value) { return value != nullptr; }))
      return success();
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitError() << op->getName()
                             << " has no gradient, but the loss depends on a parameter through "
                             << "it: keep it out of the loss";
    Operation *last = builder.getInsertionPoint()->getPrevNode();
    SmallVector<Value> operands = differentiable.buildGradient(builder, results);
    if (operands.size() != op->getNumOperands())
      return op->emitError() << op->getName() << " built no gradient";
    for (auto [operand, gradient] : llvm::zip(op->getOperands(), operands))
      if (gradient && needs.contains(operand))
        add(operand, gradient);
    shareLoss(op, last);
    return success();
  }

  void add(Value value, Value gradient) {
    Value &sum = gradients[value];
    sum = sum ? binary(builder, gradient.getLoc(), BinaryFn::Add, sum, gradient) : gradient;
  }

  /// The loss is computed with its gradient: takes it from there, in the place
  /// of `op`. The ops built for it stand behind `last`.
  void shareLoss(Operation *op, Operation *last) {
    if (!isa<LossHeadOp, CrossEntropyOp>(op))
      return;
    Operation *grad = last->getNextNode();
    while (!isa<LossHeadGradOp, CrossEntropyGradOp>(grad))
      grad = grad->getNextNode();
    grad->moveAfter(op);
    OpBuilder after(grad->getContext());
    after.setInsertionPointAfter(grad);
    auto head = dyn_cast<LossHeadGradOp>(grad);
    Value loss = head ? head.getLoss()
                      : reduceTo(after, op->getLoc(), cast<CrossEntropyGradOp>(grad).getRowLoss(),
                                 tensorType(op->getResult(0)));
    op->getResult(0).replaceAllUsesWith(loss);
    op->erase();
  }

  /// Adds the gradient of each trained parameter, in the order of the state.
  void accumulate() {
    llvm::StringMap<SmallVector<GetOp>> reads;
    for (auto get : bodyOf(program).getOps<GetOp>())
      reads[get.getState()].push_back(get);
    OpBuilder top = OpBuilder::atBlockBegin(&bodyOf(program));
    for (StateOp state : statesOf(module, Role::Parameter)) {
      Value sum;
      for (GetOp get : reads.lookup(state.getSymName()))
        if (Value gradient = gradients.lookup(get.getResult()))
          sum = sum ? binary(builder, gradient.getLoc(), BinaryFn::Add, sum, gradient) : gradient;
      if (!sum)
        continue;
      std::string name = gradientName(state.getSymName());
      Value old = GetOp::create(top, sum.getLoc(), state.getTensorType(), name);
      SetOp::create(builder, sum.getLoc(), name, binary(builder, sum.getLoc(), BinaryFn::Add, old, sum));
    }
  }

  func::FuncOp program;
  ModuleOp module;
  OpBuilder builder;
  SmallVector<Operation *> forward;
  llvm::DenseSet<Value> needs;
  llvm::DenseMap<Value, Value> gradients;
};

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  void runOnOperation() override {
    for (StringRef name : {"micro", "calibrate_gradient"}) {
      auto program = getOperation().lookupSymbol<func::FuncOp>(name);
      if (program && !program.isExternal() && failed(Reverse(program).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace weft
