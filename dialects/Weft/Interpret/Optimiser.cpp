//===- Optimiser.cpp - Norm, clipping and AdamW ----------------------------===//
#include "dialects/Weft/Interpret/Frame.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace weft::interp {

LogicalResult evaluate(NormOp op, Frame &frame) {
  double sum = 0;
  for (double x : frame[op.getX()].data)
    sum += x * x;
  double factor = frame.scalar(op.getFactor());
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

} // namespace weft::interp
