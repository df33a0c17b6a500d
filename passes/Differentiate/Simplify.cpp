//===- Simplify.cpp - Removes what constants make idle --------------------===//
#include "passes/Differentiate/Passes.h"
#include "passes/Differentiate/Programs.h"

#include <cmath>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SIMPLIFY
#include "passes/Differentiate/Passes.h.inc"

namespace {

double compute(BinaryFn fn, double x, double y) {
  switch (fn) {
  case BinaryFn::Add:
    return x + y;
  case BinaryFn::Sub:
    return x - y;
  case BinaryFn::Mul:
    return x * y;
  case BinaryFn::Div:
    return x / y;
  case BinaryFn::Pow:
    return std::pow(x, y);
  }
  llvm_unreachable("a binary function without a value");
}

/// Whether z = `kept` when the other operand is `number`; `left`: the number is x.
bool isIdle(BinaryFn fn, double number, bool left) {
  switch (fn) {
  case BinaryFn::Add:
    return number == 0.0;
  case BinaryFn::Sub:
    return !left && number == 0.0;
  case BinaryFn::Mul:
    return number == 1.0;
  case BinaryFn::Div:
  case BinaryFn::Pow:
    return !left && number == 1.0;
  }
  llvm_unreachable("a binary function without a rule");
}

Value simplified(OpBuilder &builder, BinaryOp op) {
  std::optional<double> x = constantNumber(op.getX()), y = constantNumber(op.getY());
  RankedTensorType type = op.getZ().getType();
  bool zero = op.getFn() == BinaryFn::Mul && ((x && *x == 0.0) || (y && *y == 0.0));
  if (zero || (x && y))
    return constantOf(builder, op.getLoc(), type, zero ? 0.0 : compute(op.getFn(), *x, *y));
  if (x && isIdle(op.getFn(), *x, true) && op.getY().getType() == type)
    return op.getY();
  if (y && isIdle(op.getFn(), *y, false) && op.getX().getType() == type)
    return op.getX();
  return {};
}

/// What `op` is the same as, or null.
Value simplified(Operation *op) {
  OpBuilder builder(op);
  if (auto sum = dyn_cast<SumToOp>(op))
    return !sum.getInit() && sum.getX().getType() == sum.getResult().getType() ? sum.getX() : Value();
  if (auto dropout = dyn_cast<DropoutOp>(op))
    return isa<FloatAttr>(dropout.getRate()) && numberOf(dropout.getRate()) == 0.0 ? dropout.getX() : Value();
  if (auto unary = dyn_cast<UnaryOp>(op))
    if (std::optional<double> x = constantNumber(unary.getX()); x && unary.getFn() == UnaryFn::Neg)
      return constantOf(builder, op->getLoc(), unary.getY().getType(), -*x);
  if (auto binary = dyn_cast<BinaryOp>(op))
    return simplified(builder, binary);
  return {};
}

struct Simplify : impl::SimplifyBase<Simplify> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      for (Operation &op : llvm::make_early_inc_range(bodyOf(function)))
        if (Value value = simplified(&op)) {
          op.getResult(0).replaceAllUsesWith(value);
          op.erase();
        }
      eraseDeadOps(bodyOf(function));
    }
  }
};

} // namespace
} // namespace weft
