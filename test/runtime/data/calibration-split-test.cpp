#include "runtime/data/CalibrationSplit.h"

#include <gtest/gtest.h>
#include <numeric>

namespace weft::rt {
namespace {

std::shared_ptr<const TokenStream> streamOf(int64_t documents, int64_t length) {
  auto stream = std::make_shared<TokenStream>();
  for (int64_t d = 0; d < documents; ++d) {
    std::vector<int32_t> tokens(static_cast<size_t>(length));
    std::iota(tokens.begin(), tokens.end(), static_cast<int32_t>(d * length));
    stream->add(std::move(tokens));
  }
  return stream;
}

Recipe recipeOf(int64_t positions, bool apart) {
  Recipe recipe;
  recipe.positions = positions;
  recipe.documentsApart = apart;
  return recipe;
}

// 0.5% of 100,000 is 500 tokens, 16 rows of 64 need 1,025: those are taken.
// Mutation caught: training that goes on using the split's tokens.
TEST(CalibrationSplit, TakesTheEndAndLeavesTheRest) {
  auto split = splitCalibration(streamOf(1, 100000), recipeOf(64, false), 16, false);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->train->size(), 100000 - 1025);
  EXPECT_EQ(split->rows->batches(), 16);
  EXPECT_EQ(split->rows->at(0)->tokens.as<int32_t>()[0], 100000 - 1025);
  EXPECT_EQ(split->rows->at(15)->targets.as<int32_t>()[63], 99999);
  EXPECT_EQ(split->budget, nullptr);
}

TEST(CalibrationSplit, TakesHalfAPercentOfLongTexts) {
  auto split = splitCalibration(streamOf(1, 1000000), recipeOf(64, false), 16, false);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->train->size(), 995000);
}

// Of 1,000 documents the split begins where one does.
TEST(CalibrationSplit, CutsBetweenDocuments) {
  for (bool apart : {false, true}) {
    auto split = splitCalibration(streamOf(1000, 77), recipeOf(32, apart), 16, false);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(split->train->size() % 77, 0);
    EXPECT_GE(split->rows->batches(), 16);
  }
}

TEST(CalibrationSplit, BudgetStandsBeforeIt) {
  auto split = splitCalibration(streamOf(1, 10000), recipeOf(10, false), 16, true);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->train->size(), 10000 - 2 * 161);
  EXPECT_EQ(split->budget->at(0)->tokens.as<int32_t>()[0], 10000 - 2 * 161);
}

TEST(CalibrationSplit, SaysHowManyRowsThereAre) {
  auto split = splitCalibration(streamOf(1, 700), recipeOf(64, false), 16, false);
  ASSERT_FALSE(split.ok());
  const std::string text(split.status().message());
  EXPECT_NE(text.find("16 rows of 64"), std::string::npos) << text;
  EXPECT_NE(text.find("found 5 rows"), std::string::npos) << text;
}

} // namespace
} // namespace weft::rt
