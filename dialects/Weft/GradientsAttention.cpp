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
  auto query = AttendGradQueryOp::create(builder, loc, getQ().getType(), getLse().getType(), getQ(), getK(),
                                         getV(), getWindows(), getDocStart(), getOut(), getLse(), dout,
                                         getKvOf(), getScaleAttr(), DenseI32ArrayAttr());
  auto keyValue = AttendGradKeyValueOp::create(
      builder, loc, getK().getType(), getV().getType(), getQ(), getK(), getV(), getWindows(), getDocStart(),
      getLse(), query.getDelta(), dout, getKvOf(), getScaleAttr(), DenseI32ArrayAttr());
  Gradients result{query.getDq(), keyValue.getDk(), keyValue.getDv()};
  result.resize(getNumOperands());
  return result;
}

Gradients MixOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  if (gradients[1] || getOffset()) {
    emitOpError(gradients[1] ? "the loss depends on the log-sums of weft.mix: expected a use of its first "
                               "result alone"
                             : "weft.mix with an offset reads a cache: expected training without one");
    return {};
  }
  Location loc = gradientLocation(*this);
  Value dout = gradients[0];
  Gradients result(getNumOperands());
  result[0] = MixGradValueOp::create(builder, loc, getV().getType(), getA(), getR(), getWindows(),
                                     getDocStart(), getLse(), dout, getKvOf());
  auto pattern =
      MixGradPatternOp::create(builder, loc, getA().getType(), getR().getType(), getV(), getA(), getR(),
                               getWindows(), getDocStart(), getOut(), getLse(), dout, getKvOf());
  result[1] = pattern.getDa();
  result[2] = pattern.getDr();
  return result;
}

/// Patterns are kept as they were drawn: only values have a gradient.
Gradients MixDenseOp::buildGradient(OpBuilder &builder, ValueRange gradients) {
  if (getOffset()) {
    emitOpError("weft.mix_dense with an offset reads a cache: expected training without one");
    return {};
  }
  Gradients result(getNumOperands());
  result[0] = MixDenseGradValueOp::create(builder, gradientLocation(*this), getV().getType(), getP(),
                                          getDocStart(), gradients[0], getKvOf());
  return result;
}

} // namespace weft
