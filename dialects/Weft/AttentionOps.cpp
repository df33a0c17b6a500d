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
  if (op.getEntropies())
    types.push_back(types.back());
  return success();
}

/// One window for each head of `q`.
static LogicalResult verifyWindows(Operation *op, Value windows, RankedTensorType q) {
  RankedTensorType type = tensorOf(windows);
  if (type.getRank() == 1 && sameSize(type.getDimSize(0), headCount(q)))
    return success();
  return op->emitOpError("expects one window for each of ") << headCount(q) << " heads, but got " << type;
}

/// Nothing, or the key-value head of each head of `q`.
static LogicalResult verifyKvOf(Operation *op, Value kvOf, RankedTensorType q) {
  if (!kvOf || (tensorOf(kvOf).getRank() == 1 && sameSize(tensorOf(kvOf).getDimSize(0), headCount(q))))
    return success();
  return op->emitOpError("expects one key-value head for each of ")
         << headCount(q) << " heads, but got " << kvOf.getType();
}

/// Nothing, or a permutation of the heads of `type`.
static LogicalResult verifyOrder(Operation *op, std::optional<ArrayRef<int32_t>> order,
                                 RankedTensorType type) {
  if (!order)
    return success();
  SmallVector<int32_t> sorted(*order);
  llvm::sort(sorted);
  bool all = static_cast<int64_t>(sorted.size()) == headCount(type);
  for (auto [place, head] : llvm::enumerate(sorted))
    all = all && head == static_cast<int32_t>(place);
  if (all)
    return success();
  return op->emitOpError("expects an order that names each of ") << headCount(type) << " heads once";
}

LogicalResult AttendOp::verify() {
  RankedTensorType q = tensorOf(getQ()), k = tensorOf(getK()), v = tensorOf(getV());
  ArrayRef<StringAttr> kAxes = axesOf(k), vAxes = axesOf(v);
  if (kAxes.size() < 3 || kAxes.drop_back() != vAxes.drop_back() ||
      !llvm::all_of_zip(k.getShape().drop_back(), v.getShape().drop_back(), sameSize)) // attend_c3
    return emitOpError("expects v to have the axes of k but for its channel, but got ") << k << " and " << v;
  for (int64_t axis = 0; axis < k.getRank(); ++axis) {
    int64_t there = axisIndex(q, kAxes[static_cast<size_t>(axis)]);
    if (getKvOf() && axis > 0 && axis + 1 < k.getRank()) // attend_c7
      continue;
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
  if (failed(verifyKvOf(*this, getKvOf(), q)) || // attend_c7
      failed(verifyOrder(*this, getOrder(), q))) // attend_c8
    return failure();
  if (getOffset() && tensorOf(getOffset()).getNumElements() == 1) // attend_c6
    return success();
  return isScalar(getLoc(), "offset", getOffset());
}

LogicalResult AttendGradQueryOp::verify() {
  RankedTensorType q = tensorOf(getQ());
  auto rows = withoutLast(q, q.getElementType());
  if (failed(sameType(getLoc(), "dout", getDout().getType(), getOut().getType())) || // attend_grad_query_c1
      failed(sameType(getLoc(), "dq", getDq().getType(), q)) ||                      // attend_grad_query_c2
      failed(sameType(getLoc(), "lse", getLse().getType(), rows)) ||                 // attend_grad_query_c3
      failed(sameType(getLoc(), "delta", getDelta().getType(), rows)))               // attend_grad_query_c3
    return failure();
  if (failed(verifyKvOf(*this, getKvOf(), q)) || // attend_grad_query_c5
      failed(verifyOrder(*this, getOrder(), q))) // attend_grad_query_c6
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
  if (failed(verifyKvOf(*this, getKvOf(), q)) ||                // attend_grad_key_value_c5
      failed(verifyOrder(*this, getOrder(), tensorOf(getK())))) // attend_grad_key_value_c6
    return failure();
  return verifyWindows(*this, getWindows(), q); // attend_grad_key_value_c4
}

LogicalResult HeadStatisticsOp::verify() {
  RankedTensorType q = tensorOf(getQ()), out = tensorOf(getOut());
  auto rows = withoutLast(q, q.getElementType());
  if (failed(sameType(getLoc(), "out without its channel", withoutLast(out, q.getElementType()),
                      rows)) ||                                              // head_statistics_c1
      failed(sameType(getLoc(), "entropy", getEntropy().getType(), rows)) || // head_statistics_c2
      failed(verifyWindows(*this, getWindows(), q)) ||                       // head_statistics_c3
      failed(verifyKvOf(*this, getKvOf(), q)))                               // head_statistics_c4
    return failure();
  if (!sameSize(out.getShape().back(), tensorOf(getV()).getShape().back())) // head_statistics_c1
    return emitOpError("expects the channel of v in out, but got ") << tensorOf(getV()) << " and " << out;
  RankedTensorType type = getType();
  if (type.getRank() == 2 && sameSize(type.getDimSize(0), headCount(q)) &&
      type.getDimSize(1) == kHeadStatistics)
    return success();
  return emitOpError("expects a result of ") // head_statistics_c5
         << headCount(q) << " heads x " << kHeadStatistics << " sums, but got " << type;
}

//===----------------------------------------------------------------------===//
// Fixed patterns
//===----------------------------------------------------------------------===//

LogicalResult PatternStatisticsOp::verify() {
  RankedTensorType q = tensorOf(getQ()), k = tensorOf(getK());
  ArrayRef<StringAttr> axes = axesOf(q);
  if (axes.size() < 3 || axes[0] != "batch" || axes[1] != "pos" || k.getRank() < 3 ||
      !sameSize(k.getDimSize(0), q.getDimSize(0)) ||
      !sameSize(k.getDimSize(1), q.getDimSize(1))) // pattern_statistics_c1
    return emitOpError("expects q of axes batch, pos, heads..., channel and k of its batch and pos, but got ")
           << q << " and " << k;
  if (failed(sameType(getLoc(), "lse", getLse().getType(),
                      withoutLast(q, q.getElementType()))) || // pattern_statistics_c2
      failed(verifyWindows(*this, getWindows(), q)) ||        // pattern_statistics_c3
      failed(verifyKvOf(*this, getKvOf(), q)))                // pattern_statistics_c3
    return failure();
  RankedTensorType documents = tensorOf(getDocuments()), reach = tensorOf(getReach());
  const int64_t places = q.getDimSize(1), tokens = q.getDimSize(0) * places;
  if (reach.getRank() != 1 || !sameSize(reach.getDimSize(0), places) || documents.getRank() != 1 ||
      documents.getDimSize(0) > tokens) // pattern_statistics_c4
    return emitOpError("expects `reach` of ") << places << " places and at most " << tokens
                                              << " documents, but got " << reach << " and " << documents;
  auto has = [&](Value value, int64_t width) {
    RankedTensorType type = tensorOf(value);
    return type.getRank() == 2 && sameSize(type.getDimSize(0), headCount(q)) &&
           sameSize(type.getDimSize(1), width);
  };
  for (Value table : {getA(), getR(), getZ(), getColumns(), getDiagonals()})
    if (!has(table, places)) // pattern_statistics_c5
      return emitOpError("expects a, r, z, columns and diagonals of ")
             << headCount(q) << " heads x " << places << " places, but got " << table.getType();
  if (has(getSums(), kPatternSums))
    return success();
  return emitOpError("expects a result of ") // pattern_statistics_c6
         << headCount(q) << " heads x " << kPatternSums << " sums, but got " << getSums().getType();
}

LogicalResult MixOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op, Types &types) {
  RankedTensorType v = tensorOf(op.getV()), a = tensorOf(op.getA()), starts = tensorOf(op.getDocStart());
  if (v.getRank() < 3 || axesOf(v).size() < 3 || axesOf(v)[0] != "batch") // mix_c1
    return emitOptionalError(loc, "expects v of axes batch, keys, heads..., channel, but got ", v);
  if (a != tensorOf(op.getR()) || axesOf(a).size() != 2) // mix_c2
    return emitOptionalError(loc, "expects a and r of one type [heads, places], but got ", a, " and ",
                             op.getR().getType());
  if (axesOf(starts).size() != 2 || axesOf(starts)[0] != "batch" || axesOf(starts)[1] != "pos" ||
      !sameSize(starts.getDimSize(0), v.getDimSize(0))) // mix_c5
    return emitOptionalError(loc, "expects document starts over batch and pos, but got ", starts);
  SmallVector<StringAttr> names(axesOf(starts));
  SmallVector<int64_t> sizes(starts.getShape());
  names.append({axesOf(a)[0], axesOf(v).back()});
  sizes.append({a.getDimSize(0), v.getShape().back()});
  types.push_back(namedTensor(names, sizes, v.getElementType()));
  types.push_back(withoutLast(cast<RankedTensorType>(types.back()), v.getElementType()));
  return success();
}

/// Whether a mix's `windows` are followed by the first places of its heads.
static bool hasFirstPlaces(Value windows, Value a) {
  return tensorOf(windows).getNumElements() != tensorOf(a).getDimSize(0);
}

/// One window and, where they are given, one value head for each of `heads`; windows may be
/// followed by as many numbers of first places.
static LogicalResult verifyPerHead(Operation *op, Value windows, Value kvOf, int64_t heads) {
  for (Value list : {windows, kvOf}) {
    bool twice = list && list == windows && tensorOf(list).getRank() == 1 &&
                 sameSize(tensorOf(list).getDimSize(0), 2 * heads);
    if (list && !twice && (tensorOf(list).getRank() != 1 || !sameSize(tensorOf(list).getDimSize(0), heads)))
      return op->emitOpError("expects one number for each of ")
             << heads << " heads, but got " << list.getType();
  }
  return success();
}

LogicalResult MixOp::verify() {
  RankedTensorType v = tensorOf(getV()), a = tensorOf(getA());
  int64_t keys = v.getDimSize(1), places = a.getDimSize(1);
  if (!ShapedType::isDynamic(keys) && !ShapedType::isDynamic(places) && places < keys) // mix_c3
    return emitOpError("expects a pattern of at least ") << keys << " places, but it has " << places;
  if (failed(verifyPerHead(*this, getWindows(), getKvOf(), a.getDimSize(0)))) // mix_c4, mix_c6
    return failure();
  if (!getKvOf() && !sameSize(headCount(v), a.getDimSize(0))) // mix_c6
    return emitOpError("expects as many heads of values as of patterns, or `kv_of`, but got ")
           << v << " and " << a;
  if (getOffset() && !sameSize(tensorOf(getDocStart()).getDimSize(1), 1)) // mix_c7
    return emitOpError("expects one query a row beside `offset`, but got ") << getDocStart().getType();
  return isScalar(getLoc(), "offset", getOffset()); // mix_c7
}

LogicalResult MixGradValueOp::verify() {
  RankedTensorType dout = tensorOf(getDout()), dv = tensorOf(getDv()), a = tensorOf(getA());
  if (failed(sameType(getLoc(), "lse", getLse().getType(),
                      withoutLast(dout, dout.getElementType())))) // mix_grad_value_c1
    return failure();
  bool agree = dout.getRank() == 4 && dv.getRank() >= 3 && dv.getShape().back() == dout.getShape().back() &&
               dv.getShape().take_front(2) == dout.getShape().take_front(2) &&
               dout.getDimSize(2) == a.getDimSize(0) && (getKvOf() || headCount(dv) == a.getDimSize(0));
  if (!agree) // mix_grad_value_c2
    return emitOpError("expects values and results of one mix, but got ") << dv << " and " << dout;
  return verifyPerHead(*this, getWindows(), getKvOf(), a.getDimSize(0)); // mix_grad_value_c3
}

LogicalResult MixGradPatternOp::verify() {
  RankedTensorType out = tensorOf(getOut()), a = tensorOf(getA());
  if (failed(sameType(getLoc(), "dout", getDout().getType(), out)) || // mix_grad_pattern_c1
      failed(sameType(getLoc(), "lse", getLse().getType(),
                      withoutLast(out, out.getElementType()))) || // mix_grad_pattern_c2
      failed(sameType(getLoc(), "da", getDa().getType(), a)) ||   // mix_grad_pattern_c3
      failed(sameType(getLoc(), "dr", getDr().getType(), getR().getType())))
    return failure();
  return verifyPerHead(*this, getWindows(), getKvOf(), a.getDimSize(0)); // mix_grad_pattern_c4
}

//===----------------------------------------------------------------------===//
// Fixed patterns as tiles
//===----------------------------------------------------------------------===//

LogicalResult MixTableOp::verify() {
  RankedTensorType a = tensorOf(getA());
  if (a.getRank() != 2 || tensorOf(getR()) != a) // mix_table_c1
    return emitOpError("expects a and r of one type [heads, places], but got ")
           << a << " and " << getR().getType();
  for (Value result : {getWeights(), getInverses(), getLse()})
    if (failed(sameType(getLoc(), "a result by place", result.getType(), a))) // mix_table_c2
      return failure();
  if (failed(verifyPerHead(*this, getWindows(), Value(), a.getDimSize(0)))) // mix_table_c3
    return failure();
  const int64_t cells = kCore * kCore * (hasFirstPlaces(getWindows(), getA()) ? 2 : 1);
  for (Value result : {getAhead(), getBack()}) {
    RankedTensorType type = tensorOf(result);
    if (type.getRank() != 2 || !sameSize(type.getDimSize(0), a.getDimSize(0)) ||
        !sameSize(type.getDimSize(1), cells * coresOf(a.getDimSize(1)))) // mix_table_c4
      return emitOpError("expects tables of ")
             << a.getDimSize(0) << " heads x " << cells * coresOf(a.getDimSize(1)) << " numbers, but got "
             << type;
  }
  return success();
}

LogicalResult MixScaleOp::verify() {
  RankedTensorType x = tensorOf(getX()), y = tensorOf(getY()), scale = tensorOf(getScale()),
                   starts = tensorOf(getDocStart());
  bool agree = x.getRank() >= 3 && y.getRank() == 4 && starts.getRank() == 2 && scale.getRank() == 2 &&
               y.getShape().take_front(2) == starts.getShape() && x.getDimSize(0) == y.getDimSize(0) &&
               x.getDimSize(1) >= y.getDimSize(1) && x.getShape().back() == y.getShape().back() &&
               y.getDimSize(2) == scale.getDimSize(0);
  if (!agree) // mix_scale_c1, mix_scale_c2
    return emitOpError("expects y of the rows of ")
           << starts << " and the heads of " << scale << ", but got " << x << " and " << y;
  if (!getKvOf() && headCount(x) != y.getDimSize(2)) // mix_scale_c3
    return emitOpError("expects as many heads in x as in y, or `kv_of`, but got ") << x << " and " << y;
  return verifyPerHead(*this, Value(), getKvOf(), y.getDimSize(2)); // mix_scale_c3
}

LogicalResult MixProductOp::verify() {
  RankedTensorType x = tensorOf(getX()), y = tensorOf(getY()), table = tensorOf(getTable()),
                   scale = tensorOf(getScale()), starts = tensorOf(getDocStart());
  if (x.getRank() != 4 || starts.getRank() != 2 ||
      x.getShape().take_front(2) != starts.getShape()) // mix_product_c1
    return emitOpError("expects x of batch, pos, heads, channel, but got ") << x << " and " << starts;
  int64_t heads = x.getDimSize(2);
  const int64_t cells =
      MixTableOp::kCore * MixTableOp::kCore * (tensorOf(getWindows()).getNumElements() == 2 * heads ? 2 : 1);
  if (table.getRank() != 2 || table.getDimSize(0) != heads ||
      table.getDimSize(1) < cells * MixTableOp::coresOf(x.getDimSize(1))) // mix_product_c2
    return emitOpError("expects a table of ")
           << heads << " heads and " << x.getDimSize(1) << " places, but got " << table;
  if (scale.getRank() != 2 || scale.getDimSize(0) != heads ||
      scale.getDimSize(1) < x.getDimSize(1)) // mix_product_c3
    return emitOpError("expects a scale for ")
           << heads << " heads and " << x.getDimSize(1) << " places, but got " << scale;
  bool agree = y.getRank() >= 3 && y.getShape().take_front(2) == starts.getShape() &&
               y.getShape().back() == x.getShape().back() && (getKvOf() ? getBack() : headCount(y) == heads);
  if (!agree) // mix_product_c5
    return emitOpError("expects a result like x, with other heads through `back` and `kv_of` alone, but got ")
           << x << " and " << y;
  if (static_cast<bool>(getLse()) != static_cast<bool>(getRowLse()) ||
      (getLse() && getBack())) // mix_product_c6
    return emitOpError("expects lse and row_lse together, and not with `back`");
  return verifyPerHead(*this, getWindows(), getKvOf(), heads); // mix_product_c4
}

//===----------------------------------------------------------------------===//
// Whole patterns
//===----------------------------------------------------------------------===//

/// Whether `p` is one square of places a head.
static bool isWholePattern(RankedTensorType p) {
  return p.getRank() == 3 && sameSize(p.getDimSize(1), p.getDimSize(2));
}

LogicalResult MixDenseOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor op,
                                           Types &types) {
  RankedTensorType v = tensorOf(op.getV()), p = tensorOf(op.getP()), starts = tensorOf(op.getDocStart());
  if (v.getRank() < 3 || axesOf(v).size() < 3 || axesOf(v)[0] != "batch") // mix_dense_c1
    return emitOptionalError(loc, "expects v of axes batch, keys, heads..., channel, but got ", v);
  if (!isWholePattern(p) || axesOf(p).size() != 3) // mix_dense_c2
    return emitOptionalError(loc, "expects p of axes heads, places, places, but got ", p);
  if (axesOf(starts).size() != 2 || axesOf(starts)[0] != "batch" || axesOf(starts)[1] != "pos" ||
      !sameSize(starts.getDimSize(0), v.getDimSize(0))) // mix_dense_c4
    return emitOptionalError(loc, "expects document starts over batch and pos, but got ", starts);
  SmallVector<StringAttr> names(axesOf(starts));
  SmallVector<int64_t> sizes(starts.getShape());
  names.append({axesOf(p)[0], axesOf(v).back()});
  sizes.append({p.getDimSize(0), v.getShape().back()});
  types.push_back(namedTensor(names, sizes, v.getElementType()));
  return success();
}

/// One value head for each head of `p`: by its number, or by `kvOf`.
static LogicalResult verifyValueHeads(Operation *op, RankedTensorType value, RankedTensorType p, Value kvOf) {
  if (kvOf ? tensorOf(kvOf).getRank() == 1 && sameSize(tensorOf(kvOf).getDimSize(0), p.getDimSize(0))
           : sameSize(headCount(value), p.getDimSize(0)))
    return success();
  return op->emitOpError("expects as many heads of values as of patterns, or one number of `kv_of` a head, "
                         "but got ")
         << value << " and " << p;
}

LogicalResult MixDenseOp::verify() {
  RankedTensorType v = tensorOf(getV()), p = tensorOf(getP());
  int64_t keys = v.getDimSize(1), places = p.getDimSize(1);
  if (!ShapedType::isDynamic(keys) && !ShapedType::isDynamic(places) && places < keys) // mix_dense_c3
    return emitOpError("expects a pattern of at least ") << keys << " places, but it has " << places;
  if (failed(verifyValueHeads(*this, v, p, getKvOf()))) // mix_dense_c5
    return failure();
  if (getOffset() && !sameSize(tensorOf(getDocStart()).getDimSize(1), 1)) // mix_dense_c6
    return emitOpError("expects one query a row beside `offset`, but got ") << getDocStart().getType();
  return isScalar(getLoc(), "offset", getOffset()); // mix_dense_c6
}

LogicalResult MixDenseGradValueOp::verify() {
  RankedTensorType dout = tensorOf(getDout()), dv = tensorOf(getDv()), p = tensorOf(getP());
  if (!isWholePattern(p)) // mix_dense_grad_value_c1
    return emitOpError("expects p of axes heads, places, places, but got ") << p;
  bool agree = dout.getRank() == 4 && dv.getRank() >= 3 && dv.getShape().back() == dout.getShape().back() &&
               dv.getShape().take_front(2) == dout.getShape().take_front(2) &&
               dout.getDimSize(2) == p.getDimSize(0) && dv.getDimSize(1) <= p.getDimSize(1);
  if (!agree) // mix_dense_grad_value_c2
    return emitOpError("expects values and results of one mix of ")
           << p << ", but got " << dv << " and " << dout;
  return verifyValueHeads(*this, dv, p, getKvOf()); // mix_dense_grad_value_c3
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
