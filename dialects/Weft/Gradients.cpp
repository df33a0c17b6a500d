//===- Gradients.cpp - Helpers of buildGradient ---------------------------===//
#include "dialects/Weft/Gradients.h"

using namespace mlir;

namespace weft {

Location gradientLocation(Operation *op) {
  return NameLoc::get(StringAttr::get(op->getContext(), "grad"), op->getLoc());
}

Value reduceTo(OpBuilder &builder, Location loc, Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  return SumToOp::create(builder, loc, type, value, Value());
}

Value broadcastTo(OpBuilder &builder, Location loc, Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  return binary(builder, loc, BinaryFn::Mul, constantOf(builder, loc, type, 1.0), value);
}

Value binary(OpBuilder &builder, Location loc, BinaryFn fn, Value x, Value y) {
  return BinaryOp::create(builder, loc, fn, x, y);
}

Value scaled(OpBuilder &builder, Location loc, Value x, double factor) {
  if (factor == 1.0)
    return x;
  RankedTensorType scalar = namedTensor({}, {}, tensorType(x).getElementType());
  return binary(builder, loc, BinaryFn::Mul, x, constantOf(builder, loc, scalar, factor));
}

Value scaledBy(OpBuilder &builder, Location loc, Value x, Value scale) {
  if (auto constant = scale.getDefiningOp<ConstantOp>(); constant && numberOf(constant.getValue()) == 1.0)
    return x;
  return binary(builder, loc, BinaryFn::Mul, x, scale);
}

} // namespace weft
