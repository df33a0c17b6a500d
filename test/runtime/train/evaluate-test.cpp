//===- evaluate-test.cpp - Held-out loss counts every target once --*- C++ -*-===//
#include "runtime/train/Evaluate.h"
#include "runtime/train/State.h"
#include "test/runtime/train/TrainSetup.h"

#include <cmath>

namespace weft::rt {
namespace {

Recipe evalRecipe(int64_t rows) {
  Recipe recipe = smallRecipe(1);
  recipe.rows = rows;
  recipe.microBatches = 1;
  recipe.positions = 1000;
  return recipe;
}

EvalResult evaluateWith(int64_t rows) {
  BigramOptions options;
  options.rows = rows;
  options.positions = 1000;
  BigramMachine machine(options);
  EXPECT_TRUE(initializeState(machine, 3).ok());
  absl::StatusOr<EvalData> data = EvalData::make(tokenStream(2100), evalRecipe(rows));
  EXPECT_TRUE(data.ok()) << data.status();
  absl::StatusOr<EvalResult> result = evaluate(machine, *data);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

// 2,100 tokens in windows of 1,000: two full ones and 99 targets. A mean of batch
// means, or a dropped tail, changes count or loss.
TEST(Evaluate, GivesTheSameForEveryBatchSize) {
  const EvalResult one = evaluateWith(1), two = evaluateWith(2), four = evaluateWith(4);
  EXPECT_EQ(one.targets, 2099);
  EXPECT_EQ(two.targets, 2099);
  EXPECT_EQ(four.targets, 2099);
  EXPECT_NEAR(one.loss, two.loss, 1e-6);
  EXPECT_NEAR(one.loss, four.loss, 1e-6);
  EXPECT_DOUBLE_EQ(one.perplexity, std::exp(one.loss));
  EXPECT_EQ(one.tokens, 3000);
}

// A zero table knows nothing: ln 16 a target.
TEST(Evaluate, OfAZeroTableIsTheLogOfTheVocabulary) {
  BigramOptions options;
  options.positions = 1000;
  BigramMachine machine(options);
  absl::StatusOr<EvalData> data = EvalData::make(tokenStream(2100), evalRecipe(1));
  ASSERT_TRUE(data.ok());
  absl::StatusOr<EvalResult> result = evaluate(machine, *data);
  ASSERT_TRUE(result.ok());
  EXPECT_NEAR(result->loss, std::log(16.0), 1e-6);
  EXPECT_EQ(toJson(*result).size(), 5u);
}

TEST(Evaluate, NamesBothShapesWhenTheDataDoesNotFit) {
  BigramMachine machine(BigramOptions{});
  absl::StatusOr<EvalData> data = EvalData::make(tokenStream(2100), evalRecipe(1));
  ASSERT_TRUE(data.ok());
  absl::StatusOr<EvalResult> result = evaluate(machine, *data);
  ASSERT_FALSE(result.ok());
  const std::string text(result.status().message());
  EXPECT_NE(text.find("expected I32 [1, 8], found I32 [1, 1000]"), std::string::npos) << text;
}

} // namespace
} // namespace weft::rt
