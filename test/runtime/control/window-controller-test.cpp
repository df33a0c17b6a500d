//===- window-controller-test.cpp - Choosing windows -------------*- C++ -*-===//
#include "runtime/control/WindowController.h"
#include "runtime/control/WindowRatios.h"
#include "runtime/control/WindowsFile.h"
#include "runtime/core/Philox.h"
#include "test/runtime/control/StateMachine.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

TEST(WindowRatios, OfThePapersShares) {
  // Shares of 512 / 1024 / 2048 / 4096 in tenths of a percent; AAH section 7.
  const std::vector<std::array<int, 4>> rows = {
      {327, 88, 136, 448}, {635, 185, 114, 66}, {513, 170, 168, 150}, {503, 201, 94, 201}};
  const std::vector<double> ratios = {.579, .249, .341, .361}, pairs = {.665, .381, .471, .477};
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<int64_t> heads;
    for (int k = 0; k < 4; ++k)
      heads.insert(heads.end(), static_cast<size_t>(rows[row][static_cast<size_t>(k)]), 512 << k);
    EXPECT_NEAR(contextRatio(heads, 4096), ratios[row], 1e-3) << row;
    EXPECT_NEAR(pairRatio(heads, 4096), pairs[row], 1e-3) << row;
  }
}

TEST(WindowRatios, OfFixedWindowsAndTheMix) {
  EXPECT_DOUBLE_EQ(contextRatio({1024}, 4096), .25);
  EXPECT_NEAR(pairRatio({1024}, 4096), .4375, 1e-4);
  EXPECT_NEAR(pairRatio({512}, 4096), .2343, 1e-4);
  EXPECT_NEAR(pairRatio({2048}, 4096), .7499, 1e-4);
  std::vector<int64_t> mix;
  for (auto [count, window] : {std::pair(20, 512), {6, 1024}, {4, 2048}, {2, 4096}})
    mix.insert(mix.end(), static_cast<size_t>(count), window);
  EXPECT_DOUBLE_EQ(contextRatio(mix, 4096), .25);
  EXPECT_NEAR(pairRatio(mix, 4096), .38473, 1e-5);
  EXPECT_EQ(windowCounts({kNoBound, 3, 3}, 8), (std::map<int64_t, int64_t>{{3, 2}, {8, 1}}));
}

// Against counting one pair after another: odd lengths, windows of 1, T - 1, T and beyond.
TEST(WindowRatios, PairsByCounting) {
  for (int64_t positions : {1, 2, 7, 64, 65})
    for (int64_t window :
         {int64_t{1}, int64_t{2}, int64_t{3}, positions - 1, positions, positions + 9, kNoBound}) {
      int64_t pairs = 0;
      for (int64_t row = 0; row < positions; ++row)
        for (int64_t key = 0; key <= row; ++key)
          pairs += key > row - window;
      if (window > 0) {
        EXPECT_EQ(causalPairs(window, positions), static_cast<double>(pairs)) << positions << " " << window;
      }
    }
}

// Row i sees key j within W or before F. Mutation: W alone, F keys of each row, rows up to W counted twice.
TEST(WindowRatios, OfFirstPlaces) {
  for (int64_t positions : {1, 64, 65, 200})
    for (int64_t window : {int64_t{1}, int64_t{3}, int64_t{70}, positions, kNoBound})
      for (int64_t places : {0, 64, 128, 256}) {
        int64_t pairs = 0;
        for (int64_t row = 0; row < positions; ++row)
          for (int64_t key = 0; key <= row; ++key)
            pairs += key > row - window || key < places;
        EXPECT_EQ(causalPairs(window, positions, places), static_cast<double>(pairs))
            << positions << " " << window << " " << places;
      }
  // 100 + 64 of 256 keys and 256; pairs: 100 * 101 / 2 + 156 * 100 and 64 * 65 / 2 + 92 * 64 behind the window.
  EXPECT_DOUBLE_EQ(contextRatio({100, 256}, 256, {64, 64}), (164 + 256) / 512.0);
  EXPECT_DOUBLE_EQ(pairRatio({100, 256}, 256, {64, 64}),
                   (5050 + 15600 + 2080 + 5888 + 32896) / (2 * 32896.0));
}

TEST(WindowScorers, SizesAndBounds) {
  const Scorer base(29, 64, 4, false, 3, "windows/block.0.attn/base");
  const Scorer joint(116, 256, 8, false, 3, "windows/block.0.attn/joint");
  EXPECT_EQ(base.numbers().size() + joint.numbers().size(), 34188u);
  double largest = 0;
  for (size_t i = 0; i < 64 * 30; ++i)
    largest = std::max(largest, std::fabs(base.numbers()[i]));
  EXPECT_LE(largest, 1 / std::sqrt(29.0));
  EXPECT_GT(largest, 0.99 / std::sqrt(29.0));
  EXPECT_NE(base.numbers(), Scorer(29, 64, 4, false, 3, "windows/block.1.attn/base").numbers());
}

TEST(WindowScorers, BestIndex) {
  EXPECT_EQ(bestIndex(std::vector<double>{1, 3, 3}.data(), 3), 1); // ties: the smaller window
  EXPECT_EQ(bestIndex(std::vector<double>{1, std::nan(""), 3}.data(), 3), -1);
}

/// A controller of one layer whose base scorer says `logits` whatever it sees.
WindowController constant(WindowOptions options, const WindowSite &site, const std::vector<double> &logits) {
  options.grouping = WindowOptions::Grouping::None;
  std::vector<int64_t> heads(static_cast<size_t>(site.heads)), candidates;
  std::iota(heads.begin(), heads.end(), int64_t{0});
  for (size_t i = 0; i < logits.size(); ++i)
    candidates.push_back(int64_t{1} << i);
  WindowController controller(options, candidates, site, heads, 0);
  std::vector<double> numbers(controller.baseScorer().numbers().size(), 0);
  std::copy(logits.begin(), logits.end(), numbers.end() - static_cast<std::ptrdiff_t>(logits.size()));
  EXPECT_TRUE(controller.baseScorer().setNumbers(numbers));
  return controller;
}

std::vector<std::optional<Feature>> seen(int64_t heads, double value = 1) {
  return std::vector<std::optional<Feature>>(static_cast<size_t>(heads), Feature{value});
}

// Half to even: 1.5 -> 2, 1, 0.5 -> 0. std::round gives 2, 1, 1 and stays.
TEST(WindowController, ResolutionAverageRoundsToEven) {
  WindowOptions options;
  options.resolutionKeep = 0.5;
  WindowController controller = constant(options, siteOf("a", 1), {1, 0, 0, 0});
  std::vector<int64_t> found;
  for (int64_t step : {0, 5, 10}) {
    EXPECT_TRUE(controller.update(seen(1), step, true));
    found.push_back(controller.state().index[0]);
  }
  EXPECT_EQ(found, (std::vector<int64_t>{2, 1, 0}));
}

// With 4 candidates and 0.15 the average never does anything.
TEST(WindowController, ResolutionAverageOfTheProtocolIsIdle) {
  for (int64_t before = 0; before < 4; ++before)
    for (int64_t chosen = 0; chosen < 4; ++chosen) {
      std::vector<double> logits(4, 0);
      logits[static_cast<size_t>(chosen)] = 1;
      WindowController controller = constant({}, siteOf("a", 1), logits);
      ControllerState state = controller.state();
      state.index = {before};
      controller.setState(state);
      controller.update(seen(1), 0, true);
      EXPECT_EQ(controller.state().index[0], chosen);
    }
}

TEST(WindowController, RampMovesFromFull) {
  WindowOptions options;
  options.ramp = {10, 20};
  WindowController controller = constant(options, siteOf("a", 1), {1, 0, 0, 0});
  std::vector<int64_t> found;
  for (int64_t step : {5, 10, 15, 20, 25}) {
    controller.update(seen(1), step, true);
    found.push_back(controller.state().index[0]);
  }
  EXPECT_EQ(found, (std::vector<int64_t>{3, 3, 2, 0, 0})); // 3 - 1.5 = 1.5 -> 2
}

TEST(WindowController, NaNKeepsTheIndex) {
  WindowController controller = constant({}, siteOf("a", 2), {0, 1, std::nan("")});
  EXPECT_FALSE(controller.update(seen(2), 0, true));
  EXPECT_EQ(controller.state().index, (std::vector<int64_t>{2, 2}));
  // A head that was not seen keeps its average; the others go on.
  WindowController fine = constant({}, siteOf("a", 2), {0, 1, 0});
  EXPECT_TRUE(fine.update(seen(2, 1), 0, true));
  EXPECT_FALSE(fine.update({Feature{2}, std::nullopt}, 5, true));
  EXPECT_NEAR((*fine.state().smoothed[0])[0], 1.1, 1e-15);
  EXPECT_EQ((*fine.state().smoothed[1])[0], 1);
}

TEST(WindowController, LeastWindow) {
  WindowOptions options;
  options.least = 3;
  WindowController controller = constant(options, siteOf("a", 1), {1, 0, 0, 0});
  EXPECT_EQ(controller.windows(), std::vector<int64_t>{8}); // starts at the last candidate
  controller.update(seen(1), 0, true);
  EXPECT_EQ(controller.windows(), std::vector<int64_t>{3});
}

// AAH section 5.5 by hand: two groups of one and three heads under one parent each.
TEST(WindowController, InputsOfTheDefinition) {
  const Hierarchy hierarchy{{{0, 1, 1, 2}, {0, 0, 0, 1}}};
  const std::vector<Feature> heads = {{1}, {2}, {4}, {8}};
  const auto features = levelFeatures(hierarchy, heads);
  const auto bottom = WindowController::inputs(hierarchy, features, 0);
  ASSERT_EQ(bottom.size(), 3u);
  ASSERT_EQ(bottom[1].size(), 29u);
  EXPECT_EQ(bottom[1][0], 3);             // g
  EXPECT_EQ(bottom[1][9], 0);             // level
  EXPECT_EQ(bottom[1][10], 3 - 2);        // less the parent's (1 + 3) / 2
  EXPECT_DOUBLE_EQ(bottom[1][19], 3 - 4); // less the mean of 1, 3, 8
  EXPECT_EQ(bottom[1][28], 0.5);          // two heads of four
  const auto top = WindowController::inputs(hierarchy, features, 1);
  EXPECT_EQ(top[0][9], 1);
  EXPECT_EQ(top[0][10], 0);              // no parent
  EXPECT_DOUBLE_EQ(top[0][28], 2.0 / 3); // immediate children, not heads
}

std::vector<Feature> headFeatures(int64_t heads, uint64_t seed) {
  const Philox numbers(seed, "heads");
  std::vector<Feature> features;
  for (int64_t head = 0; head < heads; ++head) {
    Feature feature{0.8, 1, 0.8, 1, 0.8, 1, 0.9, 0.3, 1};
    for (int i = 0; i < kFeatureCount; ++i)
      feature[i] *= 1 + 0.05 * numbers.normal(static_cast<uint64_t>(head * kFeatureCount + i));
    features.push_back(feature);
  }
  return features;
}

/// ACR of a layer of 32 heads after one update.
double lottery(const WindowOptions &options, uint64_t seed) {
  const WindowSite site = siteOf("block.0.attn", 32);
  std::vector<int64_t> heads(32);
  std::iota(heads.begin(), heads.end(), int64_t{0});
  WindowController controller(options, {512, 1024, 2048, kNoBound}, site, heads, seed);
  std::vector<std::optional<Feature>> observed;
  for (const Feature &feature : headFeatures(32, seed))
    observed.emplace_back(feature);
  controller.update(observed, 0, true);
  return contextRatio(controller.windows(), 4096);
}

// The policy is a lottery of the scorers' initial values; four clamped levels make it short:
// a mean of min over 4 levels of 4 uniform choices would be .182.
TEST(WindowController, AcrOfTheLottery) {
  WindowOptions deep, shallow, off;
  shallow.hierarchy = {2};
  off.grouping = WindowOptions::Grouping::None;
  double sums[3] = {0, 0, 0};
  for (uint64_t seed = 0; seed < 400; ++seed) {
    sums[0] += lottery(deep, seed);
    sums[1] += lottery(shallow, seed);
    sums[2] += lottery(off, seed);
  }
  EXPECT_NEAR(sums[0] / 400, 0.26, 0.04);
  EXPECT_NEAR(sums[1] / 400, 0.49, 0.05);
  EXPECT_NEAR(sums[2] / 400, 0.47, 0.07);
}

// A clamped child never exceeds its parent; parents never bind when they are free.
TEST(WindowController, ClampOnlyShortens) {
  WindowOptions bound, free;
  free.clampToParent = false;
  double shorter = 0;
  for (uint64_t seed = 0; seed < 40; ++seed)
    shorter += lottery(free, seed) - lottery(bound, seed);
  EXPECT_GT(shorter / 40, 0.05);
}

TEST(WindowController, KeptGroupsOutliveHeadsThatLeave) {
  WindowOptions options;
  options.topology = WindowOptions::Topology::Freeze;
  options.hierarchy = {2, 2};
  WindowSite site = siteOf("a", 8);
  std::vector<int64_t> heads = {0, 1, 2, 3, 4, 5, 6, 7};
  WindowController before(options, {8, 16, 32}, site, heads, 5);
  std::vector<std::optional<Feature>> observed;
  for (const Feature &feature : headFeatures(8, 1))
    observed.emplace_back(feature);
  before.update(observed, 0, true);
  const ControllerState kept = before.state();
  ASSERT_EQ(kept.kept.size(), 2u);
  // Heads of a whole group leave.
  std::erase_if(heads, [&](int64_t head) { return kept.kept[0][static_cast<size_t>(head)] == 1; });
  WindowController after(options, {8, 16, 32}, site, heads, 5);
  after.setState(kept);
  std::vector<std::optional<Feature>> left;
  for (int64_t head : heads)
    left.push_back(observed[static_cast<size_t>(head)]);
  EXPECT_TRUE(after.update(left, 5, true));
  EXPECT_EQ(after.state().kept, kept.kept);
  EXPECT_EQ(after.windows().size(), heads.size());
}

TEST(WindowsFile, ReadsWhatItWrites) {
  const WindowsFile file{64, {{8, kNoBound}, {0, 64}}};
  absl::StatusOr<WindowsFile> back = parseWindows(printWindows(file), "windows.json");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->length, 64);
  EXPECT_EQ(back->windows, file.windows);
  EXPECT_EQ(printWindows(file), "{\"length\":64,\"windows\":[[8,\"full\"],[0,64]]}\n");
}

TEST(WindowsFile, SaysWhatIsWrong) {
  auto message = [](const char *text) {
    return std::string(parseWindows(text, "w.json").status().message());
  };
  EXPECT_NE(message("{\"length\":4,\"windows\":[[1],[2,\"half\"]]}").find("list 1 entry 1"),
            std::string::npos);
  EXPECT_NE(message("{\"length\":4,\"windows\":[[-1]]}").find("found -1"), std::string::npos);
  EXPECT_NE(message("{\"windows\":[]}").find("length"), std::string::npos);
  EXPECT_NE(message("{\"length\":4,\"windows\":3}").find("list of lists"), std::string::npos);
}

} // namespace
} // namespace weft::rt
