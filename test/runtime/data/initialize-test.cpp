//===- initialize-test.cpp - Starting values of state entries -------------===//
#include "runtime/core/Initialize.h"

#include "runtime/core/Philox.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Kind = InitRule::Kind;

Tensor make(ElementType type, std::vector<int64_t> shape, InitRule rule, uint64_t seed = 3) {
  Tensor tensor(type, std::move(shape));
  EXPECT_TRUE(initialize(tensor, rule, "block.0.w", seed).ok());
  return tensor;
}

struct Moments {
  double mean = 0, deviation = 0, low = 1e300, high = -1e300;
};

Moments momentsOf(const Tensor &tensor) {
  Moments m;
  double square = 0, n = static_cast<double>(tensor.elements());
  for (float x : tensor.as<float>()) {
    m.mean += x / n;
    square += double{x} * x / n;
    m.low = std::min<double>(m.low, x);
    m.high = std::max<double>(m.high, x);
  }
  m.deviation = std::sqrt(square - m.mean * m.mean);
  return m;
}

TEST(Initialize, Constant) {
  Tensor tensor = make(ElementType::F32, {3, 5}, {Kind::Constant, 1.5, 0});
  for (float x : tensor.as<float>())
    EXPECT_EQ(x, 1.5f);
}

// 1.2 million elements: large enough that several threads share the work, so
// that a chunk counted from its own start would show as a wrong element.
TEST(Initialize, NormalIsTheStreamOfItsName) {
  Tensor tensor = make(ElementType::F32, {1200, 1001}, {Kind::Normal, 0.02, 0});
  Philox philox(3, "init/block.0.w");
  for (int64_t i : {0L, 1L, 4095L, 4096L, 600599L, 600600L, 600601L, 1201199L})
    EXPECT_EQ(tensor.as<float>()[i], static_cast<float>(0.02 * philox.normal(i))) << i;
  Moments m = momentsOf(tensor);
  EXPECT_NEAR(m.mean, 0, 5 * 0.02 / std::sqrt(1.2e6));
  EXPECT_NEAR(m.deviation, 0.02, 5 * 0.02 / std::sqrt(2.4e6));
}

TEST(Initialize, Uniform) {
  Moments m = momentsOf(make(ElementType::F32, {500, 400}, {Kind::Uniform, -1, 3}));
  EXPECT_NEAR(m.mean, 1, 5 * 4 / std::sqrt(12 * 2e5));
  EXPECT_NEAR(m.deviation, 4 / std::sqrt(12), 0.01);
  EXPECT_GE(m.low, -1);
  EXPECT_LE(m.high, 3);
  EXPECT_LT(m.low, -0.999);
  EXPECT_GT(m.high, 2.999);
}

// Std of a normal cut at +-2: sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)) = 0.879626.
// Clamping instead of drawing again would give 0.9594.
TEST(Initialize, Truncated) {
  Moments m = momentsOf(make(ElementType::F32, {500, 400}, {Kind::Truncated, 0.5, 0}));
  EXPECT_NEAR(m.mean, 0, 5 * 0.44 / std::sqrt(2e5));
  EXPECT_NEAR(m.deviation, 0.5 * 0.879626, 0.003);
  EXPECT_GE(m.low, -1);
  EXPECT_LE(m.high, 1);
  EXPECT_GT(m.high, 0.999);
}

TEST(Initialize, OrthogonalBothWays) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{24, 60}, {60, 24}, {32, 32}}) {
    Tensor tensor = make(ElementType::F64, {rows, columns / 4, 4}, {Kind::Orthogonal, 1.25, 0});
    auto w = tensor.as<double>();
    bool wide = rows <= columns;
    int64_t count = wide ? rows : columns, size = wide ? columns : rows;
    auto at = [&](int64_t vector, int64_t k) {
      return wide ? w[vector * columns + k] : w[k * columns + vector];
    };
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < count; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < size; ++k)
          sum += at(i, k) * at(j, k);
        EXPECT_NEAR(sum, i == j ? 1.25 * 1.25 : 0, 1e-13);
      }
  }
}

// Rounding to nearest even: 1 + 2^-8 lies midway and goes to 1, 1 + 3 x 2^-8 to
// 1 + 2^-6. Truncation would give 1 + 2^-7 for the second.
TEST(Initialize, Bf16RoundsToNearestEven) {
  EXPECT_EQ(make(ElementType::BF16, {1}, {Kind::Constant, 1 + 0x1p-8, 0}).as<uint16_t>()[0], 0x3f80);
  EXPECT_EQ(make(ElementType::BF16, {1}, {Kind::Constant, 1 + 3 * 0x1p-8, 0}).as<uint16_t>()[0], 0x3f82);
}

TEST(Initialize, DependsOnNameSeedAndPlaceAlone) {
  InitRule rule{Kind::Normal, 1, 0};
  Tensor a(ElementType::F32, {64}), longer(ElementType::F32, {1000}), other(ElementType::F32, {64});
  ASSERT_TRUE(initialize(a, rule, "x", 1).ok());
  ASSERT_TRUE(initialize(longer, rule, "x", 1).ok());
  ASSERT_TRUE(initialize(other, rule, "y", 1).ok());
  EXPECT_TRUE(std::equal(a.as<float>().begin(), a.as<float>().end(), longer.as<float>().begin()));
  EXPECT_NE(a.bytes, other.bytes);
  ASSERT_TRUE(initialize(other, rule, "x", 2).ok());
  EXPECT_NE(a.bytes, other.bytes);
  ASSERT_TRUE(initialize(other, rule, "x", 1).ok());
  EXPECT_EQ(a.bytes, other.bytes);
}

TEST(Initialize, IntegersAreRefused) {
  Tensor tensor(ElementType::I32, {2});
  absl::Status status = initialize(tensor, {}, "cache/pos", 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("cache/pos"), absl::string_view::npos);
}

} // namespace
} // namespace weft::rt
