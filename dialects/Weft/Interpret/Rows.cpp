//===- Rows.cpp - Functions of the last axis -------------------------------===//
#include "dialects/Weft/Interpret/Frame.h"

#include <cmath>

using namespace mlir;

namespace weft::interp {

/// Calls visit(first element, width) for each row of the last axis.
template <typename Visit> static void forEachRow(const Array &x, Visit &&visit) {
  int64_t width = x.shape.back();
  for (size_t start = 0; start + width <= x.data.size() && width > 0; start += width)
    visit(start, width);
}

static double meanOf(const double *x, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i)
    sum += x[i];
  return sum / static_cast<double>(width);
}

static double meanOfProducts(const double *x, const double *y, int64_t width) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i)
    sum += x[i] * y[i];
  return sum / static_cast<double>(width);
}

/// Normalised rows, and for each row what it was divided by, as its inverse.
struct Normalised {
  Array y;
  std::vector<double> inverse;
};

static Normalised normalise(const Array &x, double eps, bool centred) {
  Normalised result{x, {}};
  forEachRow(x, [&](size_t start, int64_t width) {
    double *y = &result.y.data[start];
    double mean = centred ? meanOf(y, width) : 0;
    for (int64_t i = 0; i < width; ++i)
      y[i] -= mean;
    double inverse = 1 / std::sqrt(meanOfProducts(y, y, width) + eps);
    for (int64_t i = 0; i < width; ++i)
      y[i] *= inverse;
    result.inverse.push_back(inverse);
  });
  return result;
}

static void normGrad(const Array &x, const Array &dy, double eps, bool centred, Array &dx) {
  Normalised normal = normalise(x, eps, centred);
  size_t row = 0;
  forEachRow(x, [&](size_t start, int64_t width) {
    const double *y = &normal.y.data[start], *dyRow = &dy.data[start];
    double shift = centred ? meanOf(dyRow, width) : 0, along = meanOfProducts(dyRow, y, width);
    for (int64_t i = 0; i < width; ++i)
      dx.data[start + i] = normal.inverse[row] * (dyRow[i] - shift - y[i] * along);
    ++row;
  });
}

LogicalResult evaluate(LayerNormOp op, Frame &frame) {
  frame.bind(op.getY(), normalise(frame[op.getX()], numberOf(op.getEps()), true).y);
  return success();
}

LogicalResult evaluate(RmsNormOp op, Frame &frame) {
  frame.bind(op.getY(), normalise(frame[op.getX()], numberOf(op.getEps()), false).y);
  return success();
}

LogicalResult evaluate(LayerNormGradOp op, Frame &frame) {
  normGrad(frame[op.getX()], frame[op.getDy()], numberOf(op.getEps()), true, frame.make(op.getDx()));
  return success();
}

LogicalResult evaluate(RmsNormGradOp op, Frame &frame) {
  normGrad(frame[op.getX()], frame[op.getDy()], numberOf(op.getEps()), false, frame.make(op.getDx()));
  return success();
}

LogicalResult evaluate(SoftmaxOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  Array &y = frame.make(op.getY());
  forEachRow(x, [&](size_t start, int64_t width) {
    const double *row = &x.data[start];
    double greatest = *std::max_element(row, row + width), sum = 0;
    for (int64_t i = 0; i < width; ++i)
      sum += y.data[start + i] = std::exp(row[i] - greatest);
    for (int64_t i = 0; i < width; ++i)
      y.data[start + i] /= sum;
  });
  return success();
}

LogicalResult evaluate(SoftmaxGradOp op, Frame &frame) {
  const Array &y = frame[op.getY()], &dy = frame[op.getDy()];
  Array &dx = frame.make(op.getDx());
  forEachRow(y, [&](size_t start, int64_t width) {
    double along = meanOfProducts(&y.data[start], &dy.data[start], width) * static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i)
      dx.data[start + i] = y.data[start + i] * (dy.data[start + i] - along);
  });
  return success();
}

LogicalResult evaluate(RopeOp op, Frame &frame) {
  const Array &x = frame[op.getX()], &position = frame[op.getPosition()];
  Array &y = frame.make(op.getY());
  Names rows = namesOf(op.getX().getType());
  rows.pop_back();
  int64_t width = x.shape.back(), half = width / 2;
  double base = numberOf(op.getBase()), sign = op.getInverse() ? -1 : 1;
  std::vector<double> frequency(half);
  for (int64_t i = 0; i < half; ++i)
    frequency[i] = std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
  int64_t start = 0;
  walk<1>(ArrayRef<int64_t>(x.shape).drop_back(), {stridesAlong(op.getPosition().getType(), rows)},
          [&](const std::array<int64_t, 1> &at) {
            const double *from = &x.data[start];
            for (int64_t i = 0; i < half; ++i) {
              double angle = sign * position.data[at[0]] * frequency[i];
              y.data[start + i] = from[i] * std::cos(angle) - from[i + half] * std::sin(angle);
              y.data[start + i + half] = from[i] * std::sin(angle) + from[i + half] * std::cos(angle);
            }
            start += width;
          });
  return success();
}

} // namespace weft::interp
