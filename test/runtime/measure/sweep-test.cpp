//===- sweep-test.cpp - The boundary rule and paired differences ------------===//
#include "runtime/measure/Sweep.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Stopping when the best is first at an edge, or going on the wrong way, fails.
TEST(Sweep, GoesOnUntilTheBestIsInside) {
  EXPECT_EQ(nextFactor({{0.5, 2.0}, {1, 1.5}, {2, 1.8}}), std::nullopt);
  EXPECT_EQ(nextFactor({{0.5, 2.0}, {1, 1.5}, {2, 1.4}}), 4);
  EXPECT_EQ(nextFactor({{0.5, 1.0}, {1, 1.5}, {2, 1.8}}), 0.25);
  EXPECT_EQ(nextFactor({{0.5, 2.0}, {1, 1.5}, {2, 1.4}, {4, 1.6}}), std::nullopt);
  EXPECT_EQ(nextFactor({{1, 1.5}}), 0.5);
}

TEST(Sweep, DivergedRunsAreNeverBest) {
  EXPECT_EQ(nextFactor({{0.5, 2.0}, {1, 1.5}, {2, kInfinity}}), std::nullopt);
  EXPECT_EQ(nextFactor({{1, std::nan("")}, {2, kInfinity}}), 0.5);
  EXPECT_EQ(bestFactor({{1, std::nan("")}}), std::nullopt);
  EXPECT_EQ(bestFactor({{0.5, 1.5}, {1, 1.5}}), 0.5);
}

// Differences by seed: those of the sums would be the same, their sd is not. By hand: 0.1, 0.3.
TEST(Sweep, DifferencesArePaired) {
  PairedDifference d = pairedDifference({{1, 1.0}, {2, 3.0}, {7, 0}}, {{1, 1.1}, {2, 3.3}, {9, 0}});
  EXPECT_EQ(d.pairs, 2);
  EXPECT_NEAR(d.mean, 0.2, 1e-12);
  EXPECT_NEAR(d.sd, std::sqrt(0.02), 1e-12);
  EXPECT_TRUE(d.withinNoise()); // 0.2 < 2 x 0.141
  EXPECT_FALSE(pairedDifference({{1, 1.0}, {2, 3.0}}, {{1, 1.2}, {2, 3.21}}).withinNoise());
  EXPECT_TRUE(pairedDifference({{1, 1.0}}, {{1, 2.0}}).withinNoise()); // one seed is no finding
}

} // namespace
} // namespace weft::rt
