//===- Arithmetic.cpp - Loops over floats ---------------------------------===//

#include "dialects/Tile/Interpret/Arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace weft::tile {

float roundToBf16(float value) {
  if (std::isnan(value))
    return value;
  auto bits = std::bit_cast<uint32_t>(value);
  bits += 0x7fff + (bits >> 16 & 1);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

void addProduct(std::span<float> result, std::span<const float> a, std::span<const float> b, size_t rows,
                size_t depth, size_t columns) {
  for (size_t i = 0; i < rows; ++i) {
    float *__restrict sum = result.data() + i * columns;
    for (size_t k = 0; k < depth; ++k) {
      const float factor = a[i * depth + k];
      const float *__restrict row = b.data() + k * columns;
      for (size_t n = 0; n < columns; ++n)
        sum[n] += factor * row[n];
    }
  }
}

/// Operands of one element are repeated: a step of 0.
template <typename Result, typename Value, typename Fn>
static void each(std::span<Result> result, std::span<const Value> a, std::span<const Value> b, Fn fn) {
  const Value *left = a.data(), *right = b.data();
  const size_t leftStep = a.size() > 1, rightStep = b.size() > 1;
  if (leftStep && rightStep)
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = fn(left[i], right[i]);
  else
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = fn(left[i * leftStep], right[i * rightStep]);
}

static float fastExp2(float x) {
  float value = std::exp2f(x);
  return value < std::numeric_limits<float>::min() ? 0.0f : value;
}

/// NaN wins, as arith.maximumf has it.
static float maximum(float a, float b) { return std::isnan(a) || a > b ? a : b; }
static float minimum(float a, float b) { return std::isnan(a) || a < b ? a : b; }

void applyFloat(FloatFn fn, std::span<float> result, std::span<const float> a, std::span<const float> b) {
  auto two = [&](auto function) { each(result, a, b, function); };
  auto one = [&](auto function) { each(result, a, a, [&](float x, float) { return function(x); }); };
  switch (fn) {
  case FloatFn::Add:
    return two([](float x, float y) { return x + y; });
  case FloatFn::Subtract:
    return two([](float x, float y) { return x - y; });
  case FloatFn::Multiply:
    return two([](float x, float y) { return x * y; });
  case FloatFn::Divide:
    return two([](float x, float y) { return x / y; });
  case FloatFn::Maximum:
    return two(maximum);
  case FloatFn::Minimum:
    return two(minimum);
  case FloatFn::MaxNumber:
    return two([](float x, float y) { return std::fmax(x, y); });
  case FloatFn::MinNumber:
    return two([](float x, float y) { return std::fmin(x, y); });
  case FloatFn::Negate:
    return one([](float x) { return -x; });
  case FloatFn::Absolute:
    return one([](float x) { return std::fabs(x); });
  case FloatFn::Exp2:
    return one([](float x) { return std::exp2f(x); });
  case FloatFn::FastExp2:
    return one(fastExp2);
  case FloatFn::Log2:
    return one([](float x) { return std::log2f(x); });
  case FloatFn::Exp:
    return one([](float x) { return std::exp(x); });
  case FloatFn::Log:
    return one([](float x) { return std::log(x); });
  case FloatFn::Sqrt:
    return one([](float x) { return std::sqrt(x); });
  case FloatFn::ReverseSqrt:
    return one([](float x) { return 1 / std::sqrt(x); });
  case FloatFn::Tanh:
    return one([](float x) { return std::tanh(x); });
  }
}

void applyFma(std::span<float> result, std::span<const float> a, std::span<const float> b,
              std::span<const float> c) {
  const size_t aStep = a.size() > 1, bStep = b.size() > 1, cStep = c.size() > 1;
  // In double the product is exact; the sum is rounded to double, then to float: the same bits but for ties
  // that only a third rounding bit could tell apart. A call of fmaf without the instruction is 20 times slower.
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>(static_cast<double>(a[i * aStep]) * b[i * bStep] + c[i * cStep]);
}

template <typename Fn>
static void foldRows(std::span<float> parts, std::span<const float> frag, size_t rows, size_t columns,
                     Fn fn) {
  for (size_t row = 0; row < rows; ++row) {
    const float *from = frag.data() + row * columns;
    float *to = parts.data() + row * 4;
    for (size_t part = 0; part < 4; ++part)
      to[part] = fn(from[2 * part], from[2 * part + 1]);
    for (size_t column = 8; column < columns; column += 2)
      to[column % 8 / 2] = fn(fn(to[column % 8 / 2], from[column]), from[column + 1]);
  }
}

static float add(float a, float b) { return a + b; }

void foldColumns(bool maximum, std::span<float> parts, std::span<const float> frag, size_t rows,
                 size_t columns) {
  if (maximum)
    foldRows(parts, frag, rows, columns, [](float a, float b) { return std::fmax(a, b); });
  else
    foldRows(parts, frag, rows, columns, add);
}

void foldParts(bool maximum, std::span<float> parts) {
  for (size_t i = 0; i < parts.size(); i += 4) {
    float *part = parts.data() + i;
    float all = maximum ? std::fmax(std::fmax(part[0], part[1]), std::fmax(part[2], part[3]))
                        : add(add(part[0], part[1]), add(part[2], part[3]));
    std::fill_n(part, 4, all);
  }
}

template <typename Value, typename Fn>
static void compareEach(Compare how, std::span<int64_t> result, std::span<const Value> a,
                        std::span<const Value> b, Fn view) {
  auto with = [&](auto compare) {
    each(result, a, b, [&](Value x, Value y) -> int64_t { return compare(view(x), view(y)); });
  };
  switch (how) {
  case Compare::Equal:
    return with([](auto x, auto y) { return x == y; });
  case Compare::NotEqual:
    return with([](auto x, auto y) { return x != y; });
  case Compare::Less:
    return with([](auto x, auto y) { return x < y; });
  case Compare::LessEqual:
    return with([](auto x, auto y) { return x <= y; });
  case Compare::Greater:
    return with([](auto x, auto y) { return x > y; });
  case Compare::GreaterEqual:
    return with([](auto x, auto y) { return x >= y; });
  }
}

void compareFloats(Compare how, bool orUnordered, std::span<int64_t> result, std::span<const float> a,
                   std::span<const float> b) {
  compareEach(how, result, a, b, [](float x) { return x; });
  const size_t aStep = a.size() > 1, bStep = b.size() > 1;
  for (size_t i = 0; i < result.size(); ++i)
    if (std::isnan(a[i * aStep]) || std::isnan(b[i * bStep]))
      result[i] = orUnordered;
}

void compareIntegers(Compare how, bool isSigned, std::span<int64_t> result, std::span<const int64_t> a,
                     std::span<const int64_t> b) {
  if (isSigned)
    compareEach(how, result, a, b, [](int64_t x) { return x; });
  else
    compareEach(how, result, a, b, [](int64_t x) { return static_cast<uint64_t>(x); });
}

int64_t cutTo(unsigned bits, int64_t value) {
  if (bits >= 64)
    return value;
  if (bits == 1)
    return value & 1;
  const unsigned shift = 64 - bits;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
}

static int64_t floorDivide(int64_t x, int64_t y) { return x / y - ((x % y != 0) && ((x < 0) != (y < 0))); }

static int64_t integerOf(IntegerFn fn, unsigned bits, int64_t x, int64_t y) {
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t ux = static_cast<uint64_t>(x) & mask, uy = static_cast<uint64_t>(y) & mask;
  auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
  switch (fn) {
  case IntegerFn::Add:
    return wrap(ux + uy);
  case IntegerFn::Subtract:
    return wrap(ux - uy);
  case IntegerFn::Multiply:
    return wrap(ux * uy);
  case IntegerFn::Divide:
    return y ? x / y : 0;
  case IntegerFn::Remainder:
    return y ? x % y : 0;
  case IntegerFn::FloorDivide:
    return y ? floorDivide(x, y) : 0;
  case IntegerFn::CeilDivide:
    return y ? -floorDivide(-x, y) : 0;
  case IntegerFn::Maximum:
    return std::max(x, y);
  case IntegerFn::Minimum:
    return std::min(x, y);
  case IntegerFn::DivideUnsigned:
    return uy ? wrap(ux / uy) : 0;
  case IntegerFn::RemainderUnsigned:
    return uy ? wrap(ux % uy) : 0;
  case IntegerFn::MaximumUnsigned:
    return wrap(std::max(ux, uy));
  case IntegerFn::MinimumUnsigned:
    return wrap(std::min(ux, uy));
  case IntegerFn::And:
    return x & y;
  case IntegerFn::Or:
    return x | y;
  case IntegerFn::Xor:
    return x ^ y;
  case IntegerFn::ShiftLeft:
    return uy < bits ? wrap(ux << uy) : 0;
  case IntegerFn::ShiftRight:
    return x >> std::min<uint64_t>(uy, 63);
  case IntegerFn::ShiftRightUnsigned:
    return uy < bits ? wrap(ux >> uy) : 0;
  }
  return 0;
}

void applyInteger(IntegerFn fn, unsigned bits, std::span<int64_t> result, std::span<const int64_t> a,
                  std::span<const int64_t> b) {
  each(result, a, b, [&](int64_t x, int64_t y) { return cutTo(bits, integerOf(fn, bits, x, y)); });
}

} // namespace weft::tile
