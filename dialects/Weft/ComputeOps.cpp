//===- ComputeOps.cpp - Types of results, and what ops refuse -------------===//
//
// Constraint labels (binary_c1, ...) are those of the descriptions in
// ComputeOps.td; what ODS states itself is not checked again.
//
//===----------------------------------------------------------------------===//

#include "dialects/Weft/Constraints.h"

using namespace mlir;
using namespace weft;

namespace {
LogicalResult needsAxis(std::optional<Location> loc, Value x) {
  if (tensorOf(x).getRank() > 0)
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

LogicalResult UnaryGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                            Types &types) {
  types.push_back(op.getX().getType());
  return sameType(loc, "dy", op.getDy().getType(), op.getX().getType()); // unary_grad_c1
}

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                          Types &types) {
  types.push_back(op.getX().getType());
  return isScalar(loc, "noise", op.getNoise()); // dropout_c1
}

LogicalResult BinaryOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                         Types &types) {
  RankedTensorType x = tensorOf(op.getX()), y = tensorOf(op.getY());
  bool xHolds = isPart(y, x), yHolds = isPart(x, y);
  if (!xHolds && !yHolds) // binary_c1, binary_c2
    return emitOptionalError(loc, "expects one side to hold all axes of the other, but got ", x, " and ", y);
  if (x.getElementType() != y.getElementType()) // binary_c4
    return emitOptionalError(loc, "expects both sides of one element type, but got ", x, " and ", y);
  types.push_back(xHolds ? x : y); // binary_c3
  return success();
}

LogicalResult SumToOp::verify() {
  if (!isPart(getType(), tensorOf(getX()))) // sum_to_c1, sum_to_c2
    return emitOpError("expects a result made of axes of ") << getX().getType() << ", but got " << getType();
  return sameInit(getLoc(), getInit(), getType()); // sum_to_c3
}

LogicalResult PartialSumOp::verify() {
  RankedTensorType x = tensorOf(getX());
  ArrayRef<StringAttr> names = axesOf(x), kept = axesOf(getType());
  for (auto [axis, row] : llvm::enumerate(getRows())) {
    if (axis >= names.size() || names[axis] != row) // partial_sum_c1
      return emitOpError("expects `x` to start with the axes ") << getRows() << ", but got " << x;
    if (llvm::is_contained(kept, row)) // partial_sum_c2
      return emitOpError("expects a result without the axis ") << row << ", but got " << getType();
  }
  if (kept.empty() || kept.front().getValue() != "chunk") // partial_sum_c3
    return emitOpError("expects a result whose first axis is 'chunk', but got ") << getType();
  auto parts = namedTensor(kept.drop_front(), getType().getShape().drop_front(), x.getElementType());
  if (!isPart(parts, x)) // partial_sum_c4
    return emitOpError("expects axes of ") << x << " behind 'chunk', but got " << getType();
  return success();
}

LogicalResult IntegersOp::verify() {
  // integers_c1
  if (getType().getRank() == 1 && getType().getDimSize(0) == static_cast<int64_t>(getValues().size()))
    return success();
  return emitOpError("expects a vector of ")
         << getValues().size() << " integers, but its type is " << getType();
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
    return sameType(loc, "dy", op.getDy().getType(), op.getX().getType());                                   \
  }
WEFT_ROW_OP(LayerNormOp)
WEFT_ROW_OP(RmsNormOp)
WEFT_ROW_OP(SoftmaxOp)
WEFT_ROW_GRAD_OP(LayerNormGradOp)
WEFT_ROW_GRAD_OP(RmsNormGradOp)
#undef WEFT_ROW_OP
#undef WEFT_ROW_GRAD_OP

LogicalResult SoftmaxGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                              Types &types) {
  types.push_back(op.getY().getType());
  return sameType(loc, "dy", op.getDy().getType(), op.getY().getType());
}

LogicalResult RopeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  RankedTensorType x = tensorOf(op.getX());
  if (failed(needsAxis(loc, op.getX())))
    return failure();
  int64_t channels = x.getShape().back();
  if (!ShapedType::isDynamic(channels) && channels % 2 != 0) // rope_c1
    return emitOptionalError(loc, "expects an even number of channels to pair, but got ", channels, " in ",
                             x);
  if (!isPart(tensorOf(op.getPosition()), x)) // rope_c2
    return emitOptionalError(loc, "expects positions over axes of ", x, ", but got ",
                             op.getPosition().getType());
  types.push_back(x);
  auto table = op.getTable() ? tensorOf(op.getTable()) : RankedTensorType();
  if (table && (table.getRank() != 3 || !sameSize(2 * table.getDimSize(1), channels) ||
                table.getDimSize(2) != 2)) // rope_c3
    return emitOptionalError(loc, "expects a table of [positions, half of ", channels, ", 2], but got ",
                             table);
  return success();
}

//===----------------------------------------------------------------------===//
// Products and look-ups
//===----------------------------------------------------------------------===//

LogicalResult ContractOp::verify() {
  RankedTensorType a = tensorOf(getA()), b = tensorOf(getB());
  for (auto [name, size] : llvm::zip(axesOf(getType()), getType().getShape())) {
    int64_t inA = axisIndex(a, name), inB = axisIndex(b, name);
    if (inA < 0 && inB < 0) // contract_c1
      return emitOpError("expects each axis of the result in an operand, but neither ")
             << a << " nor " << b << " has " << name;
    if ((inA >= 0 && !sameSize(size, a.getDimSize(inA))) ||
        (inB >= 0 && !sameSize(size, b.getDimSize(inB)))) // contract_c3
      return emitOpError("expects equal sizes of the axis ")
             << name << ", but got " << a << ", " << b << " and " << getType();
  }
  for (auto [side, other] : {std::pair(a, b), std::pair(b, a)})
    for (auto [name, size] : llvm::zip(axesOf(side), side.getShape())) {
      int64_t there = axisIndex(other, name);
      if (axisIndex(getType(), name) < 0 &&
          (there < 0 || !sameSize(size, other.getDimSize(there)))) // contract_c2, c3
        return emitOpError("expects the axis ")
               << name << " of " << side << " in the result, or of equal size in " << other;
    }
  return sameInit(getLoc(), getInit(), getType()); // contract_c4
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType x = tensorOf(getX());
  if (x.hasStaticShape() && getType().hasStaticShape() &&
      x.getNumElements() != getType().getNumElements()) // reshape_c1
    return emitOpError("expects as many elements as ") << x << " has, but got " << getType();
  if (x.getElementType() != getType().getElementType()) // reshape_c2
    return emitOpError("expects elements of ") << x.getElementType() << ", but got " << getType();
  return success();
}

LogicalResult ConvertOp::verify() {
  if (withElement(getType(), tensorOf(getX()).getElementType()) != getX().getType()) // convert_c1
    return emitOpError("expects the sizes and axes of ") << getX().getType() << ", but got " << getType();
  return success();
}

/// A reshape to its own type, or back to the type of what was reshaped, is nothing.
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  auto inner = getX().getDefiningOp<ReshapeOp>();
  return inner && inner.getX().getType() == getType() ? inner.getX() : Value();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                         Types &types) {
  RankedTensorType table = tensorOf(op.getTable()), index = tensorOf(op.getIndex());
  if (table.getRank() == 0) // gather_c1
    return emitOptionalError(loc, "expects a table with an axis to look up, but got ", table);
  SmallVector<StringAttr> names(axesOf(index));
  SmallVector<int64_t> sizes(index.getShape());
  for (StringAttr name : axesOf(table).drop_front())
    if (llvm::is_contained(names, name)) // gather_c2
      return emitOptionalError(loc, "expects other axes in the rows of ", table, " than in ", index,
                               ", but both have ", name);
  llvm::append_range(names, axesOf(table).drop_front());
  llvm::append_range(sizes, table.getShape().drop_front());
  types.push_back(namedTensor(names, sizes, table.getElementType()));
  return success();
}

LogicalResult GatherGradOp::verify() {
  RankedTensorType index = tensorOf(getIndex()), dy = tensorOf(getDy()), table = getType();
  bool agrees = table.getRank() > 0 && dy.getRank() == index.getRank() + table.getRank() - 1;
  if (agrees) {
    SmallVector<StringAttr> names(axesOf(index));
    SmallVector<int64_t> sizes(index.getShape());
    llvm::append_range(names, axesOf(table).drop_front());
    llvm::append_range(sizes, table.getShape().drop_front());
    agrees = ArrayRef(names) == axesOf(dy) && ArrayRef(sizes) == dy.getShape();
  }
  if (!agrees) // gather_grad_c1
    return emitOpError("expects `dy` over the axes of ")
           << index << " and of the rows of " << table << ", but got " << dy;
  return sameInit(getLoc(), getInit(), table); // gather_grad_c2
}

/// Where the axes `names` stand side by side in `x`, or -1; `places` is set to their product.
static int64_t sideBySide(RankedTensorType x, ArrayAttr names, int64_t &places) {
  ArrayRef<StringAttr> axes = axesOf(x);
  if (names.empty()) {
    places = x.getNumElements();
    return axes.empty() && x.getRank() == 1 ? 0 : -1;
  }
  int64_t first = axisIndex(x, cast<StringAttr>(names[0]));
  places = 1;
  for (auto [n, name] : llvm::enumerate(names)) {
    if (first < 0 || axisIndex(x, cast<StringAttr>(name)) != first + static_cast<int64_t>(n))
      return -1;
    places *= x.getDimSize(first + static_cast<int64_t>(n));
  }
  return first;
}

/// The type of a take of `x`; the labels are those of weft.take.
static FailureOr<RankedTensorType> takenType(std::optional<Location> loc, RankedTensorType x, ArrayAttr axes,
                                             StringAttr axis, ArrayRef<int64_t> indices) {
  int64_t places = 0, first = sideBySide(x, axes, places);
  if (first < 0) // take_c1
    return emitOptionalError(loc, "expects the axes ", axes, " side by side in ", x);
  if (indices.empty()) // take_c3
    return emitOptionalError(loc, "expects one index at least to take of ", x);
  for (int64_t index : indices)
    if (index < 0 || index >= places) // take_c2
      return emitOptionalError(loc, "expects indices below ", places, ", but got ", index);
  size_t before = static_cast<size_t>(first), after = before + std::max<size_t>(axes.size(), 1);
  SmallVector<int64_t> sizes(x.getShape().take_front(before));
  sizes.push_back(static_cast<int64_t>(indices.size()));
  llvm::append_range(sizes, x.getShape().drop_front(after));
  SmallVector<StringAttr> names;
  if (!axes.empty()) {
    llvm::append_range(names, axesOf(x).take_front(before));
    llvm::append_range(names, axesOf(x).drop_front(after));
    if (llvm::is_contained(names, axis)) // take_c4
      return emitOptionalError(loc, "expects no other axis called ", axis, " in ", x);
    names.insert(names.begin() + first, axis);
  }
  return namedTensor(names, sizes, x.getElementType());
}

LogicalResult TakeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  FailureOr<RankedTensorType> type =
      takenType(loc, tensorOf(op.getX()), op.getAxes(), op.getAxisAttr(), op.getIndices());
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}

LogicalResult PutOp::verify() {
  FailureOr<RankedTensorType> type =
      takenType(getLoc(), getType(), getAxes(), getAxisAttr(), getIndices()); // put_c1
  return failed(type) ? failure() : sameType(getLoc(), "y", getY().getType(), *type);
}

LogicalResult PositionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                           Types &types) {
  types.push_back(op.getDocStart().getType());
  return isScalar(loc, "offset", op.getOffset()); // position_c1
}
LogicalResult DocumentOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor op, Types &types) {
  types.push_back(op.getDocStart().getType());
  return success();
}
