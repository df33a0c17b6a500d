//===- Elementwise.cpp - Constants, elementwise ops and sums ---------------===//
#include "dialects/Weft/Interpret/Frame.h"
#include "runtime/core/Philox.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace weft::interp {

LogicalResult evaluate(ConstantOp op, Frame &frame) {
  if (!llvm::isa<FloatAttr>(op.getValue()))
    return op.emitError() << "the constant is still a formula";
  frame.make(op.getResult(), numberOf(op.getValue()));
  return success();
}

LogicalResult evaluate(IntegersOp op, Frame &frame) {
  Array &result = frame.make(op.getResult());
  if (result.data.size() != op.getValues().size())
    return op.emitError() << "expected " << result.data.size() << " values, found " << op.getValues().size();
  llvm::copy(op.getValues(), result.data.begin());
  return success();
}

static constexpr double kTanhCubic = 0.044715;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
static double normalDensity(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
static double normalShare(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
static double tanhArgument(double x) {
  return std::sqrt(2 / std::numbers::pi) * (x + kTanhCubic * x * x * x);
}

static double apply(UnaryFn fn, double x) {
  switch (fn) {
  case UnaryFn::Neg:
    return -x;
  case UnaryFn::Exp:
    return std::exp(x);
  case UnaryFn::Log:
    return std::log(x);
  case UnaryFn::Sqrt:
    return std::sqrt(x);
  case UnaryFn::Tanh:
    return std::tanh(x);
  case UnaryFn::Sigmoid:
    return sigmoid(x);
  case UnaryFn::Silu:
    return x * sigmoid(x);
  case UnaryFn::Gelu:
    return x * normalShare(x);
  case UnaryFn::GeluTanh:
    return x / 2 * (1 + std::tanh(tanhArgument(x)));
  case UnaryFn::Relu:
    return x > 0 || std::isnan(x) ? x : 0;
  }
  llvm_unreachable("all functions are listed");
}

static double derivative(UnaryFn fn, double x) {
  switch (fn) {
  case UnaryFn::Neg:
    return -1;
  case UnaryFn::Exp:
    return std::exp(x);
  case UnaryFn::Log:
    return 1 / x;
  case UnaryFn::Sqrt:
    return 0.5 / std::sqrt(x);
  case UnaryFn::Tanh:
    return 1 - std::tanh(x) * std::tanh(x);
  case UnaryFn::Sigmoid:
    return sigmoid(x) * (1 - sigmoid(x));
  case UnaryFn::Silu:
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
  case UnaryFn::Gelu:
    return normalShare(x) + x * normalDensity(x);
  case UnaryFn::GeluTanh: {
    double t = std::tanh(tanhArgument(x));
    double slope = std::sqrt(2 / std::numbers::pi) * (1 + 3 * kTanhCubic * x * x);
    return (1 + t) / 2 + x / 2 * (1 - t * t) * slope;
  }
  case UnaryFn::Relu:
    return x > 0 ? 1 : 0;
  }
  llvm_unreachable("all functions are listed");
}

static double apply(BinaryFn fn, double x, double y) {
  switch (fn) {
  case BinaryFn::Add:
    return x + y;
  case BinaryFn::Sub:
    return x - y;
  case BinaryFn::Mul:
    return x * y;
  case BinaryFn::Div:
    return x / y;
  case BinaryFn::Pow:
    return std::pow(x, y);
  }
  llvm_unreachable("all functions are listed");
}

LogicalResult evaluate(UnaryOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  Array &y = frame.make(op.getY());
  for (size_t i = 0; i < x.data.size(); ++i)
    y.data[i] = apply(op.getFn(), x.data[i]);
  return success();
}

LogicalResult evaluate(UnaryGradOp op, Frame &frame) {
  const Array &x = frame[op.getX()], &dy = frame[op.getDy()];
  Array &dx = frame.make(op.getDx());
  for (size_t i = 0; i < x.data.size(); ++i)
    dx.data[i] = dy.data[i] * derivative(op.getFn(), x.data[i]);
  return success();
}

LogicalResult evaluate(BinaryOp op, Frame &frame) {
  const Array &x = frame[op.getX()], &y = frame[op.getY()];
  Type type = op.getZ().getType();
  Names names = namesOf(type);
  Array &z = frame.make(op.getZ());
  size_t i = 0;
  walk<2>(shapeOf(type), {stridesAlong(op.getX().getType(), names), stridesAlong(op.getY().getType(), names)},
          [&](const std::array<int64_t, 2> &at) {
            z.data[i++] = apply(op.getFn(), x.data[at[0]], y.data[at[1]]);
          });
  return success();
}

LogicalResult evaluate(SumToOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  Type from = op.getX().getType();
  Array &result = frame.make(op.getResult());
  if (op.getInit())
    result.data = arrange(frame[op.getInit()], op.getInit().getType(), namesOf(op.getType()), result.shape);
  size_t i = 0;
  walk<1>(shapeOf(from), {stridesAlong(op.getType(), namesOf(from))},
          [&](const std::array<int64_t, 1> &at) { result.data[at[0]] += x.data[i++]; });
  return success();
}

LogicalResult evaluate(PartialSumOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  Type from = op.getX().getType();
  size_t count = op.getRows().size();
  Array &result = frame.make(op.getResult());
  int64_t rows = product(shapeOf(from).take_front(count));
  int64_t width = product(shapeOf(from).drop_front(count));
  int64_t chunks = result.shape.front(), kept = chunks ? result.data.size() / chunks : 0;
  Names inner = namesOf(from);
  inner.erase(inner.begin(), inner.begin() + count);
  Sizes target = stridesAlong(op.getType(), inner);
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int64_t row = chunk * rows / chunks; row < (chunk + 1) * rows / chunks; ++row) {
      int64_t i = row * width;
      walk<1>(shapeOf(from).drop_front(count), {target},
              [&](const std::array<int64_t, 1> &at) { result.data[chunk * kept + at[0]] += x.data[i++]; });
    }
  return success();
}

LogicalResult evaluate(DropoutOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  Array &y = frame.make(op.getY());
  y.data = x.data;
  const Array *noise = frame.find(op.getNoise());
  if (!noise)
    return success();
  double rate = numberOf(op.getRate());
  StringRef stream = op.getStream();
  rt::Philox philox(static_cast<uint32_t>(static_cast<int64_t>(noise->data.front())),
                    std::string_view(stream.data(), stream.size()));
  for (size_t i = 0; i < y.data.size(); ++i)
    y.data[i] = philox.uniform(i) >= rate ? y.data[i] / (1 - rate) : 0;
  return success();
}

LogicalResult evaluate(ConvertOp op, Frame &frame) {
  const Array &x = frame[op.getX()];
  Array &y = frame.make(op.getY());
  const llvm::fltSemantics &to = cast<FloatType>(op.getType().getElementType()).getFloatSemantics();
  llvm::transform(x.data, y.data.begin(), [&](double value) {
    llvm::APFloat rounded(value);
    bool losesInfo = false;
    rounded.convert(to, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return rounded.convertToDouble();
  });
  return success();
}

} // namespace weft::interp
