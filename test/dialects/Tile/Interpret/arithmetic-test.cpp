//===- arithmetic-test.cpp - Loops over floats ----------------------------===//

#include "dialects/Tile/Interpret/Arithmetic.h"

#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace weft::tile;

namespace {

// Catches: truncation, and ties away from zero.
TEST(TileArithmetic, RoundsToBf16) {
  EXPECT_EQ(roundToBf16(1.0f), 1.0f);
  EXPECT_EQ(roundToBf16(0x1.01p0f), 0x1.00p0f);     // a tie: 1.0 is even
  EXPECT_EQ(roundToBf16(0x1.03p0f), 0x1.04p0f);     // a tie: the upper one is even
  EXPECT_EQ(roundToBf16(0x1.010002p0f), 0x1.02p0f); // just above the tie
  EXPECT_EQ(roundToBf16(-0x1.03p0f), -0x1.04p0f);
  EXPECT_EQ(roundToBf16(0x1.ffp0f), 2.0f); // carries into the exponent
  EXPECT_EQ(roundToBf16(0x1.fffffep127f), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(roundToBf16(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(roundToBf16(std::bit_cast<float>(0x7f800001u))));
}

// Catches: rows and columns swapped in any of the three.
TEST(TileArithmetic, AddsProducts) {
  std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 2, 0, 1, 1, 1, 1, 0}, result{100, 0, 0, 0, 0, 0};
  addProduct(result, a, b, 2, 3, 3);
  EXPECT_EQ(result, (std::vector<float>{104, 5, 4, 10, 11, 13}));
}

float apply(FloatFn fn, float a, float b = 0) {
  float result = 0;
  applyFloat(fn, {&result, 1}, {&a, 1}, {&b, 1});
  return result;
}

TEST(TileArithmetic, AppliesFloatFunctions) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(apply(FloatFn::FastExp2, -3), 0.125f);
  EXPECT_EQ(apply(FloatFn::FastExp2, -inf), 0.0f);
  EXPECT_EQ(apply(FloatFn::FastExp2, -127), 0.0f); // subnormal: flushed
  EXPECT_EQ(apply(FloatFn::Exp2, -127), 0x1p-127f);
  EXPECT_TRUE(std::isnan(apply(FloatFn::Maximum, nan, 1)));
  EXPECT_TRUE(std::isnan(apply(FloatFn::Maximum, 1, nan)));
  EXPECT_EQ(apply(FloatFn::MaxNumber, nan, 1), 1.0f);
  EXPECT_EQ(apply(FloatFn::Subtract, 1, 3), -2.0f);
}

int64_t apply(IntegerFn fn, unsigned bits, int64_t a, int64_t b) {
  int64_t result = 0;
  applyInteger(fn, bits, {&result, 1}, {&a, 1}, {&b, 1});
  return result;
}

TEST(TileArithmetic, WrapsIntegers) {
  EXPECT_EQ(apply(IntegerFn::Add, 32, 0x7fffffff, 1), -0x80000000LL);
  EXPECT_EQ(apply(IntegerFn::Multiply, 64, int64_t{1} << 40, 4), int64_t{1} << 42);
  EXPECT_EQ(apply(IntegerFn::FloorDivide, 32, -7, 2), -4);
  EXPECT_EQ(apply(IntegerFn::CeilDivide, 32, -7, 2), -3);
  EXPECT_EQ(apply(IntegerFn::CeilDivide, 32, 7, 2), 4);
  EXPECT_EQ(apply(IntegerFn::DivideUnsigned, 32, -2, 2), 0x7fffffff);
  EXPECT_EQ(apply(IntegerFn::ShiftRightUnsigned, 32, -1, 28), 15);
  EXPECT_EQ(apply(IntegerFn::ShiftRight, 32, -16, 2), -4);
}

// A NaN makes ordered comparisons false and unordered ones true.
TEST(TileArithmetic, Compares) {
  std::vector<float> a{1, 2, std::numeric_limits<float>::quiet_NaN()}, b{2};
  std::vector<int64_t> result(3);
  compareFloats(Compare::Less, false, result, a, b);
  EXPECT_EQ(result, (std::vector<int64_t>{1, 0, 0}));
  compareFloats(Compare::NotEqual, true, result, a, b);
  EXPECT_EQ(result, (std::vector<int64_t>{1, 0, 1}));
  std::vector<int64_t> x{-1, 3}, y{2}, order(2);
  compareIntegers(Compare::Less, true, order, x, y);
  EXPECT_EQ(order, (std::vector<int64_t>{1, 0}));
  compareIntegers(Compare::Less, false, order, x, y);
  EXPECT_EQ(order, (std::vector<int64_t>{0, 0}));
}

} // namespace
