//===- LossOps.cpp - What losses and the optimiser refuse -----------------===//
//
// Constraint labels (loss_head_c1, ...) are those of the descriptions in
// ComputeOps.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Weft/Constraints.h"

using namespace mlir;
using namespace weft;

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

/// `rows` has the targets' axes and one more, last.
static LogicalResult rowPerTarget(std::optional<Location> loc, StringRef name, RankedTensorType rows,
                                  Value targets) {
  RankedTensorType target = tensorOf(targets);
  if (rows.getRank() == target.getRank() + 1 && withoutLast(rows, target.getElementType()) == target)
    return success();
  return emitOptionalError(loc, "expects ", name, " with the targets' axes and one more, but got ", rows,
                           " and ", target);
}

/// `weight` (or nothing) has one number a target.
static LogicalResult weightPerTarget(std::optional<Location> loc, Value weight, Value targets, Type element) {
  return weight ? sameType(loc, "weight", weight.getType(), withElement(tensorOf(targets), element))
                : success();
}

template <typename Adaptor> static LogicalResult verifyLogits(std::optional<Location> loc, Adaptor op) {
  RankedTensorType logits = tensorOf(op.getLogits());
  if (failed(rowPerTarget(loc, "logits", logits, op.getTargets()))) // cross_entropy_c1, cross_entropy_grad_c1
    return failure();
  // cross_entropy_c2, cross_entropy_grad_c2
  return weightPerTarget(loc, op.getWeight(), op.getTargets(), logits.getElementType());
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                               Types &types) {
  types.push_back(RankedTensorType::get({}, tensorOf(op.getLogits()).getElementType()));
  return verifyLogits(loc, op);
}

LogicalResult CrossEntropyGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                                   Types &types) {
  if (failed(verifyLogits(loc, op)))
    return failure();
  RankedTensorType logits = tensorOf(op.getLogits());
  types.push_back(logits);
  types.push_back(withoutLast(logits, logits.getElementType()));
  return success();
}

template <typename Adaptor> static LogicalResult verifyHead(std::optional<Location> loc, Adaptor op) {
  RankedTensorType x = tensorOf(op.getX()), table = tensorOf(op.getTable());
  if (failed(rowPerTarget(loc, "x", x, op.getTargets()))) // loss_head_c1, loss_head_grad_c1
    return failure();
  int64_t channel = axisIndex(table, axesOf(x).back());
  if (table.getRank() != 2 || channel < 0 ||
      !sameSize(table.getDimSize(channel), x.getShape().back())) // loss_head_c2, loss_head_grad_c2
    return emitOptionalError(loc, "expects a table of two axes, one of them the last of ", x, ", but got ",
                             table);
  // loss_head_c3, loss_head_grad_c3
  return weightPerTarget(loc, op.getWeight(), op.getTargets(), x.getElementType());
}

LogicalResult LossHeadOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                           Types &types) {
  types.push_back(RankedTensorType::get({}, tensorOf(op.getX()).getElementType()));
  return verifyHead(loc, op);
}

LogicalResult LossHeadGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                               Types &types) {
  types.push_back(RankedTensorType::get({}, tensorOf(op.getX()).getElementType()));
  types.push_back(op.getX().getType());
  types.push_back(op.getTable().getType());
  if (failed(verifyHead(loc, op)))
    return failure();
  return sameInit(loc, op.getInit(), op.getTable().getType()); // loss_head_grad_c4
}

//===----------------------------------------------------------------------===//
// Optimiser
//===----------------------------------------------------------------------===//

LogicalResult NormOp::verify() { // norm_c1
  if (failed(isScalar(getLoc(), "factor", getFactor())))
    return failure();
  return isScalar(getLoc(), "norm", getNorm());
}

LogicalResult ClipScaleOp::verify() { // clip_scale_c1
  if (failed(isScalar(getLoc(), "norm", getNorm())) ||
      failed(sameType(getLoc(), "factor", getFactor().getType(), getNorm().getType())))
    return failure();
  return sameType(getLoc(), "scale", getScale().getType(), getNorm().getType());
}

LogicalResult AdamWOp::verify() {
  const std::pair<StringRef, Value> alike[] = {{"m", getM()},        {"v", getV()},
                                               {"grad", getGrad()},  {"new_p", getNewP()},
                                               {"new_m", getNewM()}, {"new_v", getNewV()}};
  for (auto [name, value] : alike)
    if (failed(sameType(getLoc(), name, value.getType(), getP().getType()))) // adamw_c1
      return failure();
  RankedTensorType hyper = tensorOf(getHyper());
  if (hyper.getRank() != 1 || hyper.getDimSize(0) != 3) // adamw_c2
    return emitOpError("expects `hyper` to hold rate and two corrections, but got ") << hyper;
  return isScalar(getLoc(), "scale", getScale()); // adamw_c3
}

LogicalResult PolarOp::verify() {
  RankedTensorType x = tensorOf(getX());
  if (x.getRank() < 2) // polar_c1
    return emitOpError("expects matrices of [..., rows, columns], but got ") << x;
  if (failed(sameType(getLoc(), "y", getType(), x))) // polar_c2
    return failure();
  if (getIterations() < 1) // polar_c3
    return emitOpError("expects at least 1 iteration, but got ") << getIterations();
  return success();
}

LogicalResult AcceptOp::verify() {
  for (auto [name, value] : {std::pair<StringRef, Value>("next", getNext()), {"result", getResult()}})
    if (failed(sameType(getLoc(), name, value.getType(), getOld().getType()))) // accept_c1
      return failure();
  return isScalar(getLoc(), "scale", getScale()); // accept_c2
}
