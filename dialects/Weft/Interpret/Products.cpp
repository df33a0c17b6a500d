//===- Products.cpp - Contractions, look-ups and places --------------------===//
#include "dialects/Weft/Interpret/Frame.h"

using namespace mlir;

namespace weft::interp {

/// The axes of a contraction by what becomes of them.
struct Contraction {
  Names shared, left, right, summed; // in both and the result; in a; in b; in both, not in the result
  Sizes sharedSizes, leftSizes, rightSizes, summedSizes;
};

static Contraction classify(ContractOp op) {
  Type a = op.getA().getType(), b = op.getB().getType();
  Names namesA = namesOf(a), namesB = namesOf(b), kept = namesOf(op.getResult().getType());
  Contraction c;
  for (StringAttr name : kept)
    (contains(namesA, name) ? (contains(namesB, name) ? c.shared : c.left) : c.right).push_back(name);
  for (StringAttr name : namesA)
    if (!contains(kept, name))
      c.summed.push_back(name);
  c.sharedSizes = sizesAlong(a, c.shared), c.leftSizes = sizesAlong(a, c.left);
  c.rightSizes = sizesAlong(b, c.right), c.summedSizes = sizesAlong(a, c.summed);
  return c;
}

template <typename T> static SmallVector<T> join(ArrayRef<T> a, ArrayRef<T> b, ArrayRef<T> c) {
  SmallVector<T> all(a.begin(), a.end());
  all.append(b.begin(), b.end());
  all.append(c.begin(), c.end());
  return all;
}

/// c[m, n] += sum_k a[m, k] b[k, n].
static void multiply(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t s = 0; s < k; ++s) {
      double factor = a[i * k + s];
      const double *row = b + s * n;
      double *out = c + i * n;
      for (int64_t j = 0; j < n; ++j)
        out[j] += factor * row[j];
    }
}

LogicalResult evaluate(ContractOp op, Frame &frame) {
  Contraction c = classify(op);
  std::vector<double> a =
      arrange(frame[op.getA()], op.getA().getType(), join<StringAttr>(c.shared, c.left, c.summed),
              join<int64_t>(c.sharedSizes, c.leftSizes, c.summedSizes));
  std::vector<double> b =
      arrange(frame[op.getB()], op.getB().getType(), join<StringAttr>(c.shared, c.summed, c.right),
              join<int64_t>(c.sharedSizes, c.summedSizes, c.rightSizes));
  int64_t batch = product(c.sharedSizes), m = product(c.leftSizes), n = product(c.rightSizes);
  int64_t k = product(c.summedSizes);
  std::vector<double> sums(batch * m * n, 0.0);
  for (int64_t i = 0; i < batch; ++i)
    multiply(&a[i * m * k], &b[i * k * n], &sums[i * m * n], m, n, k);

  Type type = op.getResult().getType();
  Array &result = frame.make(op.getResult());
  if (op.getInit())
    result.data = arrange(frame[op.getInit()], op.getInit().getType(), namesOf(type), result.shape);
  size_t i = 0;
  walk<1>(join<int64_t>(c.sharedSizes, c.leftSizes, c.rightSizes),
          {stridesAlong(type, join<StringAttr>(c.shared, c.left, c.right))},
          [&](const std::array<int64_t, 1> &at) { result.data[at[0]] += sums[i++]; });
  return success();
}

LogicalResult evaluate(ReshapeOp op, Frame &frame) {
  frame.make(op.getResult()).data = frame[op.getX()].data;
  return success();
}

LogicalResult evaluate(GatherOp op, Frame &frame) {
  const Array &table = frame[op.getTable()], &index = frame[op.getIndex()];
  Array &y = frame.make(op.getY());
  int64_t rows = table.shape.front(), width = product(ArrayRef<int64_t>(table.shape).drop_front());
  for (size_t i = 0; i < index.data.size(); ++i) {
    auto row = static_cast<int64_t>(index.data[i]);
    if (row < 0 || row >= rows)
      return op.emitError() << "index " << row << " at place " << i << " is outside a table of " << rows
                            << " rows";
    std::copy_n(table.data.begin() + row * width, width, y.data.begin() + i * width);
  }
  return success();
}

LogicalResult evaluate(GatherGradOp op, Frame &frame) {
  const Array &index = frame[op.getIndex()], &dy = frame[op.getDy()];
  Array &table = frame.make(op.getDtable());
  if (const Array *init = frame.find(op.getInit()))
    table.data = init->data;
  int64_t rows = table.shape.front(), width = product(ArrayRef<int64_t>(table.shape).drop_front());
  for (size_t i = 0; i < index.data.size(); ++i) {
    auto row = static_cast<int64_t>(index.data[i]);
    if (row < 0 || row >= rows)
      return op.emitError() << "index " << row << " at place " << i << " is outside a table of " << rows
                            << " rows";
    for (int64_t c = 0; c < width; ++c)
      table.data[row * width + c] += dy.data[i * width + c];
  }
  return success();
}

LogicalResult evaluate(PositionOp op, Frame &frame) {
  const Array &start = frame[op.getDocStart()];
  Array &result = frame.make(op.getResult());
  double offset = op.getOffset() ? frame.scalar(op.getOffset()) : 0;
  int64_t width = start.shape.back();
  for (size_t i = 0; i < start.data.size(); ++i)
    result.data[i] = offset + static_cast<double>(static_cast<int64_t>(i) % width) - start.data[i];
  return success();
}

LogicalResult evaluate(DocumentOp op, Frame &frame) {
  const Array &start = frame[op.getDocStart()];
  Array &result = frame.make(op.getResult());
  int64_t width = start.shape.back();
  for (int64_t i = 0; i < static_cast<int64_t>(start.data.size()); ++i)
    result.data[i] = i % width == 0 ? 0 : result.data[i - 1] + (start.data[i] != start.data[i - 1] ? 1 : 0);
  return success();
}

} // namespace weft::interp
