//===- batches-test.cpp - Rows of tokens ----------------------------------===//
#include "runtime/data/Batches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Ids = std::vector<int32_t>;

/// Documents of these lengths; the token at stream index i is i.
std::shared_ptr<const TokenStream> counting(const std::vector<int64_t> &lengths) {
  auto stream = std::make_shared<TokenStream>();
  int32_t next = 0;
  for (int64_t length : lengths) {
    Ids ids(length);
    std::iota(ids.begin(), ids.end(), next);
    next += static_cast<int32_t>(length);
    stream->add(std::move(ids));
  }
  return stream;
}

Recipe recipeOf(int64_t rows, int64_t positions, bool apart) {
  Recipe recipe;
  recipe.rows = rows;
  recipe.positions = positions;
  recipe.documentsApart = apart;
  return recipe;
}

TrainData trainOf(std::shared_ptr<const TokenStream> stream, const Recipe &recipe, int64_t rank = 0,
                  int64_t ranks = 1) {
  auto data = TrainData::make(std::move(stream), recipe, rank, ranks);
  EXPECT_TRUE(data.ok()) << data.status();
  return *std::move(data);
}

Ids row(const Tensor &tensor, int64_t index) {
  auto all = tensor.as<int32_t>();
  int64_t width = tensor.shape[1];
  return Ids(all.begin() + index * width, all.begin() + (index + 1) * width);
}

TEST(TrainData, TooFewTokensSayHowManyAreNeeded) {
  for (bool apart : {false, true}) {
    absl::Status status = TrainData::make(counting({500}), recipeOf(2, 1024, apart)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("need 1025"), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("found 500"), absl::string_view::npos) << status;
    EXPECT_FALSE(TrainData::make(counting({1024}), recipeOf(2, 1024, apart)).ok());
    TrainData data = trainOf(counting({1025}), recipeOf(1, 1024, apart));
    EXPECT_EQ(data.distinctRows(), 1);
    Batch batch = *data.at(0, 0);
    EXPECT_EQ(batch.tokens.as<int32_t>()[0], 0);
    EXPECT_EQ(batch.targets.as<int32_t>()[1023], 1024);
    EXPECT_EQ(batch.counted, 1024);
  }
}

// 100 tokens, 2 x 8 on each of 4 ranks: 12 windows, one whole step of 65 tokens.
TEST(TrainData, OneStepFromAShortStream) {
  Recipe recipe = recipeOf(8, 8, false);
  std::set<int32_t> firsts;
  for (int64_t rank = 0; rank < 4; ++rank) {
    TrainData data = trainOf(counting({100}), recipe, rank, 4);
    EXPECT_EQ(data.stepsPerEpoch(), 1);
    EXPECT_EQ(data.distinctRows(), 12);
    Batch batch = *data.at(0, 0);
    EXPECT_EQ(batch.tokens.shape, (std::vector<int64_t>{2, 8}));
    for (int64_t r = 0; r < 2; ++r)
      firsts.insert(row(batch.tokens, r)[0]);
  }
  EXPECT_EQ(firsts.size(), 8u); // no window twice
}

// Two shards of unlike length, 3 epochs of 25 windows in steps of 4 rows.
TEST(TrainData, EachEpochUsesEachWindowOnce) {
  Recipe recipe = recipeOf(4, 8, false);
  recipe.microBatches = 2;
  TrainData data = trainOf(counting({150, 54}), recipe); // (204 - 1) / 8 = 25
  ASSERT_EQ(data.distinctRows(), 25);
  std::vector<int32_t> firsts;
  for (int64_t step = 0; step < 25; ++step)
    for (int64_t micro = 0; micro < 2; ++micro) {
      Batch batch = *data.at(step, micro);
      for (int64_t r = 0; r < 2; ++r) {
        Ids tokens = row(batch.tokens, r), targets = row(batch.targets, r);
        for (int i = 0; i < 8; ++i) {
          EXPECT_EQ(tokens[i], tokens[0] + i);
          EXPECT_EQ(targets[i], tokens[i] + 1);
        }
        EXPECT_EQ(row(batch.docStart, r), Ids(8, 0));
        firsts.push_back(tokens[0]);
      }
    }
  ASSERT_EQ(firsts.size(), 100u);
  std::vector<Ids> orders;
  for (int epoch = 0; epoch < 4; ++epoch) {
    Ids order(firsts.begin() + 25 * epoch, firsts.begin() + 25 * (epoch + 1));
    orders.push_back(order);
    std::sort(order.begin(), order.end());
    for (int i = 0; i < 25; ++i)
      EXPECT_EQ(order[i], 8 * i);
  }
  EXPECT_NE(orders[0], orders[1]); // a new order each epoch
  EXPECT_FALSE(std::is_sorted(orders[0].begin(), orders[0].end()));
}

TEST(TrainData, BatchesAreAFunctionOfStepAndSeed) {
  Recipe recipe = recipeOf(4, 8, false);
  TrainData data = trainOf(counting({5000}), recipe), again = trainOf(counting({5000}), recipe);
  Batch late = *data.at(77, 0);
  EXPECT_EQ(again.at(77, 0)->tokens.bytes, late.tokens.bytes);
  recipe.seed = 1;
  EXPECT_NE(trainOf(counting({5000}), recipe).at(77, 0)->tokens.bytes, late.tokens.bytes);
  EXPECT_EQ(data.at(0, 1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(data.at(-1, 0).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(TrainData, RowsMustDivide) {
  Recipe recipe = recipeOf(10, 8, false);
  recipe.microBatches = 4;
  absl::Status status = TrainData::make(counting({100}), recipe).status();
  EXPECT_NE(status.message().find("multiple of 4"), absl::string_view::npos) << status;
}

// Steps of: tokens, rounded up; epochs; steps as they are.
TEST(TrainData, StepsOfTheRecipe) {
  Recipe recipe = recipeOf(4, 8, false);
  auto stream = counting({204}); // 25 rows
  recipe.tokens = 1000;          // 1000 / 32 = 31.25
  EXPECT_EQ(trainOf(stream, recipe).steps(), 32);
  recipe.tokens.reset();
  recipe.epochs = 2; // 50 / 4 = 12.5
  EXPECT_EQ(trainOf(stream, recipe).steps(), 13);
  recipe.steps = 7;
  EXPECT_EQ(trainOf(stream, recipe).steps(), 7);
  EXPECT_EQ(trainOf(stream, recipe).stepsPerEpoch(), 6);
}

/// All rows of evaluation, one to a batch.
struct Rows {
  std::vector<Ids> tokens, targets, docStart;
  int64_t counted = 0;
};

Rows evalRows(std::shared_ptr<const TokenStream> stream, const Recipe &recipe) {
  Rows rows;
  auto data = EvalData::make(std::move(stream), recipe, 1);
  EXPECT_TRUE(data.ok()) << data.status();
  for (int64_t i = 0; i < data->batches(); ++i) {
    Batch batch = *data->at(i);
    rows.tokens.push_back(row(batch.tokens, 0));
    rows.targets.push_back(row(batch.targets, 0));
    rows.docStart.push_back(row(batch.docStart, 0));
    rows.counted += batch.counted;
  }
  EXPECT_EQ(rows.counted, data->targets());
  return rows;
}

// Documents 0..4, 5..6, 7, 8..11 in rows of 4. Inputs: 4 + 1 + 0 + 3 = 8.
TEST(Packing, SplitSkip) {
  Rows rows = evalRows(counting({5, 2, 1, 4}), recipeOf(1, 4, true));
  EXPECT_EQ(rows.tokens, (std::vector<Ids>{{0, 1, 2, 3}, {5, 8, 9, 10}}));
  EXPECT_EQ(rows.targets, (std::vector<Ids>{{1, 2, 3, 4}, {6, 9, 10, 11}}));
  EXPECT_EQ(rows.docStart, (std::vector<Ids>{{0, 0, 0, 0}, {0, 1, 1, 1}}));
}

// Every token is an input but the last of all: 11, and its target the next.
TEST(Packing, SplitCount) {
  Recipe recipe = recipeOf(1, 4, true);
  recipe.boundaryCount = true;
  Rows rows = evalRows(counting({5, 2, 1, 4}), recipe);
  EXPECT_EQ(rows.tokens, (std::vector<Ids>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 0}}));
  EXPECT_EQ(rows.targets, (std::vector<Ids>{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, -1}}));
  EXPECT_EQ(rows.docStart, (std::vector<Ids>{{0, 0, 0, 0}, {0, 1, 1, 3}, {0, 0, 0, 3}}));
}

// Inputs 2, 3, 1, 2 of rows of 4: 3 + 1, 2 + 2.
TEST(Packing, WholeIsBestFit) {
  Recipe recipe = recipeOf(1, 4, true);
  recipe.packWhole = true;
  Rows rows = evalRows(counting({3, 4, 2, 3}), recipe);
  EXPECT_EQ(rows.tokens, (std::vector<Ids>{{3, 4, 5, 7}, {0, 1, 9, 10}}));
  EXPECT_EQ(rows.targets, (std::vector<Ids>{{4, 5, 6, 8}, {1, 2, 10, 11}}));
  EXPECT_EQ(rows.docStart, (std::vector<Ids>{{0, 0, 0, 3}, {0, 0, 2, 2}}));
}

// A document of 7 inputs in rows of 4: split into 4 + 3, or dropped in training
// and still evaluated.
TEST(Packing, LongDocuments) {
  Recipe recipe = recipeOf(1, 4, true);
  recipe.packWhole = true;
  EXPECT_EQ(evalRows(counting({8, 3}), recipe).tokens,
            (std::vector<Ids>{{0, 1, 2, 3}, {4, 5, 6, 0}, {8, 9, 0, 0}}));
  recipe.longDrop = true;
  TrainData data = trainOf(counting({8, 3}), recipe);
  EXPECT_EQ(data.distinctRows(), 1);
  EXPECT_EQ(row(data.at(0, 0)->tokens, 0), (Ids{8, 9, 0, 0}));
  EXPECT_EQ(row(data.at(0, 0)->docStart, 0), (Ids{0, 0, 2, 2}));
  EXPECT_EQ(data.at(0, 0)->counted, 2);
  EXPECT_EQ(evalRows(counting({8, 3}), recipe).counted, 9);
  EXPECT_EQ(data.droppedTokens(), 7);
  EXPECT_FALSE(TrainData::make(counting({8, 8}), recipe).ok());
  recipe.longDrop = false;
  EXPECT_EQ(trainOf(counting({8, 3}), recipe).droppedTokens(), 0);
}

// Positions and masks come from document lengths alone: the same ids everywhere, the separator's
// among them, change nothing. Looking for a document's start in the ids fails.
TEST(Packing, IdsSayNothingAboutDocuments) {
  for (bool whole : {false, true}) {
    Recipe recipe = recipeOf(1, 8, true);
    recipe.packWhole = whole;
    const std::vector<int64_t> lengths = {5, 9, 2, 30, 4};
    auto alike = std::make_shared<TokenStream>();
    for (int64_t length : lengths)
      alike->add(Ids(static_cast<size_t>(length), 7));
    EXPECT_EQ(evalRows(alike, recipe).docStart, evalRows(counting(lengths), recipe).docStart);
  }
}

// Every target once, for all ways to pack: joined n - 1, apart n - documents.
TEST(EvalData, EveryTargetOnce) {
  std::vector<int64_t> lengths = {17, 1, 40, 8, 9, 2, 33};
  for (bool apart : {false, true})
    for (bool whole : {false, true})
      for (bool count : {false, true}) {
        Recipe recipe = recipeOf(3, 8, apart);
        recipe.packWhole = whole;
        recipe.boundaryCount = count;
        auto data = EvalData::make(counting(lengths), recipe);
        ASSERT_TRUE(data.ok());
        std::map<int32_t, int> seen;
        int64_t counted = 0;
        for (int64_t i = 0; i < data->batches(); ++i) {
          Batch batch = *data->at(i);
          EXPECT_EQ(batch.tokens.shape, (std::vector<int64_t>{3, 8}));
          counted += batch.counted;
          for (int32_t target : batch.targets.as<int32_t>())
            if (target >= 0)
              ++seen[target];
        }
        int64_t expected = apart && !count ? 110 - 7 : 109;
        EXPECT_EQ(counted, expected);
        EXPECT_EQ(data->targets(), expected);
        EXPECT_EQ(static_cast<int64_t>(seen.size()), expected);
        EXPECT_FALSE(seen.contains(0)); // nothing predicts the first token
      }
}

// The token at stream index i is i, so a target is its own place. A place of the input fails.
TEST(EvalData, TargetsKnowTheirPlaces) {
  for (bool whole : {false, true}) {
    Recipe recipe = recipeOf(2, 8, true);
    recipe.packWhole = whole;
    auto data = EvalData::make(counting({17, 1, 40, 8}), recipe);
    ASSERT_TRUE(data.ok());
    for (int64_t i = 0; i < data->batches(); ++i) {
      std::vector<int64_t> places = *data->targetPlaces(i);
      Batch batch = *data->at(i);
      auto targets = batch.targets.as<int32_t>();
      ASSERT_EQ(places.size(), targets.size());
      for (size_t slot = 0; slot < places.size(); ++slot)
        EXPECT_EQ(places[slot], targets[slot]);
    }
    EXPECT_FALSE(data->targetPlaces(data->batches()).ok());
  }
}

TEST(EvalData, ShortAndLimited) {
  Recipe recipe = recipeOf(2, 8, false);
  EXPECT_EQ(evalRows(counting({3}), recipe).targets, (std::vector<Ids>{{1, 2, -1, -1, -1, -1, -1, -1}}));
  EXPECT_FALSE(EvalData::make(counting({1}), recipe).ok());
  recipe.evalRows = 3;
  auto data = EvalData::make(counting({100}), recipe);
  EXPECT_EQ(data->batches(), 2);
  EXPECT_EQ(data->targets(), 24);
  EXPECT_EQ(data->at(1)->counted, 8); // the fourth row is padding
  EXPECT_EQ(data->at(2).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(Permuted, IsAPermutationForEverySize) {
  Philox philox(5, "data/shuffle");
  for (int64_t size = 1; size < 70; ++size)
    for (int64_t round = 0; round < 3; ++round) {
      std::set<int64_t> seen;
      for (int64_t i = 0; i < size; ++i)
        seen.insert(permuted(philox, round, size, i));
      EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
      EXPECT_EQ(*seen.rbegin(), size - 1);
    }
}

// Where element 0 goes over 6,000 epochs: chi square of 11 cells, 10 degrees of
// freedom, is below 35 but for one seed in 10,000.
TEST(Permuted, PlacesAreEvenOverEpochs) {
  Philox philox(9, "data/shuffle");
  std::vector<int> places(11);
  for (int64_t epoch = 0; epoch < 6000; ++epoch)
    ++places[permuted(philox, epoch, 11, 0)];
  double chi = 0, expected = 6000.0 / 11;
  for (int count : places)
    chi += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi, 35);
}

} // namespace
} // namespace weft::rt
