//===- mqar-test.cpp - Associative recall ----------------------------------===//
#include "runtime/data/Mqar.h"
#include "runtime/data/Rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Ids = std::vector<int32_t>;

Mqar taskOf(const MqarOptions &options) {
  absl::StatusOr<Mqar> task = Mqar::make(options);
  EXPECT_TRUE(task.ok()) << task.status();
  return *std::move(task);
}

struct Row {
  Ids inputs, targets;
};

Row rowOf(const Mqar &task, int64_t index) {
  auto length = static_cast<size_t>(task.options().length);
  Row row{Ids(length), Ids(length)};
  task.row(index, row.inputs, row.targets);
  return row;
}

// The worked example: a target at p + 1 in place of p, or a query that is followed by its value, fails.
TEST(Mqar, WorkedExample) {
  MqarOptions options;
  options.vocabulary = 20;
  options.length = 16;
  options.pairs = 2;
  Ids inputs(16), targets(16);
  taskOf(options).layOut(Ids{4, 5}, Ids{10, 18}, std::vector<int64_t>{1, 2}, inputs, targets);
  EXPECT_EQ(inputs, (Ids{4, 10, 5, 18, 0, 0, 4, 0, 5, 0, 0, 0, 0, 0, 0, 0}));
  Ids expected(16, -1);
  expected[6] = 10;
  expected[8] = 18;
  EXPECT_EQ(targets, expected);
}

// Keys drawn with replacement, a slot used twice, or values below V/2 fail.
TEST(Mqar, EveryRowKeepsTheRules) {
  for (auto [pairs, passes] : {std::pair<int64_t, int64_t>{8, 1}, {32, 1}, {3, 4}, {1, 1}}) {
    MqarOptions options;
    options.vocabulary = 256;
    options.length = 128;
    options.pairs = pairs;
    options.passes = passes;
    options.filler = false;
    Mqar task = taskOf(options);
    for (int64_t index = 0; index < 50; ++index) {
      Row row = rowOf(task, index);
      std::map<int32_t, int32_t> valueOf;
      std::set<int32_t> values;
      for (int64_t i = 0; i < pairs * passes; ++i) {
        int32_t key = row.inputs[static_cast<size_t>(2 * i)],
                value = row.inputs[static_cast<size_t>(2 * i + 1)];
        EXPECT_TRUE(key >= 1 && key < 128 && value >= 128 && value < 256);
        EXPECT_EQ(valueOf.emplace(key, value).first->second, value);
        values.insert(value);
      }
      EXPECT_EQ(static_cast<int64_t>(valueOf.size()), pairs);
      EXPECT_EQ(static_cast<int64_t>(values.size()), pairs);
      int64_t asked = 0;
      for (int64_t p = 0; p < 128; ++p) {
        auto at = static_cast<size_t>(p);
        if (row.targets[at] < 0) {
          EXPECT_TRUE(p < 2 * pairs * passes || row.inputs[at] == 0);
          continue;
        }
        ++asked;
        EXPECT_TRUE(p >= 2 * pairs * passes && p % 2 == 0);
        EXPECT_EQ(valueOf.at(row.inputs[at]), row.targets[at]);
      }
      EXPECT_EQ(asked, pairs);
    }
  }
}

TEST(Mqar, FillerChangesNothingButTheZeros) {
  MqarOptions options;
  options.vocabulary = 256;
  options.length = 64;
  Mqar full = taskOf(options);
  options.filler = false;
  Mqar bare = taskOf(options);
  int64_t filled = 0;
  for (int64_t index = 0; index < 20; ++index) {
    Row a = rowOf(full, index), b = rowOf(bare, index);
    EXPECT_EQ(a.targets, b.targets);
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_TRUE(b.inputs[i] == 0 || a.inputs[i] == b.inputs[i]);
      filled += a.inputs[i] != b.inputs[i];
    }
  }
  EXPECT_GT(filled, 20 * 64 / 2);
}

// Weights (g+1)^(a-1): the first slot drawn has exactly these probabilities. a = 0.01 used as the
// exponent itself (weights nearly alike) fails by far.
TEST(Mqar, TheFirstSlotFollowsTheWeights) {
  MqarOptions options;
  options.vocabulary = 64;
  options.length = 24;
  options.pairs = 2;
  options.filler = false;
  Mqar task = taskOf(options);
  std::vector<int64_t> counts(10);
  constexpr int64_t kRows = 40000;
  for (int64_t index = 0; index < kRows; ++index) {
    Row row = rowOf(task, index);
    for (size_t p = 4; p < 24; p += 2)
      if (row.inputs[p] == row.inputs[0])
        ++counts[(p - 4) / 2];
  }
  double total = 0;
  for (int g = 0; g < 10; ++g)
    total += std::pow(g + 1.0, -0.99);
  for (int g = 0; g < 10; ++g) {
    double share = std::pow(g + 1.0, -0.99) / total;
    EXPECT_NEAR(counts[static_cast<size_t>(g)] / static_cast<double>(kRows), share,
                5 * std::sqrt(share * (1 - share) / kRows))
        << g;
  }
}

TEST(Mqar, TestRowsAndOtherSeedsDiffer) {
  MqarOptions options;
  Mqar train = taskOf(options);
  options.test = true;
  Mqar test = taskOf(options);
  options.seed = 1;
  Mqar other = taskOf(options);
  EXPECT_EQ(rowOf(train, 3).inputs, rowOf(train, 3).inputs);
  EXPECT_NE(rowOf(train, 3).inputs, rowOf(train, 4).inputs);
  EXPECT_NE(rowOf(train, 3).inputs, rowOf(test, 3).inputs);
  EXPECT_NE(rowOf(test, 3).inputs, rowOf(other, 3).inputs);
}

TEST(Mqar, WhatDoesNotFitIsRefused) {
  auto refused = [](int64_t vocabulary, int64_t length, int64_t pairs, const char *why) {
    MqarOptions options;
    options.vocabulary = vocabulary;
    options.length = length;
    options.pairs = pairs;
    absl::StatusOr<Mqar> task = Mqar::make(options);
    ASSERT_FALSE(task.ok()) << why;
    EXPECT_NE(std::string(task.status().message()).find(why), std::string::npos) << task.status();
  };
  refused(8192, 511, 8, "even number");
  refused(512, 512, 8, "more ids");
  refused(8192, 512, 129, "need 516 positions");
  refused(8192, 512, 0, "at least one pair");
  // Ids are 32 bits wide and half of them are listed for a row; numbers past 2^63 would come back as small ones.
  refused(81929223372036, 512, 8, "at most 16777216 ids");
  refused(8192, 512, INT64_MAX, "need more positions");
  MqarOptions many;
  many.passes = INT64_MAX;
  EXPECT_FALSE(Mqar::make(many).ok());
  MqarOptions exact;
  exact.pairs = 128; // 4n = L
  EXPECT_TRUE(Mqar::make(exact).ok());
}

TEST(Mqar, NamesAreRead) {
  auto read = [](const char *source) { return parseMqar(source, {}); };
  EXPECT_FALSE(read("builtin:austen")->has_value());
  EXPECT_TRUE(read("builtin:mqar")->has_value());
  MqarOptions options = **read("builtin:mqar/pairs=32,vocab=300,rows=10,passes=2,a=1,filler=off,seed=5");
  EXPECT_EQ(options.pairs, 32);
  EXPECT_EQ(options.vocabulary, 300);
  EXPECT_EQ(options.rows, 10);
  EXPECT_EQ(options.passes, 2);
  EXPECT_EQ(options.a, 1);
  EXPECT_FALSE(options.filler);
  EXPECT_EQ(options.seed, 5u);
  for (const char *wrong : {"builtin:mqar/pairs", "builtin:mqar/pairs=0", "builtin:mqar/parts=3",
                            "builtin:mqar/filler=maybe", "builtin:mqar/a=nan"})
    EXPECT_FALSE(read(wrong).ok()) << wrong;
}

Recipe recipeOf() {
  Recipe recipe;
  recipe.data = {"builtin:mqar/pairs=4"};
  recipe.heldOut = {HeldOut::Kind::Source, 0, "builtin:mqar/pairs=8,rows=10"};
  recipe.rows = 8;
  recipe.positions = 64;
  recipe.microBatches = 2;
  recipe.steps = 3;
  recipe.seed = 9;
  return recipe;
}

// Two ranks and micro-batches share out the rows of one step; none comes twice.
TEST(Mqar, TrainingDrawsNewRows) {
  Recipe recipe = recipeOf();
  absl::StatusOr<Dataset> data = loadDataset(recipe, 256);
  ASSERT_TRUE(data.ok()) << data.status();
  absl::StatusOr<TrainData> rows = trainRows(*data, recipe);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->steps(), 3);
  std::set<Ids> seen;
  for (int64_t step = 0; step < 3; ++step)
    for (int64_t micro = 0; micro < 2; ++micro) {
      Batch batch = *rows->at(step, micro);
      EXPECT_EQ(batch.counted, 4 * 4);
      EXPECT_EQ(std::ranges::count_if(batch.targets.as<int32_t>(), [](int32_t id) { return id >= 0; }), 16);
      EXPECT_EQ(std::ranges::count(batch.docStart.as<int32_t>(), 0), 4 * 64);
      auto tokens = batch.tokens.as<int32_t>();
      for (size_t r = 0; r < 4; ++r)
        seen.insert(Ids(tokens.begin() + static_cast<int64_t>(r) * 64,
                        tokens.begin() + static_cast<int64_t>(r + 1) * 64));
    }
  EXPECT_EQ(seen.size(), 24u);
  absl::StatusOr<std::optional<EvalData>> held = heldOutRows(*data, recipe);
  ASSERT_TRUE(held.ok() && held->has_value()) << held.status();
  EXPECT_EQ((*held)->batches(), 3); // 10 rows in fours
  EXPECT_EQ((*held)->targets(), 80);
  EXPECT_EQ((*held)->at(2)->counted, 16);
}

TEST(Mqar, RecipesThatMakeNoSenseAreRefused) {
  Recipe recipe = recipeOf();
  recipe.steps.reset();
  absl::StatusOr<Dataset> data = loadDataset(recipe, 256);
  ASSERT_TRUE(data.ok());
  EXPECT_FALSE(trainRows(*data, recipe).ok());
  recipe.data.push_back("builtin:austen");
  EXPECT_FALSE(loadDataset(recipe, 256).ok());
  recipe = recipeOf();
  recipe.heldOut = {HeldOut::Kind::LastFraction, 0.1, ""};
  EXPECT_FALSE(loadDataset(recipe, 256).ok());
  recipe = recipeOf();
  recipe.data = {"builtin:mqar/pairs=4,vocab=300"};
  EXPECT_FALSE(loadDataset(recipe, 256).ok());
}

} // namespace
} // namespace weft::rt
