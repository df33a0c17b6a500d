//===- Optimiser.cpp - Norm, clipping, AdamW and what Muon needs ------------===//
#include "dialects/Weft/Interpret/Frame.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace weft::interp {

LogicalResult evaluate(NormOp op, Frame &frame) {
  double sum = 0;
  for (double x : frame[op.getX()].data)
    sum += x * x;
  double factor = op.getFactor() ? frame.scalar(op.getFactor()) : 1.0;
  frame.make(op.getNorm(), factor * std::sqrt(sum));
  return success();
}

LogicalResult evaluate(ClipScaleOp op, Frame &frame) {
  double norm = frame.scalar(op.getNorm()), factor = frame.scalar(op.getFactor());
  double clip = op.getClip().convertToDouble();
  double scale = clip == 0 ? factor : factor * std::min(1.0, clip / (norm + 1e-6));
  frame.make(op.getScale(), std::isfinite(norm) ? scale : std::numeric_limits<double>::quiet_NaN());
  return success();
}

LogicalResult evaluate(AdamWOp op, Frame &frame) {
  const Array &p = frame[op.getP()], &m = frame[op.getM()], &v = frame[op.getV()];
  const Array &grad = frame[op.getGrad()], &hyper = frame[op.getHyper()];
  double scale = frame.scalar(op.getScale());
  Array &newP = frame.make(op.getNewP()), &newM = frame.make(op.getNewM()), &newV = frame.make(op.getNewV());
  newP.data = p.data, newM.data = m.data, newV.data = v.data;
  if (std::isnan(scale))
    return success();
  double rate = hyper.data[0], correctM = hyper.data[1], correctV = hyper.data[2];
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  double eps = op.getEps().convertToDouble(), decay = op.getDecay().convertToDouble();
  for (size_t i = 0; i < p.data.size(); ++i) {
    double g = scale * grad.data[i];
    newM.data[i] = beta1 * m.data[i] + (1 - beta1) * g;
    newV.data[i] = beta2 * v.data[i] + (1 - beta2) * g * g;
    newP.data[i] = p.data[i] * (1 - rate * decay) -
                   rate * (newM.data[i] * correctM) / (std::sqrt(newV.data[i] * correctV) + eps);
  }
  return success();
}

/// y <- a y + (b s + c s s) y with s = y y^T, row by row.
static void newtonSchulz(std::vector<double> &y, size_t rows, size_t columns) {
  auto [a, b, c] = PolarOp::kCoefficients;
  std::vector<double> s(rows * rows, 0.0), next(y.size(), 0.0);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < rows; ++j)
      for (size_t k = 0; k < columns; ++k)
        s[i * rows + j] += y[i * columns + k] * y[j * columns + k];
  for (size_t i = 0; i < rows; ++i) {
    std::vector<double> weights(rows, 0.0); // row i of a + b s + c s s
    for (size_t k = 0; k < rows; ++k)
      for (size_t j = 0; j < rows; ++j)
        weights[j] += c * s[i * rows + k] * s[k * rows + j];
    for (size_t j = 0; j < rows; ++j)
      weights[j] += b * s[i * rows + j] + (i == j ? a : 0);
    for (size_t j = 0; j < rows; ++j)
      for (size_t k = 0; k < columns; ++k)
        next[i * columns + k] += weights[j] * y[j * columns + k];
  }
  y = std::move(next);
}

/// y of the matrix x, both row-major.
static void polar(const double *x, double *y, size_t rows, size_t columns, int64_t iterations) {
  double sum = 0;
  for (size_t i = 0; i < rows * columns; ++i)
    sum += x[i] * x[i];
  // Rows are the shorter side: the result of the transpose is the transpose of the result.
  bool turned = rows > columns;
  std::vector<double> work(rows * columns);
  auto place = [&](size_t i, size_t k) { return turned ? k * rows + i : i * columns + k; };
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < columns; ++k)
      work[place(i, k)] = x[i * columns + k] / (std::sqrt(sum) + PolarOp::kFloor);
  for (int64_t step = 0; step < iterations; ++step)
    newtonSchulz(work, std::min(rows, columns), std::max(rows, columns));
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < columns; ++k)
      y[i * columns + k] = work[place(i, k)];
}

LogicalResult evaluate(PolarOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  auto rows = static_cast<size_t>(x.shape[x.shape.size() - 2]), columns = static_cast<size_t>(x.shape.back());
  Array &y = frame.make(op.getY());
  for (size_t start = 0; start < x.data.size(); start += rows * columns)
    polar(&x.data[start], &y.data[start], rows, columns, static_cast<int64_t>(op.getIterations()));
  return success();
}

LogicalResult evaluate(AcceptOp op, Frame &frame) {
  bool skipped = std::isnan(frame.scalar(op.getScale()));
  frame.make(op.getResult()).data = frame[skipped ? op.getOld() : op.getNext()].data;
  return success();
}

} // namespace weft::interp
