//===- schedule-test.cpp - Rates by arithmetic ------------------*- C++ -*-===//
#include "runtime/train/LearningRate.h"
#include "runtime/train/Progress.h"
#include "runtime/train/Reducer.h"

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

Schedule make(Schedule::Kind kind, double warmup, double floor, Duration decay = {}) {
  return Schedule{kind, {warmup, false}, decay, floor};
}

TEST(RateShare, WarmsUpToThePeakAtItsLastStep) {
  Schedule schedule = make(Schedule::Kind::Constant, 4, 0);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 1, 100), 0.25); // counting from 0 would give 0
  EXPECT_DOUBLE_EQ(rateShare(schedule, 3, 100), 0.75);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 4, 100), 1);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 100, 100), 1);
}

TEST(RateShare, LinearReachesTheFloorAtTheEnd) {
  Schedule schedule = make(Schedule::Kind::Linear, 10, 0.2);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 10, 110), 1);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 60, 110), 0.6); // half way from 1 to 0.2
  EXPECT_DOUBLE_EQ(rateShare(schedule, 110, 110), 0.2);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 500, 110), 0.2);
}

TEST(RateShare, CosineIsHalfWayInTheMiddle) {
  Schedule schedule = make(Schedule::Kind::Cosine, 0, 0.1);
  EXPECT_NEAR(rateShare(schedule, 50, 100), 0.55, 1e-15);
  EXPECT_NEAR(rateShare(schedule, 25, 100), 0.1 + 0.9 * (1 + 0.70710678118654752) / 2, 1e-15);
  EXPECT_NEAR(rateShare(schedule, 100, 100), 0.1, 1e-15);
}

TEST(RateShare, WsdHoldsThenFalls) {
  Schedule schedule = make(Schedule::Kind::Wsd, 0, 0, {0.2, true}); // 20 of 100 steps
  schedule.warmup = {0.02, true};                                   // 2 of 100
  EXPECT_DOUBLE_EQ(rateShare(schedule, 1, 100), 0.5);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 80, 100), 1);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 85, 100), 0.75);
  EXPECT_DOUBLE_EQ(rateShare(schedule, 100, 100), 0);
}

TEST(RateShare, HasNoHoleWhenWarmupFillsTheRun) {
  EXPECT_DOUBLE_EQ(rateShare(make(Schedule::Kind::Cosine, 5, 0.1), 5, 5), 1);
  EXPECT_DOUBLE_EQ(rateShare(make(Schedule::Kind::Wsd, 5, 0.1, {3, false}), 5, 5), 1);
  EXPECT_DOUBLE_EQ(rateShare(make(Schedule::Kind::Linear, 10, 0.1), 3, 5), 0.3);
}

// A mean of means gives 1.5 and 4.0.
TEST(Reducer, DividesOnceByAllTargets) {
  Reducer accumulation, validation;
  accumulation.add(2.0, 1);
  accumulation.add(3.0, 3);
  EXPECT_DOUBLE_EQ(accumulation.mean(), 1.25);
  validation.add(3, 1);
  validation.add(20, 4);
  EXPECT_DOUBLE_EQ(validation.mean(), 4.6);
  EXPECT_TRUE(std::isnan(Reducer().mean()));
}

TEST(Progress, WritesTimesAndCountsForPeople) {
  EXPECT_EQ(describeSeconds(42.4), "42s");
  EXPECT_EQ(describeSeconds(59.6), "1m00s");
  EXPECT_EQ(describeSeconds(192), "3m12s");
  EXPECT_EQ(describeSeconds(7260), "2h01m");
  EXPECT_EQ(describeSeconds(176400), "2d01h");
  EXPECT_EQ(describeCount(850), "850");
  EXPECT_EQ(describeCount(12345), "12.3k");
  EXPECT_EQ(progressText(120, 2000, 3.41204, 12345, 130),
            "step 120/2000  loss 3.4120  12.3k tokens/s  2m10s left");
}

} // namespace
} // namespace weft::rt
