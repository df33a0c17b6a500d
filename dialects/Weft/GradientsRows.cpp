//===- GradientsRows.cpp - Gradients of functions of the last axis --------===//
#include "dialects/Weft/Gradients.h"

using namespace mlir;

namespace weft {

Gradients LayerNormOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  return {LayerNormGradOp::create(builder, gradientLocation(*this), getX(), gradients[0], getEpsAttr())};
}

Gradients RmsNormOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  return {RmsNormGradOp::create(builder, gradientLocation(*this), getX(), gradients[0], getEpsAttr())};
}

Gradients SoftmaxOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  return {SoftmaxGradOp::create(builder, gradientLocation(*this), getY(), gradients[0])};
}

// A rotation's gradient is the rotation by the opposite angle.
Gradients RopeOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  UnitAttr inverse = getInverse() ? UnitAttr() : builder.getUnitAttr();
  Gradients result{RopeOp::create(builder, gradientLocation(*this), gradients[0], getPosition(), getTable(),
                                  getBaseAttr(), inverse)};
  result.resize(getNumOperands());
  return result;
}

} // namespace weft
