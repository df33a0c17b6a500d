//===- GradientsAttention.cpp - Gradient of attend ------------------------===//
#include "dialects/Weft/Gradients.h"

using namespace mlir;

namespace weft {

/// Why `op` has no gradient for these gradients of its results, or null.
static const char *refusal(AttendOp op, ValueRange gradients) {
  if (gradients[1])
    return "the loss depends on the log-sums of weft.attend: expected a use of its first result alone";
  if (op.getOffset())
    return "weft.attend with an offset reads a cache: expected training without one";
  if (!op.getWindows())
    return "weft.attend without `windows` has no gradient: unroll layers first";
  if (!op.getDocStart())
    return "weft.attend without `documents` has no gradient: give it doc_start";
  return nullptr;
}

Gradients AttendOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  if (const char *reason = refusal(*this, gradients)) {
    emitOpError(reason);
    return {};
  }
  Location loc = gradientLocation(*this);
  Value dout = gradients[0];
  auto query =
      AttendGradQueryOp::create(builder, loc, getQ().getType(), getLse().getType(), getQ(), getK(), getV(),
                                getWindows(), getDocStart(), getOut(), getLse(), dout, getScaleAttr());
  auto keyValue = AttendGradKeyValueOp::create(builder, loc, getK().getType(), getV().getType(), getQ(),
                                               getK(), getV(), getWindows(), getDocStart(), getLse(),
                                               query.getDelta(), dout, getScaleAttr());
  Gradients result{query.getDq(), keyValue.getDk(), keyValue.getDv()};
  result.resize(getNumOperands());
  return result;
}

} // namespace weft
