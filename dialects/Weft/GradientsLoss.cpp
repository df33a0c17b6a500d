//===- GradientsLoss.cpp - Gradients of cross entropy and the loss head ---===//
#include "dialects/Weft/Gradients.h"

using namespace mlir;

namespace weft {

/// The gradient of a row's weight: the loss that the row would add with weight 1.
static Value weightGradient(OpBuilder &builder, Location loc, Value logits, Value targets, Value weight,
                            Attribute z, Attribute smoothing, Value upstream) {
  auto rows = CrossEntropyGradOp::create(builder, loc, logits, targets, Value(), z, smoothing);
  return reduceTo(builder, loc, scaledBy(builder, loc, rows.getRowLoss(), upstream), tensorType(weight));
}

Gradients CrossEntropyOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  Location loc = gradientLocation(*this);
  auto grad = CrossEntropyGradOp::create(builder, loc, getLogits(), getTargets(), getWeight(), getZAttr(),
                                         getSmoothingAttr());
  Gradients result{scaledBy(builder, loc, grad.getDlogits(), gradients[0]), Value()};
  if (getWeight())
    result.push_back(weightGradient(builder, loc, getLogits(), getTargets(), getWeight(), getZAttr(),
                                    getSmoothingAttr(), gradients[0]));
  return result;
}

/// The whole logits of a loss head: targets' axes and the table's axis that x lacks.
static Value wholeLogits(OpBuilder &builder, Location loc, LossHeadOp op) {
  RankedTensorType x = tensorType(op.getX()), table = tensorType(op.getTable());
  int64_t vocab = axisIndex(x, axesOf(table)[0]) < 0 ? 0 : 1;
  SmallVector<StringAttr> names(axesOf(x).drop_back());
  SmallVector<int64_t> sizes(x.getShape().drop_back());
  names.push_back(axesOf(table)[vocab]);
  sizes.push_back(table.getDimSize(vocab));
  return ContractOp::create(builder, loc, namedTensor(names, sizes, x.getElementType()), op.getX(),
                            op.getTable(), Value());
}

Gradients LossHeadOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  Location loc = gradientLocation(*this);
  auto grad = LossHeadGradOp::create(builder, loc, getX(), getTable(), getTargets(), getWeight(), Value(),
                                     getZAttr(), getSmoothingAttr());
  Gradients result{scaledBy(builder, loc, grad.getDx(), gradients[0]),
                   scaledBy(builder, loc, grad.getDtable(), gradients[0]), Value()};
  if (getWeight())
    result.push_back(weightGradient(builder, loc, wholeLogits(builder, loc, *this), getTargets(), getWeight(),
                                    getZAttr(), getSmoothingAttr(), gradients[0]));
  return result;
}

} // namespace weft
