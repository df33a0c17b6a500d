//===- ComputeOps.cpp - Types of results, and what ops refuse -------------===//
//
// Constraint labels (binary_c1, ...) are those of the descriptions in
// ComputeOps.td; what ODS states itself is not checked again.
//
//===----------------------------------------------------------------------===//

#include "dialects/Weft/Weft.h"

using namespace mlir;
using namespace weft;

namespace {
using Types = SmallVectorImpl<Type>;

RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Sizes of one name agree, or one is unknown (rolled models).
bool sameSize(int64_t a, int64_t b) { return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b; }

/// Every axis of `part` is one of `whole`, with the same size.
bool isPart(RankedTensorType part, RankedTensorType whole) {
  if (part.getRank() > 0 && axesOf(part).empty())
    return part.getShape() == whole.getShape();
  for (auto [name, size] : llvm::zip(axesOf(part), part.getShape())) {
    int64_t axis = axisIndex(whole, name);
    if (axis < 0 || !sameSize(size, whole.getDimSize(axis)))
      return false;
  }
  return true;
}

/// The type without its last axis.
RankedTensorType withoutLast(RankedTensorType type, Type element) {
  if (axesOf(type).empty())
    return RankedTensorType::get(type.getShape().drop_back(), element);
  return namedTensor(axesOf(type).drop_back(), type.getShape().drop_back(), element);
}

LogicalResult sameType(std::optional<Location> loc, StringRef name, Value got, Value expected) {
  if (got.getType() == expected.getType())
    return success();
  return emitOptionalError(loc, "expects `", name, "` of type ", expected.getType(), ", but got ", got.getType());
}

LogicalResult needsAxis(std::optional<Location> loc, Value x) {
  if (tensor(x).getRank() > 0)
    return success();
  return emitOptionalError(loc, "expects `x` to have an axis to work on, but it is a scalar: ", x.getType());
}
} // namespace

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

LogicalResult UnaryOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  types.push_back(op.getX().getType());
  return success();
}

LogicalResult UnaryGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  types.push_back(op.getX().getType());
  return sameType(loc, "dy", op.getDy(), op.getX()); // unary_grad_c1
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  types.push_back(op.getX().getType());
  return success();
}

LogicalResult BinaryOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  RankedTensorType x = tensor(op.getX()), y = tensor(op.getY());
  bool xHolds = isPart(y, x), yHolds = isPart(x, y);
  if (!xHolds && !yHolds) // binary_c1, binary_c2
    return emitOptionalError(loc, "expects one side to hold all axes of the other, but got ", x, " and ", y);
  types.push_back(xHolds ? x : y);
  return success();
}

LogicalResult SumToOp::verify() {
  if (!isPart(getType(), tensor(getX()))) // sum_to_c1, sum_to_c2
    return emitOpError("expects a result made of axes of ") << getX().getType() << ", but got " << getType();
  if (getInit() && getInit().getType() != getType())
    return emitOpError("expects `init` of the result's type ") << getType() << ", but got " << getInit().getType();
  return success();
}

LogicalResult PartialSumOp::verify() {
  RankedTensorType x = tensor(getX());
  ArrayRef<StringAttr> names = axesOf(x), kept = axesOf(getType());
  for (auto [axis, row] : llvm::enumerate(getRows())) {
    if (axis >= names.size() || names[axis] != row) // partial_sum_c1
      return emitOpError("expects `x` to start with the axes ") << getRows() << ", but got " << x;
    if (llvm::is_contained(kept, row)) // partial_sum_c2
      return emitOpError("expects a result without the axis ") << row << ", but got " << getType();
  }
  if (kept.empty() || kept.front().getValue() != "chunk")
    return emitOpError("expects a result whose first axis is 'chunk', but got ") << getType();
  return success();
}

LogicalResult IntegersOp::verify() {
  if (getType().getRank() == 1 && getType().getDimSize(0) == static_cast<int64_t>(getValues().size()))
    return success();
  return emitOpError("expects a vector of ") << getValues().size() << " integers, but its type is " << getType();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

#define WEFT_ROW_OP(Op)                                                                                      \
  LogicalResult Op::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) { \
    types.push_back(op.getX().getType());                                                                    \
    return needsAxis(loc, op.getX());                                                                        \
  }
#define WEFT_ROW_GRAD_OP(Op)                                                                                 \
  LogicalResult Op::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) { \
    types.push_back(op.getX().getType());                                                                    \
    return sameType(loc, "dy", op.getDy(), op.getX());                                                       \
  }
WEFT_ROW_OP(LayerNormOp)
WEFT_ROW_OP(RmsNormOp)
WEFT_ROW_OP(SoftmaxOp)
WEFT_ROW_GRAD_OP(LayerNormGradOp)
WEFT_ROW_GRAD_OP(RmsNormGradOp)
#undef WEFT_ROW_OP
#undef WEFT_ROW_GRAD_OP

LogicalResult SoftmaxGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  types.push_back(op.getY().getType());
  return sameType(loc, "dy", op.getDy(), op.getY());
}

LogicalResult RopeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  RankedTensorType x = tensor(op.getX());
  if (failed(needsAxis(loc, op.getX())))
    return failure();
  int64_t channels = x.getShape().back();
  if (!ShapedType::isDynamic(channels) && channels % 2 != 0) // rope_c1
    return emitOptionalError(loc, "expects an even number of channels to pair, but got ", channels, " in ", x);
  if (!isPart(tensor(op.getPosition()), x)) // rope_c2
    return emitOptionalError(loc, "expects positions over axes of ", x, ", but got ", op.getPosition().getType());
  types.push_back(x);
  return success();
}

//===----------------------------------------------------------------------===//
// Products and look-ups
//===----------------------------------------------------------------------===//

LogicalResult ContractOp::verify() {
  RankedTensorType a = tensor(getA()), b = tensor(getB());
  for (auto [name, size] : llvm::zip(axesOf(getType()), getType().getShape())) {
    int64_t inA = axisIndex(a, name), inB = axisIndex(b, name);
    if (inA < 0 && inB < 0) // contract_c1
      return emitOpError("expects each axis of the result in an operand, but neither ") << a << " nor " << b << " has " << name;
    if ((inA >= 0 && !sameSize(size, a.getDimSize(inA))) || (inB >= 0 && !sameSize(size, b.getDimSize(inB)))) // contract_c3
      return emitOpError("expects equal sizes of the axis ") << name << ", but got " << a << ", " << b << " and " << getType();
  }
  for (auto [side, other] : {std::pair(a, b), std::pair(b, a)})
    for (auto [name, size] : llvm::zip(axesOf(side), side.getShape())) {
      int64_t there = axisIndex(other, name);
      if (axisIndex(getType(), name) < 0 && (there < 0 || !sameSize(size, other.getDimSize(there)))) // contract_c2, c3
        return emitOpError("expects the axis ") << name << " of " << side << " in the result, or of equal size in " << other;
    }
  if (getInit() && getInit().getType() != getType())
    return emitOpError("expects `init` of the result's type ") << getType() << ", but got " << getInit().getType();
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  RankedTensorType table = tensor(op.getTable()), index = tensor(op.getIndex());
  if (table.getRank() == 0)
    return emitOptionalError(loc, "expects a table with an axis to look up, but got ", table);
  SmallVector<StringAttr> names(axesOf(index));
  SmallVector<int64_t> sizes(index.getShape());
  llvm::append_range(names, axesOf(table).drop_front());
  llvm::append_range(sizes, table.getShape().drop_front());
  types.push_back(namedTensor(names, sizes, table.getElementType()));
  return success();
}

LogicalResult PositionOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  types.push_back(op.getDocStart().getType());
  return success();
}
LogicalResult DocumentOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  types.push_back(op.getDocStart().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult AttendOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  RankedTensorType q = tensor(op.getQ()), v = tensor(op.getV());
  if (q.getRank() < 3 || v.getRank() < 3 || axesOf(q).empty() || axesOf(v).empty()) // attend_c1
    return emitOptionalError(loc, "expects q, k, v of axes batch, pos, heads..., channel, but got ", q, " and ", v);
  SmallVector<StringAttr> names(axesOf(q));
  SmallVector<int64_t> sizes(q.getShape());
  names.back() = axesOf(v).back();
  sizes.back() = v.getShape().back();
  types.push_back(namedTensor(names, sizes, q.getElementType()));
  types.push_back(withoutLast(q, q.getElementType()));
  return success();
}

LogicalResult AttendOp::verify() {
  RankedTensorType q = tensor(getQ()), k = tensor(getK()), v = tensor(getV());
  ArrayRef<StringAttr> kAxes = axesOf(k), vAxes = axesOf(v);
  if (k.getRank() < 3 || kAxes.drop_back() != vAxes.drop_back()) // attend_c3
    return emitOpError("expects v to have the axes of k but for its channel, but got ") << k << " and " << v;
  for (int64_t axis = 0; axis < k.getRank(); ++axis) {
    int64_t there = axisIndex(q, kAxes[axis]);
    if (axis != 1 && (there < 0 || !sameSize(k.getDimSize(axis), q.getDimSize(there)))) // attend_c2
      return emitOpError("expects the axes of k in q, but q is ") << q << " and k " << k;
  }
  if (getWindows()) {
    auto windows = tensor(getWindows());
    if (windows.getRank() != 1 || windows.getDimSize(0) != headCount(q)) // attend_c4
      return emitOpError("expects one window for each of ") << headCount(q) << " heads, but got " << windows;
  } else if (!getWindow()) {
    return emitOpError("expects `windows`, or the formula `window` while the model is rolled");
  }
  return success();
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  RankedTensorType logits = tensor(op.getLogits()), targets = tensor(op.getTargets());
  if (logits.getRank() < 1 || axesOf(logits).drop_back() != axesOf(targets)) // cross_entropy_c1
    return emitOptionalError(loc, "expects logits with the targets' axes and one more, but got ", logits, " and ", targets);
  types.push_back(RankedTensorType::get({}, logits.getElementType()));
  return success();
}

LogicalResult CrossEntropyGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  RankedTensorType logits = tensor(op.getLogits());
  types.push_back(logits);
  types.push_back(withoutLast(logits, logits.getElementType()));
  return success();
}

LogicalResult LossHeadOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  types.push_back(RankedTensorType::get({}, tensor(op.getX()).getElementType()));
  return success();
}

LogicalResult LossHeadGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  types.push_back(RankedTensorType::get({}, tensor(op.getX()).getElementType()));
  types.push_back(op.getX().getType());
  types.push_back(op.getTable().getType());
  return success();
}
