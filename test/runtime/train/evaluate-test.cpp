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

/// Documents of three parts with markers of one id: 13 a, 14 b.
std::shared_ptr<const TokenStream> markedStream() {
  auto stream = std::make_shared<TokenStream>();
  for (int32_t d = 0; d < 7; ++d) {
    std::vector<int32_t> ids = {d, 1, 13, 2, 3, 4};
    for (int32_t i = 0; i < 2 * d; ++i)
      ids.push_back(i % 12);
    ids.push_back(14);
    ids.push_back(5);
    stream->add(std::move(ids));
  }
  return stream;
}

class ByteIds : public Tokenizer { // "\x0d" is id 13
public:
  std::vector<int32_t> encode(std::string_view text) const override { return {text.begin(), text.end()}; }
  std::string decode(std::span<const int32_t>) const override { return ""; }
  int64_t vocabulary() const override { return 16; }
  std::optional<int32_t> separator() const override { return std::nullopt; }
};

// Documents longer than a row keep their region over the cut: labels taken anew in each row fail.
TEST(Evaluate, RegionsSumToTheWhole) {
  BigramMachine machine(smallOptions());
  ASSERT_TRUE(initializeState(machine, 3).ok());
  Recipe recipe = smallRecipe(1);
  recipe.documentsApart = true;
  auto stream = markedStream();
  EvalData data = *EvalData::make(stream, recipe, 2);
  RegionLabels labels = *RegionLabels::make(*stream, {{"a", "\x0d"}, {"b", "\x0e"}}, ByteIds());
  absl::StatusOr<EvalResult> plain = evaluate(machine, data), parts = evaluate(machine, data, &labels);
  ASSERT_TRUE(plain.ok() && parts.ok()) << parts.status();
  ASSERT_EQ(parts->regions.size(), 3u);
  // By hand, per document: 3 + 2 d targets in a, one in b; the markers and one more in other.
  EXPECT_EQ(parts->regions[0].targets, 7 * 3 + 2 * 21);
  EXPECT_EQ(parts->regions[1].targets, 7);
  EXPECT_EQ(parts->regions[2].targets, 7 * 3);
  EXPECT_EQ(parts->targets, plain->targets);
  EXPECT_NEAR(parts->loss, plain->loss, 1e-6);
  // Every target of b is 5 after 14: the loss of that one row of the table.
  const Tensor table = *machine.readState("table");
  double sum = 0;
  for (int64_t id = 0; id < 16; ++id)
    sum += std::exp(get(table, 14 * 16 + id));
  EXPECT_NEAR(parts->regions[1].lossSum / 7, std::log(sum) - get(table, 14 * 16 + 5), 1e-5);
  OrderedJson json = toJson(*parts);
  double share = 0, weighted = 0;
  for (const OrderedJson &region : json["regions"]) {
    share += region["share"].get<double>();
    weighted += region["share"].get<double>() * region["loss"].get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-12);
  EXPECT_NEAR(weighted, plain->loss, 1e-6);
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
