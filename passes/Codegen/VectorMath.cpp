//===- VectorMath.cpp - Functions of floats without libm ------------------===//
#include "passes/Codegen/VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace weft {

/// i32 with the shape of `like`.
static Type intsLike(Emitter &e, Type like) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), e.i32);
  return e.i32;
}

static Value horner(Emitter &e, Value x, ArrayRef<double> highestFirst) {
  Type type = x.getType();
  Value sum = e.constant(type, highestFirst.front());
  for (double coefficient : highestFirst.drop_front())
    sum = e.fma(sum, x, e.constant(type, coefficient));
  return sum;
}

/// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits: no
/// conversion, so NaN is no trouble.
constexpr double kRounder = 12582912;

/// 2^(n - less), n being the integer that `rounded` (x + kRounder) holds in its low bits.
static Value powerOfTwo(Emitter &e, Value rounded, int64_t less) {
  Type ints = intsLike(e, rounded.getType());
  Value bits = arith::BitcastOp::create(e.b, e.loc, ints, rounded);
  Value shifted = arith::ShLIOp::create(e.b, e.loc, bits, e.constantInt(ints, 23));
  Value biased = e.addi(shifted, (127 - less) << 23);
  return arith::BitcastOp::create(e.b, e.loc, rounded.getType(), biased);
}

/// 2^x by the GPU's unit for it.
static Value unitExp2(Emitter &e, Value x) {
  auto op = math::Exp2Op::create(e.b, e.loc, x);
  op.setFastmath(arith::FastMathFlags::afn);
  return op;
}

Value emitExp(Emitter &e, Value x) {
  if (e.approximate)
    return unitExp2(e, e.mul(x, e.constant(x.getType(), std::numbers::log2e)));
  constexpr double kLeast = -86.6, kMost = 88.722839;
  Type type = x.getType();
  Value tiny = e.less(x, e.constant(type, kLeast));
  Value huge = e.less(e.constant(type, kMost), x);
  Value inside = e.select(tiny, e.constant(type, kLeast), e.select(huge, e.constant(type, kMost), x));
  Value rounded = e.fma(inside, e.constant(type, std::numbers::log2e), e.constant(type, kRounder));
  Value power = e.sub(rounded, e.constant(type, kRounder));
  // ln 2 in two parts, the first exact in few bits (Cody and Waite).
  Value rest = e.fma(power, e.constant(type, -0.693359375), inside);
  rest = e.fma(power, e.constant(type, 2.12194440e-4), rest);
  Value tail = horner(
      e, rest,
      {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  Value mantissa = e.add(e.fma(tail, e.mul(rest, rest), rest), e.constant(type, 1));
  // By 2^(n - 1) and 2, so that n = 128 needs no exponent of its own.
  Value result = e.mul(e.mul(mantissa, powerOfTwo(e, rounded, 1)), e.constant(type, 2));
  result = e.select(huge, e.constant(type, std::numeric_limits<double>::infinity()), result);
  return e.select(tiny, e.constant(type, 0), result);
}

Value emitExp2OfNegative(Emitter &e, Value x) {
  if (e.approximate)
    return unitExp2(e, x);
  Type type = x.getType();
  Value least = e.constant(type, -126);
  Value tiny = e.less(x, least);
  Value inside = e.select(tiny, least, x);
  Value rounded = e.add(inside, e.constant(type, kRounder));
  Value rest = e.sub(inside, e.sub(rounded, e.constant(type, kRounder)));
  // Least squares on Chebyshev nodes of [-1/2, 1/2], relative error 2e-9.
  Value mantissa = horner(e, rest,
                          {1.533757682623347e-4, 1.3399860362963076e-3, 9.618519534374412e-3,
                           5.550328997518057e-2, 2.4022646608713777e-1, 6.931472056005097e-1, 1});
  Value result = e.mul(mantissa, powerOfTwo(e, rounded, 0));
  return e.select(tiny, e.constant(type, 0), result);
}

Value emitLog(Emitter &e, Value x) { return math::LogOp::create(e.b, e.loc, x); }

Value emitSigmoid(Emitter &e, Value x) {
  Value one = e.constant(x.getType(), 1);
  return e.div(one, e.add(one, emitExp(e, e.neg(x))));
}

/// x^n by squaring.
static Value wholePower(Emitter &e, Value x, int64_t n) {
  Value result;
  for (Value square = x;; square = e.mul(square, square)) {
    if (n & 1)
      result = result ? e.mul(result, square) : square;
    n >>= 1;
    if (n == 0)
      return result ? result : e.constant(x.getType(), 1);
  }
}

static Value generalPow(Emitter &e, Value x, Value y) {
  Type type = x.getType();
  auto constant = [&](double value) { return e.constant(type, value); };
  auto is = [&](arith::CmpFPredicate predicate, Value a, Value b) -> Value {
    return arith::CmpFOp::create(e.b, e.loc, predicate, a, b);
  };
  auto isWhole = [&](Value v) -> Value {
    return is(arith::CmpFPredicate::OEQ, v, math::FloorOp::create(e.b, e.loc, v));
  };
  Value size = math::AbsFOp::create(e.b, e.loc, x);
  Value result = emitExp(e, e.mul(y, emitLog(e, size)));
  Value even = isWhole(e.mul(y, constant(0.5)));
  Value odd = e.select(even, constant(1), constant(-1));
  Value negative =
      e.select(isWhole(y), e.mul(odd, result), constant(std::numeric_limits<double>::quiet_NaN()));
  result = e.select(is(arith::CmpFPredicate::OLT, x, constant(0)), negative, result);
  return e.select(is(arith::CmpFPredicate::OEQ, y, constant(0)), constant(1), result);
}

Value emitPow(Emitter &e, Value x, Value y, std::optional<double> power) {
  constexpr double kMostSquarings = 64;
  if (!power)
    return generalPow(e, x, y);
  if (*power == 0.5)
    return e.sqrt(x);
  if (*power == -0.5)
    return e.div(e.constant(x.getType(), 1), e.sqrt(x));
  if (*power == std::floor(*power) && std::abs(*power) <= kMostSquarings) {
    Value whole = wholePower(e, x, static_cast<int64_t>(std::abs(*power)));
    return *power < 0 ? e.div(e.constant(x.getType(), 1), whole) : whole;
  }
  return generalPow(e, x, y);
}

//===----------------------------------------------------------------------===//
// Elementwise functions and their derivatives
//===----------------------------------------------------------------------===//

constexpr double kGeluCubic = 0.044715;
static const double kGeluScale = std::sqrt(2 / std::numbers::pi);

/// sigmoid(2u) = (1 + tanh u) / 2 with the u of gelu_tanh.
static Value geluGate(Emitter &e, Value x) {
  Type type = x.getType();
  Value square = e.mul(x, x);
  Value inner =
      e.fma(square, e.constant(type, 2 * kGeluScale * kGeluCubic), e.constant(type, 2 * kGeluScale));
  return emitSigmoid(e, e.mul(x, inner));
}

/// The normal distribution function.
static Value normalCdf(Emitter &e, Value x) {
  Type type = x.getType();
  Value erf = math::ErfOp::create(e.b, e.loc, e.mul(x, e.constant(type, std::numbers::sqrt2 / 2)));
  return e.fma(erf, e.constant(type, 0.5), e.constant(type, 0.5));
}

Value emitUnary(Emitter &e, UnaryFn fn, Value x) {
  Type type = x.getType();
  switch (fn) {
  case UnaryFn::Neg:
    return e.neg(x);
  case UnaryFn::Exp:
    return emitExp(e, x);
  case UnaryFn::Log:
    return emitLog(e, x);
  case UnaryFn::Sqrt:
    return e.sqrt(x);
  case UnaryFn::Tanh:
    return math::TanhOp::create(e.b, e.loc, x);
  case UnaryFn::Sigmoid:
    return emitSigmoid(e, x);
  case UnaryFn::Silu:
    return e.mul(x, emitSigmoid(e, x));
  case UnaryFn::Gelu:
    return e.mul(x, normalCdf(e, x));
  case UnaryFn::GeluTanh:
    return e.mul(x, geluGate(e, x));
  case UnaryFn::Relu:
    return e.select(e.less(x, e.constant(type, 0)), e.constant(type, 0), x);
  }
  llvm_unreachable("a function without code");
}

static Value geluSlope(Emitter &e, Value x) {
  Type type = x.getType();
  Value square = e.mul(x, x);
  Value density = e.mul(emitExp(e, e.mul(square, e.constant(type, -0.5))),
                        e.constant(type, std::numbers::inv_sqrtpi / std::numbers::sqrt2));
  return e.fma(x, density, normalCdf(e, x));
}

static Value geluTanhSlope(Emitter &e, Value x) {
  Type type = x.getType();
  Value gate = geluGate(e, x);
  Value square = e.mul(x, x);
  Value inner =
      e.fma(square, e.constant(type, 6 * kGeluScale * kGeluCubic), e.constant(type, 2 * kGeluScale));
  Value rest = e.mul(e.sub(e.constant(type, 1), gate), e.mul(x, inner));
  return e.fma(gate, rest, gate);
}

static Value slope(Emitter &e, UnaryFn fn, Value x) {
  Type type = x.getType();
  Value one = e.constant(type, 1);
  switch (fn) {
  case UnaryFn::Neg:
    return e.constant(type, -1);
  case UnaryFn::Exp:
    return emitExp(e, x);
  case UnaryFn::Log:
    return e.div(one, x);
  case UnaryFn::Sqrt:
    return e.div(e.constant(type, 0.5), e.sqrt(x));
  case UnaryFn::Tanh: {
    // 1 - tanh^2 = 4 s (1 - s), s = sigmoid(-2 |x|): nothing cancels where it is small.
    Value size = math::AbsFOp::create(e.b, e.loc, x);
    Value y = emitSigmoid(e, e.mul(size, e.constant(type, -2)));
    return e.mul(e.constant(type, 4), e.mul(y, e.sub(one, y)));
  }
  case UnaryFn::Sigmoid: {
    Value y = emitSigmoid(e, x);
    return e.mul(y, e.sub(one, y));
  }
  case UnaryFn::Silu: {
    Value y = emitSigmoid(e, x);
    return e.mul(y, e.fma(x, e.sub(one, y), one));
  }
  case UnaryFn::Gelu:
    return geluSlope(e, x);
  case UnaryFn::GeluTanh:
    return geluTanhSlope(e, x);
  case UnaryFn::Relu:
    return e.select(e.less(e.constant(type, 0), x), one, e.constant(type, 0));
  }
  llvm_unreachable("a function without code");
}

Value emitUnaryGrad(Emitter &e, UnaryFn fn, Value x, Value dy) { return e.mul(dy, slope(e, fn, x)); }

} // namespace weft
