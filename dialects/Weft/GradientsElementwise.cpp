//===- GradientsElementwise.cpp - Gradients of elementwise ops and sums ---===//
#include "dialects/Weft/Gradients.h"

using namespace mlir;

namespace weft {

Gradients UnaryOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  Location loc = gradientLocation(*this);
  if (getFn() == UnaryFn::Neg)
    return {UnaryOp::create(builder, loc, UnaryFn::Neg, gradients[0])};
  return {UnaryGradOp::create(builder, loc, getFn(), getX(), gradients[0])};
}

/// dx of z = x^y for the gradient dz: y x^(y-1) dz, with the common exponents cheap.
static Value powBaseGradient(OpBuilder &builder, Location loc, BinaryOp op, Value dz) {
  auto constant = op.getY().getDefiningOp<ConstantOp>();
  if (!constant) {
    Value one = constantOf(builder, loc, tensorType(op.getY()), 1.0);
    Value less = binary(builder, loc, BinaryFn::Sub, op.getY(), one);
    Value slope =
        binary(builder, loc, BinaryFn::Mul, binary(builder, loc, BinaryFn::Pow, op.getX(), less), op.getY());
    return binary(builder, loc, BinaryFn::Mul, dz, slope);
  }
  double exponent = numberOf(constant.getValue());
  Value weighted = scaled(builder, loc, dz, exponent);
  if (exponent == 1.0)
    return weighted;
  if (exponent == 2.0)
    return binary(builder, loc, BinaryFn::Mul, weighted, op.getX());
  if (exponent == 0.5)
    return binary(builder, loc, BinaryFn::Div, weighted, op.getZ());
  Value less = constantOf(builder, loc, tensorType(op.getY()), exponent - 1.0);
  return binary(builder, loc, BinaryFn::Mul, weighted, binary(builder, loc, BinaryFn::Pow, op.getX(), less));
}

/// dy of z = x^y: z log(x) dz, defined for x > 0. A constant exponent has none.
static Value powExponentGradient(OpBuilder &builder, Location loc, BinaryOp op, Value dz) {
  if (op.getY().getDefiningOp<ConstantOp>())
    return {};
  Value log = UnaryOp::create(builder, loc, UnaryFn::Log, op.getX());
  Value weighted = binary(builder, loc, BinaryFn::Mul, dz, op.getZ());
  return binary(builder, loc, BinaryFn::Mul, weighted, log);
}

Gradients BinaryOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  Location loc = gradientLocation(*this);
  Value x = getX(), y = getY(), dz = gradients[0], dx, dy;
  auto reduced = [&](Value value, Value like) {
    return value ? reduceTo(builder, loc, value, tensorType(like)) : Value();
  };
  auto negated = [&](Value value) -> Value { return UnaryOp::create(builder, loc, UnaryFn::Neg, value); };
  switch (getFn()) {
  case BinaryFn::Add:
    return {reduced(dz, x), reduced(dz, y)};
  case BinaryFn::Sub:
    return {reduced(dz, x), negated(reduced(dz, y))};
  case BinaryFn::Mul:
    dx = binary(builder, loc, BinaryFn::Mul, dz, y);
    dy = binary(builder, loc, BinaryFn::Mul, dz, x);
    return {reduced(dx, x), reduced(dy, y)};
  case BinaryFn::Div: // z = x / y: dx = dz / y, dy = -dx z
    dx = binary(builder, loc, BinaryFn::Div, dz, y);
    dy = binary(builder, loc, BinaryFn::Mul, dx, getZ());
    return {reduced(dx, x), negated(reduced(dy, y))};
  case BinaryFn::Pow:
    dx = powBaseGradient(builder, loc, *this, dz);
    dy = powExponentGradient(builder, loc, *this, dz);
    return {reduced(dx, x), reduced(dy, y)};
  }
  llvm_unreachable("a binary function without a gradient");
}

Gradients SumToOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  Gradients result{broadcastTo(builder, gradientLocation(*this), gradients[0], tensorType(getX()))};
  if (getInit())
    result.push_back(gradients[0]);
  return result;
}

Gradients DropoutOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  Gradients result{DropoutOp::create(builder, gradientLocation(*this), gradients[0], getNoise(),
                                     getRateAttr(), getStreamAttr())};
  if (getNoise())
    result.push_back({});
  return result;
}

} // namespace weft
