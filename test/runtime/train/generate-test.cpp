//===- generate-test.cpp - Sampling and the decode loop ---------*- C++ -*-===//
#include "runtime/train/Generate.h"
#include "runtime/train/Prefill.h"
#include "test/runtime/train/TrainSetup.h"

#include <cmath>

namespace weft::rt {
namespace {

const std::vector<double> kLogits = {std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};

int32_t draw(Sampling sampling, double uniform, std::vector<double> logits = kLogits) {
  absl::StatusOr<int32_t> token = sample(logits, sampling, uniform);
  EXPECT_TRUE(token.ok()) << token.status();
  return token.value_or(-1);
}

// Ordered 1 (0.4), 3 (0.3), 2 (0.2), 0 (0.1): cumulative 0.4, 0.7, 0.9, 1.
TEST(Sample, FollowsTheCumulativeProbabilities) {
  EXPECT_EQ(draw({}, 0.39), 1);
  EXPECT_EQ(draw({}, 0.41), 3);
  EXPECT_EQ(draw({}, 0.71), 2);
  EXPECT_EQ(draw({}, 0.91), 0);
  EXPECT_EQ(draw({}, std::nextafter(1.0, 0.0)), 0);
}

TEST(Sample, TemperatureSharpensAndZeroIsGreedy) {
  EXPECT_EQ(draw({0, 0, 1}, 0.99), 1);
  EXPECT_EQ(draw({0, 0, 1}, 0.5, {1, 3, 3, 2}), 1); // the lower id on a tie
  // Temperature 1/2 squares probabilities: 16, 9, 4, 1 of 30.
  EXPECT_EQ(draw({0.5, 0, 1}, 15.9 / 30), 1);
  EXPECT_EQ(draw({0.5, 0, 1}, 16.1 / 30), 3);
}

TEST(Sample, TopKAndTopPCutTheTail) {
  EXPECT_EQ(draw({1, 2, 1}, 0.99), 3); // 0.4, 0.3 left
  EXPECT_EQ(draw({1, 2, 1}, 0.4 / 0.7 - 0.01), 1);
  EXPECT_EQ(draw({1, 60000, 1}, 0.99), 0); // more than there are
  EXPECT_EQ(draw({1, 0, 0.5}, 0.99), 3);   // 0.4 < 0.5 <= 0.7
  EXPECT_EQ(draw({1, 0, 0.1}, 0.99), 1);   // the first always stays
  EXPECT_EQ(draw({1, 0, 1}, 0.0, {-HUGE_VAL, -1, -HUGE_VAL}), 1);
}

TEST(Sample, RefusesWhatHasNoMeaning) {
  EXPECT_FALSE(sample(kLogits, {-1, 0, 1}, 0.5).ok());
  EXPECT_FALSE(sample(kLogits, {1, -1, 1}, 0.5).ok());
  EXPECT_FALSE(sample(kLogits, {1, 0, 0}, 0.5).ok());
  EXPECT_FALSE(sample(std::vector<double>{0, std::nan("")}, {}, 0.5).ok());
  EXPECT_FALSE(sample(std::vector<double>{-HUGE_VAL}, {}, 0.5).ok());
}

/// A table where token t is always followed by (t + 1) mod 16.
struct GenerateTest : testing::Test {
  GenerateTest() : machine(BigramOptions{}) {
    Tensor table(ElementType::F32, {16, 16});
    for (int64_t t = 0; t < 16; ++t)
      set(table, t * 16 + (t + 1) % 16, 5);
    EXPECT_TRUE(machine.writeState("table", table).ok());
  }
  BigramMachine machine;
  std::vector<int32_t> prompt = {3, 4};
};

TEST_F(GenerateTest, GoesOnFromThePrompt) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.maxTokens = 4;
  std::vector<int32_t> streamed;
  absl::StatusOr<GenerateResult> result = generate(machine, prompt, options, [&](int32_t token) {
    streamed.push_back(token);
    return true;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->tokens, (std::vector<int32_t>{5, 6, 7, 8}));
  EXPECT_EQ(streamed, result->tokens);
  EXPECT_EQ(result->end, GenerateResult::End::Limit);
  const Tensor seen = *machine.readState("cache/seen"); // each token at its own offset
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(get(seen, i), 3 + static_cast<double>(i));
}

TEST_F(GenerateTest, StopsWhereTheCacheEnds) {
  GenerateOptions options;
  options.maxTokens = 1000;
  absl::StatusOr<GenerateResult> result = generate(machine, prompt, options, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, GenerateResult::End::CacheFull);
  EXPECT_EQ(result->tokens.size(), 32u - 2 + 1); // the last is drawn and not fed
  const std::vector<int32_t> tooLong(33, 1);
  absl::Status status = generate(machine, tooLong, options, nullptr).status();
  EXPECT_NE(std::string(status.message()).find("33 tokens, the cache holds 32"), std::string::npos);
}

TEST_F(GenerateTest, StopsAtTheStopTokenAndTheCallback) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.stopToken = 7;
  absl::StatusOr<GenerateResult> result = generate(machine, prompt, options, nullptr);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->tokens, (std::vector<int32_t>{5, 6}));
  EXPECT_EQ(result->end, GenerateResult::End::StopToken);
  result = generate(machine, prompt, options, [](int32_t) { return false; });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->tokens.size(), 1u);
}

TEST_F(GenerateTest, IsAFunctionOfTheSeed) {
  ASSERT_TRUE(machine.writeState("table", Tensor(ElementType::F32, {16, 16})).ok()); // all equally likely
  GenerateOptions options;
  options.maxTokens = 20;
  const auto text = [&](uint64_t seed) {
    options.seed = seed;
    return generate(machine, prompt, options, nullptr)->tokens;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

// Rows of a padded vocabulary must never win, whatever their logit.
TEST_F(GenerateTest, NeverDrawsPaddedIds) {
  Tensor table(ElementType::F32, {16, 16});
  for (int64_t i = 0; i < 256; ++i)
    set(table, i, i % 16 < 10 ? -1 : 0); // ids 10 to 15 are padding
  ASSERT_TRUE(machine.writeState("table", table).ok());
  GenerateOptions options;
  options.vocabulary = 10;
  options.sampling.topK = 60000;
  for (double temperature : {0.0, 1.0}) {
    options.sampling.temperature = temperature;
    absl::StatusOr<GenerateResult> result = generate(machine, prompt, options, nullptr);
    ASSERT_TRUE(result.ok());
    for (int32_t token : result->tokens)
      EXPECT_LT(token, 10);
  }
  EXPECT_FALSE(generate(machine, std::vector<int32_t>{10}, options, nullptr).ok());
  EXPECT_FALSE(generate(machine, std::vector<int32_t>{}, options, nullptr).ok());
}

TEST_F(GenerateTest, PrefillCutsOutputsToTheText) {
  absl::StatusOr<std::map<std::string, Tensor>> outputs = prefill(machine, prompt);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const Tensor &logits = outputs->at("logits");
  EXPECT_EQ(logits.shape, (std::vector<int64_t>{2, 16}));
  EXPECT_EQ(get(logits, 0 * 16 + 4), 5);
  EXPECT_EQ(get(logits, 1 * 16 + 5), 5);
  EXPECT_EQ(get(logits, 1 * 16 + 4), 0);
  EXPECT_FALSE(prefill(machine, std::vector<int32_t>(9, 1)).ok());
  EXPECT_FALSE(prefill(machine, std::vector<int32_t>{}).ok());
}

} // namespace
} // namespace weft::rt
