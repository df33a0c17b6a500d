//===- FormLossHead.cpp - Product and cross entropy as one op -------------===//
#include "passes/Differentiate/Passes.h"
#include "passes/Differentiate/Programs.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FORMLOSSHEAD
#include "passes/Differentiate/Passes.h.inc"

namespace {

/// Collects the cross entropies that `value` is a linear combination of.
LogicalResult collectTerms(Value value, llvm::SetVector<CrossEntropyOp> &terms) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return emitError(value.getLoc(), "the loss is an input: expected sums of cross_entropy");
  if (auto term = dyn_cast<CrossEntropyOp>(op)) {
    terms.insert(term);
    return success();
  }
  if (isa<LossHeadOp>(op))
    return success();
  if (auto unary = dyn_cast<UnaryOp>(op); unary && unary.getFn() == UnaryFn::Neg)
    return collectTerms(unary.getX(), terms);
  if (auto binary = dyn_cast<BinaryOp>(op)) {
    BinaryFn fn = binary.getFn();
    if (fn == BinaryFn::Add || fn == BinaryFn::Sub)
      return failure(failed(collectTerms(binary.getX(), terms)) ||
                     failed(collectTerms(binary.getY(), terms)));
    if ((fn == BinaryFn::Mul || fn == BinaryFn::Div) && constantNumber(binary.getY()))
      return collectTerms(binary.getX(), terms);
    if (fn == BinaryFn::Mul && constantNumber(binary.getX()))
      return collectTerms(binary.getY(), terms);
  }
  return op->emitError() << "the loss is not linear in cross_entropy: found " << op->getName()
                         << ", expected sums and differences of cross_entropy times numbers, because the sum "
                            "over targets is divided by their count; keep other terms out of the loss";
}

/// The operands of a product that a loss head can take over.
struct Head {
  Value x, table;
};

/// Whether `logits` = x's leading axes and `table`'s other axis, summed over x's last.
bool isHead(Head head, RankedTensorType logits) {
  ArrayRef<StringAttr> x = axesOf(head.x), table = axesOf(head.table), result = axesOf(logits);
  if (table.size() != 2 || x.size() != result.size() || x.drop_back() != result.drop_back())
    return false;
  return (table[0] == result.back() && table[1] == x.back()) ||
         (table[1] == result.back() && table[0] == x.back());
}

/// The head that makes the logits, or null values and why there is none.
Head findHead(CrossEntropyOp term, std::string &reason) {
  Operation *op = term.getLogits().getDefiningOp();
  auto product = dyn_cast_or_null<ContractOp>(op);
  if (!product) {
    reason = "the logits come from " + (op ? op->getName().getStringRef().str() : std::string("an input")) +
             ", not from a product of activations and a table";
    return {};
  }
  if (product.getInit()) {
    reason = "something is added to the product that makes the logits";
    return {};
  }
  for (Head head : {Head{product.getA(), product.getB()}, Head{product.getB(), product.getA()}})
    if (isHead(head, product.getResult().getType()))
      return head;
  reason = "the product that makes the logits is not one of [..., dim] and a table of two axes, dim and the "
           "vocabulary";
  return {};
}

struct FormLossHead : impl::FormLossHeadBase<FormLossHead> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    Value loss = forward ? resultCalled(forward, "loss") : Value();
    if (!loss)
      return;
    llvm::SetVector<CrossEntropyOp> terms;
    if (failed(collectTerms(loss, terms)))
      return signalPassFailure();
    for (CrossEntropyOp term : terms) {
      std::string reason;
      Head head = findHead(term, reason);
      if (!head.x) {
        term.emitRemark() << "no loss head, logits stay whole: " << reason;
        continue;
      }
      OpBuilder builder(term);
      Location loc = builder.getFusedLoc({head.x.getLoc(), term.getLogits().getLoc(), term.getLoc()});
      auto fused = LossHeadOp::create(builder, loc, head.x, head.table, term.getTargets(), term.getWeight(),
                                      term.getZAttr(), term.getSmoothingAttr());
      term.getLoss().replaceAllUsesWith(fused.getLoss());
      term.erase();
    }
    eraseDeadOps(bodyOf(forward));
  }
};

} // namespace
} // namespace weft
