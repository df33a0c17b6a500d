//===- train-test.cpp - The loop on a bigram model --------------*- C++ -*-===//
#include "test/runtime/train/TrainSetup.h"

#include <cmath>
#include <set>

namespace weft::rt {
namespace {

TEST(Train, LearnsAndLogsEveryStep) {
  Scratch scratch;
  BigramMachine machine(smallOptions());
  const Recipe recipe = smallRecipe(60);
  RunResult result = runTraining(machine, recipe, scratch / "run");
  ASSERT_TRUE(result.summary.ok()) << result.summary.status();
  std::vector<Json> lines = logLines(scratch / "run", "train");
  ASSERT_EQ(lines.size(), 60u);
  EXPECT_LT(lines.back()["loss"].get<double>(), 0.6 * lines[0]["loss"].get<double>());
  EXPECT_EQ(lines[9]["step"], 10);
  EXPECT_EQ(lines[9]["tokens"], 10 * 4 * 8);
  EXPECT_FLOAT_EQ(lines[0]["lr"].get<float>(), 0.1f / 3);
  EXPECT_EQ(lines[9]["skipped"], 0);
  for (const char *key : {"grad_norm", "tokens_per_s", "seconds"})
    EXPECT_TRUE(lines[9][key].is_number()) << key;
  EXPECT_EQ(lines[0].size(), 9u);
}

// One step from a zero table: AdamW moves each touched logit by the whole rate,
// up where the bigram occurs and down elsewhere: g / (|g| + eps) with corrected moments.
TEST(Train, FirstUpdateIsBiasCorrected) {
  Scratch scratch;
  BigramOptions options = smallOptions();
  options.init = {};
  BigramMachine machine(options);
  Recipe recipe = smallRecipe(1);
  recipe.schedule = {};
  auto stream = std::make_shared<TokenStream>();
  stream->add(std::vector<int32_t>(33, 2)); // 2 always follows 2
  ASSERT_TRUE(runTraining(machine, recipe, scratch / "run", {}, nullptr, stream).summary.ok());
  const Tensor table = *machine.readState("table");
  EXPECT_NEAR(get(table, 2 * 16 + 2), 0.1, 1e-6);
  EXPECT_NEAR(get(table, 2 * 16 + 5), -0.1, 1e-6);
  EXPECT_EQ(get(table, 3 * 16 + 3), 0);
  ASSERT_EQ(machine.hyper.size(), 1u);
  EXPECT_NEAR(machine.hyper[0][1], 1 / (1 - 0.9), 1e-5);
  EXPECT_NEAR(machine.hyper[0][2], 1 / (1 - 0.95), 1e-4);
  EXPECT_NEAR(machine.inverseCounts[0], 1.0 / 32, 1e-9);
}

// What dropout draws with: catches a number a step, a number for the whole run,
// and one that a resumed run or another seed would not move.
TEST(Train, EachMicroBatchDrawsItsOwnNoise) {
  auto noisesOf = [](uint64_t seed, std::optional<int64_t> until) {
    Scratch scratch;
    BigramMachine machine(smallOptions()), second(smallOptions());
    Recipe recipe = smallRecipe(10);
    recipe.seed = seed;
    TrainOptions options;
    options.until = until;
    EXPECT_TRUE(runTraining(machine, recipe, scratch / "run", options).summary.ok());
    if (!until)
      return machine.noises;
    options = {};
    options.resume = true;
    EXPECT_TRUE(runTraining(second, recipe, scratch / "run", options).summary.ok());
    machine.noises.insert(machine.noises.end(), second.noises.begin(), second.noises.end());
    return machine.noises;
  };
  const std::vector<int32_t> noises = noisesOf(7, {});
  ASSERT_EQ(noises.size(), 20u);
  EXPECT_EQ(std::set<int32_t>(noises.begin(), noises.end()).size(), 20u);
  EXPECT_EQ(noisesOf(7, 4), noises);
  EXPECT_NE(noisesOf(8, {}), noises);
}

/// Two documents of 10 and 100 targets, each in a row of its own.
Recipe unevenRecipe(int64_t microBatches) {
  Recipe recipe = smallRecipe(1);
  recipe.documentsApart = true;
  recipe.packWhole = true;
  recipe.rows = 2;
  recipe.positions = 100;
  recipe.microBatches = microBatches;
  return recipe;
}

TEST(Train, WeighsUnevenMicroBatchesByTheirTargets) {
  auto stream = std::make_shared<TokenStream>();
  for (int64_t length : {11, 101}) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < length; ++i)
      ids.push_back(static_cast<int32_t>((i * i + length) % 16));
    stream->add(ids);
  }
  std::vector<Tensor> moments;
  std::vector<double> losses;
  for (int64_t micros : {1, 2}) {
    Scratch scratch;
    BigramOptions options;
    options.rows = 2 / micros;
    options.positions = 100;
    BigramMachine machine(options);
    RunResult result = runTraining(machine, unevenRecipe(micros), scratch / "run", {}, nullptr, stream);
    ASSERT_TRUE(result.summary.ok()) << result.summary.status();
    EXPECT_NEAR(machine.inverseCounts[0], 1.0 / 110, 1e-9);
    moments.push_back(*machine.readState("adamw.m/table"));
    losses.push_back(result.summary->loss);
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
  for (int64_t i = 0; i < moments[0].elements(); ++i)
    ASSERT_NEAR(get(moments[0], i), get(moments[1], i), 1e-7) << i;
}

TEST(Train, SameSeedGivesSameBytesAndAnotherSeedOthers) {
  Scratch scratch;
  std::vector<RunResult> results;
  for (uint64_t seed : {7, 7, 8}) {
    BigramMachine machine(smallOptions());
    Recipe recipe = smallRecipe(12);
    recipe.seed = seed;
    results.push_back(runTraining(machine, recipe, scratch / ("run" + std::to_string(results.size()))));
    ASSERT_TRUE(results.back().summary.ok());
  }
  EXPECT_EQ(results[0].model, results[1].model);
  EXPECT_EQ(results[0].state, results[1].state);
  EXPECT_NE(results[0].model, results[2].model);
}

// The data holds token 13 (its gradient is infinite) in some steps.
TEST(Train, SkipsStepsWithoutAFiniteNorm) {
  Scratch scratch;
  BigramOptions options;
  options.poison = 13;
  BigramMachine machine(options);
  Recipe recipe = smallRecipe(6); // of 8 rows, one a step: 4 hold token 13
  recipe.rows = recipe.microBatches = 1;
  recipe.schedule = {};
  std::vector<int32_t> ids(33, 2);
  std::vector<int32_t> bad(33, 13);
  auto stream = std::make_shared<TokenStream>();
  ids.insert(ids.end(), bad.begin(), bad.end());
  stream->add(ids);
  const std::string console = scratch / "console.log";
  Console lines(nullptr);
  ASSERT_TRUE(lines.mirrorTo(console).ok());
  TrainOptions trainOptions;
  trainOptions.console = &lines;
  RunResult result = runTraining(machine, recipe, scratch / "run", trainOptions, nullptr, stream);
  ASSERT_TRUE(result.summary.ok()) << result.summary.status();
  std::vector<Json> log = logLines(scratch / "run", "train");
  ASSERT_EQ(log.size(), 6u);
  ASSERT_GT(result.summary->skipped, 0);
  ASSERT_LT(result.summary->skipped, 6);
  int64_t updates = 0;
  for (size_t i = 0; i < log.size(); ++i) {
    // The correction counts updates that were made, not steps.
    const bool skipped = log[i]["grad_norm"].is_null();
    const double expected = 1 / (1 - std::pow(0.9, static_cast<double>(updates + 1)));
    if (!skipped) {
      bool seen = false;
      for (const auto &rates : machine.hyper)
        seen |= std::abs(rates[1] - expected) < 1e-4 * expected;
      EXPECT_TRUE(seen) << "step " << i + 1;
      ++updates;
    }
  }
  EXPECT_EQ(updates + result.summary->skipped, 6);
  const Tensor table = *machine.readState("table");
  for (int64_t i = 0; i < table.elements(); ++i)
    ASSERT_TRUE(std::isfinite(get(table, i)));
  const std::string text = *readFile(console);
  EXPECT_NE(text.find("skipped: gradient norm inf"), std::string::npos) << text;
  EXPECT_NE(text.find("first broken gradient 'grad/table'"), std::string::npos) << text;
}

TEST(Train, LeavesWeightsBitEqualInASkippedStepAndStopsAfterTooMany) {
  Scratch scratch;
  BigramOptions options = smallOptions();
  options.poison = 2;
  BigramMachine machine(options);
  auto stream = std::make_shared<TokenStream>();
  stream->add(std::vector<int32_t>(33, 2));
  BigramMachine untouched(options);
  TrainOptions nothing;
  nothing.until = 0;
  ASSERT_TRUE(
      runTraining(untouched, smallRecipe(90), scratch / "start", nothing, nullptr, stream).summary.ok());
  RunResult result = runTraining(machine, smallRecipe(90), scratch / "run", {}, nullptr, stream);
  ASSERT_FALSE(result.summary.ok());
  EXPECT_EQ(result.summary.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(result.summary.status().message()).find("50 steps in a row"), std::string::npos);
  EXPECT_EQ(machine.readState("table")->bytes, untouched.readState("table")->bytes);
}

TEST(Train, RunsOnAFloat64Machine) {
  Scratch scratch;
  BigramOptions options = smallOptions();
  options.type = ElementType::F64;
  BigramMachine wide(options), narrow(smallOptions());
  RunResult a = runTraining(wide, smallRecipe(5), scratch / "wide");
  RunResult b = runTraining(narrow, smallRecipe(5), scratch / "narrow");
  ASSERT_TRUE(a.summary.ok() && b.summary.ok()) << a.summary.status();
  EXPECT_NEAR(a.summary->loss, b.summary->loss, 1e-5);
}

TEST(Train, EvaluatesOnTimeAndAtTheEnd) {
  Scratch scratch;
  BigramMachine machine(smallOptions());
  Recipe recipe = smallRecipe(5);
  recipe.evalEvery = 2;
  absl::StatusOr<EvalData> eval = EvalData::make(tokenStream(50), recipe);
  ASSERT_TRUE(eval.ok()) << eval.status();
  RunResult result = runTraining(machine, recipe, scratch / "run", {}, &*eval);
  ASSERT_TRUE(result.summary.ok());
  std::vector<Json> lines = logLines(scratch / "run", "eval");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["step"], 2);
  EXPECT_EQ(lines[2]["step"], 5);
  EXPECT_EQ(lines[2]["targets"], 49);
  EXPECT_DOUBLE_EQ(lines[2]["perplexity"].get<double>(), std::exp(lines[2]["loss"].get<double>()));
}

TEST(Train, RefusesAnUpdateWhoseGroupHasNoOptimizer) {
  Scratch scratch;
  BigramMachine machine(smallOptions());
  Recipe recipe = smallRecipe(2);
  recipe.optimizers.clear();
  RunResult result = runTraining(machine, recipe, scratch / "run");
  ASSERT_FALSE(result.summary.ok());
  EXPECT_NE(std::string(result.summary.status().message()).find("hyper.0"), std::string::npos);
}

} // namespace
} // namespace weft::rt
