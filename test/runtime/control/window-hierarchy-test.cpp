//===- window-hierarchy-test.cpp - Groups of heads ---------------*- C++ -*-===//
#include "runtime/control/WindowHierarchy.h"
#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

Feature feature(double a, double b) { return {a, b}; }

TEST(WindowFeatures, SimilarityOfTheDefinition) {
  EXPECT_DOUBLE_EQ(similarity(feature(3, 4), feature(6, 8), 16), -7);
  EXPECT_DOUBLE_EQ(similarity(feature(3, 4), feature(4, 3), 16), 0.96);
  EXPECT_EQ(cosine(feature(0, 0), feature(1, 0)), 0);
  EXPECT_EQ(cosine(feature(1e-7, 0), feature(1, 0)), 0); // a norm below 1e-6
}

// Two rows of two channels: q = 1, -1, 3, 1; k = 2 everywhere; v as q; entropies .25 and 1.
TEST(WindowFeatures, OfSums) {
  const std::vector<float> sums = {6, 4, 12, 8, 8, 16, 6, 4, 12, 1.25f, 36, 2};
  const Feature found = *featureOf(sums, 2, 2, 0.5);
  const Feature expected = {1.5, std::sqrt(2.0), 2, 0, 1.5, std::sqrt(2.0), 0.625, 3, 0.5};
  for (int i = 0; i < kFeatureCount; ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

TEST(WindowFeatures, NoneWithoutRowsOrNumbers) {
  std::vector<float> sums(12, 1);
  EXPECT_TRUE(featureOf(sums, 1, 1, 1));
  sums[10] = std::nanf("");
  EXPECT_FALSE(featureOf(sums, 1, 1, 1));
  sums[10] = 1, sums[11] = 0;
  EXPECT_FALSE(featureOf(sums, 1, 1, 1));
}

TEST(WindowFeatures, AverageStartsAtTheFirst) {
  Feature average = {1};
  smooth(average, {2}, 0.9);
  EXPECT_NEAR(average[0], 1.1, 1e-15);
  smooth(average, {2}, 0.9);
  EXPECT_NEAR(average[0], 1.19, 1e-15);
}

std::vector<int64_t> counts(int64_t units, bool capped = true) {
  std::vector<int64_t> result;
  for (const LevelShape &shape : levelShapes({2, 2, 2, 2}, units, capped))
    result.push_back(shape.items);
  return result;
}

// The table of the definition. Catches a cap of units / 2 without the 2, and levels that repeat.
TEST(WindowHierarchy, CapsLevels) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(counts(1), List{1});
  EXPECT_EQ(counts(2), List{2});
  EXPECT_EQ(counts(3), List{2});
  EXPECT_EQ(counts(4), List{2});
  EXPECT_EQ(counts(6), (List{3, 2}));
  EXPECT_EQ(counts(8), (List{4, 2}));
  EXPECT_EQ(counts(12), (List{6, 4, 2}));
  EXPECT_EQ(counts(16), (List{8, 4, 2}));
  EXPECT_EQ(counts(24), (List{12, 8, 4, 2}));
  EXPECT_EQ(counts(32), (List{16, 8, 4, 2}));
  EXPECT_EQ(counts(64), (List{16, 8, 4, 2}));
  EXPECT_EQ(counts(4, false), (List{4, 2}));
  EXPECT_EQ(counts(16, false), (List{16, 8, 4, 2}));
}

// With nearest centroids above 0.99 all heads fall into one group; two are asked for.
TEST(WindowHierarchy, BipartitionOfFour) {
  const std::vector<Feature> heads = {feature(1, 0), feature(.8, .6), feature(.6, .8), feature(0, 1)};
  EXPECT_EQ(clusterUnits(heads, -1, 2), (std::vector<int64_t>{0, 0, 1, 1}));
}

// Between both anchors, a unit stays with the first. Catches >= in the split.
TEST(WindowHierarchy, TiesGoToTheFirstAnchor) {
  const std::vector<Feature> heads = {feature(1, 0), feature(0, 1), feature(1, 1)};
  EXPECT_EQ(clusterUnits(heads, -1, 2), (std::vector<int64_t>{0, 1, 0}));
}

TEST(WindowHierarchy, ThresholdJoinsAndMergesTheNearest) {
  // Angles 0, 1, 40, 42, 90 degrees: at 0.99 (8 degrees) three groups.
  std::vector<Feature> heads;
  for (double degrees : {0.0, 1.0, 40.0, 42.0, 90.0})
    heads.push_back(feature(std::cos(degrees * M_PI / 180), std::sin(degrees * M_PI / 180)));
  EXPECT_EQ(clusterUnits(heads, 0.99, 3), (std::vector<int64_t>{0, 0, 1, 1, 2}));
  // Too many: the centroids at 0.5 and 41 degrees are nearer than 41 and 90.
  EXPECT_EQ(clusterUnits(heads, 0.99, 2), (std::vector<int64_t>{0, 0, 0, 0, 1}));
  // Too few: of the three, {40, 42} holds the least similar pair.
  EXPECT_EQ(clusterUnits(heads, 0.99, 4), (std::vector<int64_t>{0, 0, 1, 2, 3}));
}

std::vector<Feature> randomFeatures(int64_t count, uint64_t seed) {
  const Philox numbers(seed, "test");
  std::vector<Feature> features(static_cast<size_t>(count));
  for (size_t i = 0; i < features.size(); ++i)
    for (int f = 0; f < kFeatureCount; ++f)
      features[i][f] = 0.5 + numbers.uniform(i * kFeatureCount + static_cast<uint64_t>(f));
  return features;
}

// Every level is a partition of the one below, has the count asked for, and is numbered by least unit.
TEST(WindowHierarchy, LevelsAreNestedPartitions) {
  for (int64_t heads : {1, 2, 3, 5, 8, 12, 17, 32})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const std::vector<Feature> features = randomFeatures(heads, seed);
      const std::vector<LevelShape> shapes = levelShapes({2, 2, 2, 2}, heads, true);
      Hierarchy hierarchy{{clusterUnits(features, 0.99, shapes[0].items)}};
      buildUpperLevels(hierarchy, features, shapes, 16);
      ASSERT_EQ(hierarchy.levels(), static_cast<int64_t>(shapes.size()));
      for (int64_t level = 0; level < hierarchy.levels(); ++level) {
        const auto members = hierarchy.members(level);
        ASSERT_EQ(members.size(), static_cast<size_t>(shapes[static_cast<size_t>(level)].items));
        std::multiset<int64_t> all;
        for (size_t item = 0; item < members.size(); ++item) {
          all.insert(members[item].begin(), members[item].end());
          EXPECT_FALSE(members[item].empty());
          if (item > 0) {
            EXPECT_LT(members[item - 1][0], members[item][0]);
          }
          if (level > 0) {
            EXPECT_LE(members[item].size(), 2u);
          }
        }
        std::multiset<int64_t> wanted;
        for (int64_t i = 0, n = level == 0 ? heads : hierarchy.items(level - 1); i < n; ++i)
          wanted.insert(i);
        EXPECT_EQ(all, wanted);
      }
    }
}

TEST(WindowHierarchy, EqualGroupsDifferByOneAtMost) {
  EXPECT_EQ(equalGroups({0, 1, 2, 3, 4, 5, 6}, 3), (std::vector<int64_t>{0, 0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(equalGroups({3, 0, 2, 1}, 2), (std::vector<int64_t>{0, 1, 1, 0}));
}

// Items 0, 1 are alike and so are 2, 3; with room for three, two families of two are not forced.
TEST(WindowHierarchy, JoinsTheMostSimilarFirst) {
  const std::vector<Feature> items = {feature(1, 0), feature(2, 0), feature(1, .01), feature(2, .1)};
  EXPECT_EQ(joinItems(items, {2, 2}, 16), (std::vector<int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(joinItems(items, {3, 2}, 0), (std::vector<int64_t>{0, 0, 1, 2}));
}

// Children count once each, whatever they hold: (1 + 2) / 2 and 6 give 3.75, not 3.
TEST(WindowHierarchy, UpperFeaturesWeighChildren) {
  const Hierarchy hierarchy{{{0, 0, 1}, {0, 0, 0}}};
  const auto levels = levelFeatures(hierarchy, {feature(1, 0), feature(2, 0), feature(6, 0)});
  EXPECT_DOUBLE_EQ(levels[0][0][0], 1.5);
  EXPECT_DOUBLE_EQ(levels[1][0][0], 3.75);
}

} // namespace
} // namespace weft::rt
