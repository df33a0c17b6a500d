//===- GradientsProducts.cpp - Gradients of products and look-ups ---------===//
#include "dialects/Weft/Gradients.h"

using namespace mlir;

namespace weft {

// Each axis of `a` is in the result or in `b`, and each axis of those that `a`
// lacks is in both: da = dr b, summed over what `a` lacks, in the order of `a`.
Gradients ContractOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  Location loc = gradientLocation(*this);
  Value dr = gradients[0];
  Gradients result{ContractOp::create(builder, loc, getA().getType(), dr, getB(), Value()),
                   ContractOp::create(builder, loc, getB().getType(), getA(), dr, Value())};
  if (getInit())
    result.push_back(dr);
  return result;
}

Gradients ReshapeOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  return {ReshapeOp::create(builder, gradientLocation(*this), getX().getType(), gradients[0])};
}

Gradients GatherOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  return {GatherGradOp::create(builder, gradientLocation(*this), getTable().getType(), getIndex(),
                               gradients[0], Value()),
          Value()};
}

Gradients TakeOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  return {PutOp::create(builder, gradientLocation(*this), getX().getType(), gradients[0], getAxesAttr(),
                        getAxisAttr(), getIndicesAttr())};
}

Gradients PutOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  return {TakeOp::create(builder, gradientLocation(*this), gradients[0], getAxesAttr(), getAxisAttr(),
                         getIndicesAttr())};
}

} // namespace weft
