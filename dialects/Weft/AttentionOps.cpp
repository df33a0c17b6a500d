//===- AttentionOps.cpp - What attention and its caches refuse ------------===//
//
// Constraint labels (attend_c1, ...) are those of the descriptions in
// ComputeOps.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Weft/Constraints.h"

using namespace mlir;
using namespace weft;

LogicalResult AttendOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                         Types &types) {
  RankedTensorType q = tensorOf(op.getQ()), v = tensorOf(op.getV());
  ArrayRef<StringAttr> axes = axesOf(q);
  if (axes.size() < 3 || axesOf(v).size() < 3 || axes[0] != "batch" || axes[1] != "pos") // attend_c1
    return emitOptionalError(loc, "expects q, k, v of axes batch, pos, heads..., channel, but got ", q,
                             " and ", v);
  SmallVector<StringAttr> names(axes);
  SmallVector<int64_t> sizes(q.getShape());
  names.back() = axesOf(v).back();
  sizes.back() = v.getShape().back();
  types.push_back(namedTensor(names, sizes, q.getElementType()));
  types.push_back(withoutLast(q, q.getElementType()));
  return success();
}

/// One window for each head of `q`.
static LogicalResult verifyWindows(Operation *op, Value windows, RankedTensorType q) {
  RankedTensorType type = tensorOf(windows);
  if (type.getRank() == 1 && sameSize(type.getDimSize(0), headCount(q)))
    return success();
  return op->emitOpError("expects one window for each of ") << headCount(q) << " heads, but got " << type;
}

LogicalResult AttendOp::verify() {
  RankedTensorType q = tensorOf(getQ()), k = tensorOf(getK()), v = tensorOf(getV());
  ArrayRef<StringAttr> kAxes = axesOf(k), vAxes = axesOf(v);
  if (kAxes.size() < 3 || kAxes.drop_back() != vAxes.drop_back() ||
      !llvm::all_of_zip(k.getShape().drop_back(), v.getShape().drop_back(), sameSize)) // attend_c3
    return emitOpError("expects v to have the axes of k but for its channel, but got ") << k << " and " << v;
  for (int64_t axis = 0; axis < k.getRank(); ++axis) {
    int64_t there = axisIndex(q, kAxes[static_cast<size_t>(axis)]);
    if (axis != 1 && (there < 0 || !sameSize(k.getDimSize(axis), q.getDimSize(there)))) // attend_c2
      return emitOpError("expects the axes of k in q, but q is ") << q << " and k " << k;
  }
  if (!getWindows() && !getWindow()) // attend_c4
    return emitOpError("expects `windows`, or the formula `window` while the model is rolled");
  if (getWindows() && failed(verifyWindows(*this, getWindows(), q))) // attend_c4
    return failure();
  if (getDocStart()) {
    RankedTensorType starts = tensorOf(getDocStart());
    if (starts.getRank() != 2 || starts != leadingAxes(q, 2, starts.getElementType())) // attend_c5
      return emitOpError("expects document starts over the first two axes of ")
             << q << ", but got " << starts;
  }
  return isScalar(getLoc(), "offset", getOffset()); // attend_c6
}

LogicalResult AttendGradQueryOp::verify() {
  RankedTensorType q = tensorOf(getQ());
  auto rows = withoutLast(q, q.getElementType());
  if (failed(sameType(getLoc(), "dout", getDout().getType(), getOut().getType())) || // attend_grad_query_c1
      failed(sameType(getLoc(), "dq", getDq().getType(), q)) ||                      // attend_grad_query_c2
      failed(sameType(getLoc(), "lse", getLse().getType(), rows)) ||                 // attend_grad_query_c3
      failed(sameType(getLoc(), "delta", getDelta().getType(), rows)))               // attend_grad_query_c3
    return failure();
  return verifyWindows(*this, getWindows(), q); // attend_grad_query_c4
}

LogicalResult AttendGradKeyValueOp::verify() {
  RankedTensorType q = tensorOf(getQ());
  auto rows = withoutLast(q, q.getElementType());
  if (failed(sameType(getLoc(), "dk", getDk().getType(), getK().getType())) || // attend_grad_key_value_c1
      failed(sameType(getLoc(), "dv", getDv().getType(), getV().getType())) || // attend_grad_key_value_c2
      failed(sameType(getLoc(), "lse", getLse().getType(), rows)) ||           // attend_grad_key_value_c3
      failed(sameType(getLoc(), "delta", getDelta().getType(), rows)))         // attend_grad_key_value_c3
    return failure();
  return verifyWindows(*this, getWindows(), q); // attend_grad_key_value_c4
}

LogicalResult CacheUpdateOp::verify() {
  RankedTensorType cache = tensorOf(getCache()), value = tensorOf(getValue());
  bool agree = cache.getRank() == value.getRank() && cache.getRank() >= 2;
  for (int64_t axis = 0; agree && axis < cache.getRank(); ++axis)
    agree =
        axis == 1 || (sameSize(cache.getDimSize(axis), value.getDimSize(axis)) &&
                      axesOf(cache)[static_cast<size_t>(axis)] == axesOf(value)[static_cast<size_t>(axis)]);
  if (!agree) // cache_update_c1
    return emitOpError("expects a value with the axes of the cache but for the second, but got ")
           << cache << " and " << value;
  return sameType(getLoc(), "result", getType(), cache); // cache_update_c2
}
