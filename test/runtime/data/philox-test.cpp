//===- philox-test.cpp - Counter-based random numbers ---------------------===//
#include "runtime/core/Philox.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Words = std::array<uint32_t, 4>;

// The known-answer vectors that come with the paper's own library.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, Fnv1aKnownAnswers) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

// From a Python program of its own. Catches a swap of seed halves, of counter
// words, or of the two words of a double.
TEST(Philox, StreamsAreLaidOutAsDocumented) {
  Philox philox(0x123456789abcdef0, "init/block.3.attn.wq");
  EXPECT_EQ(philox.block(5), (Words{0xc5498cb6, 0x6c9d9797, 0x9b13e02b, 0x2f5a9d3f}));
  EXPECT_EQ(philox.block((uint64_t{1} << 40) + 3), (Words{0xfb6f435c, 0x61b37b5f, 0xd282a035, 0xb6516e39}));
  EXPECT_DOUBLE_EQ(philox.uniform(5), 0.42427966552103247);
  EXPECT_NEAR(philox.normal(10), 0.52023334747118299, 1e-14);
  EXPECT_NEAR(philox.normal(11), 1.2016997002408931, 1e-14);
}

// Box-Muller by libm's functions, from the words. Catches a wrong quadrant, a
// logarithm off by an exponent, an odd start that loses the second of a pair.
TEST(Philox, ManyNormalsAreBoxMullerOfTheBlocks) {
  Philox philox(11, "many");
  for (auto [first, count] :
       {std::pair<uint64_t, size_t>{0, 20000}, {1, 129}, {127, 1}, {(1ull << 40) + 1, 300}}) {
    std::vector<double> values(count);
    philox.normals(first, values);
    for (size_t i = 0; i < count; ++i) {
      uint64_t number = first + i;
      Words w = philox.block(number / 2);
      auto share = [](uint32_t low, uint32_t high) { return (uint64_t{high} << 32 | low) >> 11; };
      double radius = std::sqrt(-2 * std::log(static_cast<double>(share(w[0], w[1]) + 1) * 0x1p-53));
      double angle = 2 * M_PI * static_cast<double>(share(w[2], w[3])) * 0x1p-53;
      ASSERT_NEAR(values[i], radius * (number % 2 ? std::sin(angle) : std::cos(angle)), 1e-14) << number;
      ASSERT_EQ(values[i], philox.normal(number)) << number;
    }
  }
}

TEST(Philox, StreamsDiffer) {
  Philox a(1, "init/a"), b(1, "init/b"), c(2, "init/a");
  EXPECT_NE(a.block(0), b.block(0));
  EXPECT_NE(a.block(0), c.block(0));
  EXPECT_NE(a.block(0), a.block(uint64_t{1} << 32));
}

// Each bound is five standard deviations of the estimate for n = 200,000.
TEST(Philox, Moments) {
  Philox philox(7, "moments");
  constexpr int n = 200000;
  double mean = 0, square = 0, fourth = 0, uniform = 0, cross = 0;
  for (int i = 0; i < n; ++i) {
    double z = philox.normal(i), u = philox.uniform(i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    mean += z / n;
    square += z * z / n;
    fourth += z * z * z * z / n;
    uniform += u / n;
    cross += z * philox.normal(i ^ 1) / n;
  }
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96.0 / n));
  EXPECT_NEAR(uniform, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  // Each pair is counted twice: the estimate's deviation is sqrt(2 / n).
  EXPECT_NEAR(cross, 0, 5 * std::sqrt(2.0 / n));
}

} // namespace
} // namespace weft::rt
