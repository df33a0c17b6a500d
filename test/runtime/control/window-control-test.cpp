//===- window-control-test.cpp - Windows of a whole model --------*- C++ -*-===//
#include "runtime/control/WindowControl.h"
#include "runtime/control/WindowRatios.h"
#include "runtime/core/Philox.h"
#include "test/runtime/control/StateMachine.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Kind = WindowRule::Kind;

std::vector<WindowSite> twoSites(int64_t heads = 8) {
  return {siteOf("block.0.attn", heads), siteOf("block.1.attn", heads)};
}

WindowPlan planOf(std::vector<WindowRule> rules, std::vector<WindowSite> sites = twoSites()) {
  return {std::move(sites), std::move(rules), 128, 0};
}

WindowRule adaptive(const WindowOptions &options = {}) {
  WindowRule rule = ruleOf(Kind::Adaptive, {16, 32, 64, kNoBound}, twoSites());
  rule.adaptive = options;
  rule.seed = 9;
  return rule;
}

/// Statistics that heads of unlike size would give at `number`.
void observe(StateMachine &machine, const WindowPlan &plan, int64_t number) {
  const Philox random(1, "statistics");
  for (const WindowSite &site : plan.sites) {
    Tensor sums = *machine.readState("control/statistics/" + site.path);
    std::span<float> all = sums.as<float>();
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i], 0); // zeroed before
      all[i] = static_cast<float>(10 + 20 * random.uniform(static_cast<uint64_t>(number) * 1000 + i));
    }
    ASSERT_TRUE(machine.writeState("control/statistics/" + site.path, sums).ok());
  }
}

/// Steps first + 1 .. last.
void go(WindowControl &control, StateMachine &machine, int64_t first, int64_t last) {
  for (int64_t number = first + 1; number <= last; ++number) {
    if (control.observes(number)) {
      ASSERT_TRUE(control.before(machine).ok());
      observe(machine, control.plan(), number);
    }
    absl::StatusOr<std::string> warning = control.after(machine, number);
    ASSERT_TRUE(warning.ok()) << warning.status();
    EXPECT_EQ(*warning, "");
  }
}

// Windows follow from the statistics that were looked at, as `after` alone would have read them. Catches:
// statistics that are read again behind the look, those of an earlier step.
TEST(WindowControl, DecidesFromWhatWasLookedAt) {
  WindowControl at(planOf({adaptive()})), later(planOf({adaptive()}));
  StateMachine machine(twoSites()), other(twoSites());
  ASSERT_TRUE(at.begin(machine, nullptr, 0).ok());
  ASSERT_TRUE(later.begin(other, nullptr, 0).ok());
  for (int64_t number : {1, 6, 11}) {
    ASSERT_TRUE(at.before(machine).ok());
    observe(machine, at.plan(), number);
    ASSERT_TRUE(at.after(machine, number).ok());
    ASSERT_TRUE(later.before(other).ok());
    observe(other, later.plan(), number);
    ASSERT_TRUE(later.look(other, number).ok());
    ASSERT_TRUE(later.before(other).ok());
    ASSERT_TRUE(later.after(other, number).ok());
    EXPECT_EQ(at.windows(), later.windows()) << number;
  }
}

TEST(WindowControl, ControlStepsAreCountedFromZero) {
  WindowOptions options;
  options.passthrough = 10;
  const WindowControl control(planOf({adaptive(options)}));
  std::vector<int64_t> found;
  for (int64_t number = 1; number <= 30; ++number)
    if (control.observes(number))
      found.push_back(number - 1);
  EXPECT_EQ(found, (std::vector<int64_t>{0, 5}));
  options = {};
  options.control = false;
  EXPECT_FALSE(WindowControl(planOf({adaptive(options)})).observes(1));
}

TEST(WindowControl, DecisionsHoldFromTheNextStep) {
  const WindowPlan plan = planOf({adaptive()});
  StateMachine machine(plan.sites);
  WindowControl control(plan);
  ASSERT_TRUE(control.begin(machine, nullptr, 0).ok());
  EXPECT_EQ(machine.windows("block.0.attn"), std::vector<int32_t>(8, kNoBound));
  go(control, machine, 0, 1);
  const std::vector<int32_t> chosen = machine.windows("block.0.attn");
  EXPECT_NE(chosen, std::vector<int32_t>(8, kNoBound));
  const OrderedJson line = control.line(1);
  EXPECT_EQ(line["acr"], 1); // of the step itself
  EXPECT_EQ(line["levels"]["block.0.attn"], 2);
  go(control, machine, 1, 5);
  EXPECT_EQ(machine.windows("block.0.attn"), chosen); // cached between control steps
}

// Killed after 7 steps and gone on from what was saved: the same windows and state at the end.
TEST(WindowControl, GoesOnExactly) {
  for (auto topology : {WindowOptions::Topology::Refresh, WindowOptions::Topology::Freeze,
                        WindowOptions::Topology::ReuseHeads}) {
    WindowOptions options;
    options.topology = topology;
    options.shuffle = true;
    options.every = 3;
    WindowPlan plan = planOf({adaptive(options)});
    plan.warmupSteps = 4;
    StateMachine whole(plan.sites), first(plan.sites), second(plan.sites);
    WindowControl control(plan), before(plan), after(plan);
    ASSERT_TRUE(control.begin(whole, nullptr, 0).ok());
    ASSERT_TRUE(before.begin(first, nullptr, 0).ok());
    go(control, whole, 0, 20);
    go(before, first, 0, 7);
    const ControlState saved = before.state();
    ASSERT_TRUE(after.begin(second, &saved, 7).ok());
    EXPECT_EQ(second.windows("block.1.attn"), first.windows("block.1.attn"));
    go(after, second, 7, 20);
    EXPECT_EQ(second.windows("block.0.attn"), whole.windows("block.0.attn"));
    const ControlState one = control.state(), two = after.state();
    EXPECT_EQ(one.json, two.json);
    ASSERT_EQ(one.tensors.size(), two.tensors.size());
    for (size_t i = 0; i < one.tensors.size(); ++i) {
      EXPECT_EQ(one.tensors[i].first, two.tensors[i].first);
      EXPECT_EQ(one.tensors[i].second.bytes, two.tensors[i].second.bytes) << one.tensors[i].first;
    }
  }
}

TEST(WindowControl, RefusesTheStateOfAnotherPlan) {
  WindowRule other = adaptive();
  other.windows = {16, kNoBound};
  const ControlState saved = WindowControl(planOf({other})).state();
  const WindowPlan plan = planOf({adaptive()});
  StateMachine machine(plan.sites);
  WindowControl control(plan);
  const absl::Status status = control.begin(machine, &saved, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(status.message()).find("expected [2180], found [2050]"), std::string::npos) << status;
}

TEST(WindowControl, GivenWindowsFromALaterStep) {
  WindowRule listed = ruleOf(Kind::Listed, {}, twoSites(4));
  listed.targets = {{1, 2, 3, 4}, {5, 6, 7, kNoBound}};
  listed.from = 3;
  const WindowPlan plan = planOf({listed}, twoSites(4));
  StateMachine machine(plan.sites);
  WindowControl control(plan);
  ASSERT_TRUE(control.begin(machine, nullptr, 0).ok());
  go(control, machine, 0, 2);
  EXPECT_EQ(machine.windows("block.0.attn"), std::vector<int32_t>(4, kNoBound));
  go(control, machine, 2, 3); // step 3, from 0, is the next
  EXPECT_EQ(machine.windows("block.0.attn"), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(machine.windows("block.1.attn"), (std::vector<int32_t>{5, 6, 7, kNoBound}));
}

// Windows of a file keep each layer's multiset when they are dealt out anew.
TEST(WindowControl, PermutedFileKeepsEachLayersWindows) {
  WindowRule file = ruleOf(Kind::File, {}, twoSites());
  file.targets = {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 9, 9, 9, 1, 1, 1, 1}};
  file.permuted = true;
  auto windows = WindowControl(planOf({file})).windowsAt(0);
  EXPECT_NE(windows, file.targets);
  for (size_t site : {0, 1}) {
    std::sort(windows[site].begin(), windows[site].end());
    std::sort(file.targets[site].begin(), file.targets[site].end());
    EXPECT_EQ(windows[site], file.targets[site]);
  }
}

TEST(WindowControl, RandomWindowsFollowTheirShares) {
  const std::vector<WindowSite> sites = {siteOf("a", 4000)};
  WindowRule random = ruleOf(Kind::Random, {16, 32, 64, kNoBound}, sites);
  random.share = {.5, .3, .15, .05};
  const WindowControl once(planOf({random}, sites));
  const std::vector<int64_t> windows = once.windowsAt(0)[0];
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double>(std::count(windows.begin(), windows.end(), random.windows[i])) / 4000,
                random.share[i], 0.03);
  EXPECT_EQ(once.windowsAt(999)[0], windows);
  random.redraw = true;
  const WindowControl often(planOf({random}, sites));
  EXPECT_EQ(often.windowsAt(0)[0], windows);
  EXPECT_EQ(often.windowsAt(4)[0], windows);
  EXPECT_NE(often.windowsAt(5)[0], windows);
}

// A shuffle deals the same windows to other heads: the ratio is exactly that of the policy.
TEST(WindowControl, ShuffleKeepsTheRatio) {
  WindowOptions options;
  WindowPlan plain = planOf({adaptive(options)});
  options.shuffle = true;
  WindowPlan dealt = planOf({adaptive(options)});
  StateMachine one(plain.sites), two(dealt.sites);
  WindowControl policy(plain), shuffled(dealt);
  ASSERT_TRUE(policy.begin(one, nullptr, 0).ok());
  ASSERT_TRUE(shuffled.begin(two, nullptr, 0).ok());
  bool moved = false;
  // Usage feeds back into the next update: only the first decision is comparable.
  go(policy, one, 0, 1);
  go(shuffled, two, 0, 1);
  for (const char *path : {"block.0.attn", "block.1.attn"}) {
    std::vector<int32_t> a = one.windows(path), b = two.windows(path);
    moved |= a != b;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    EXPECT_EQ(a, b);
  }
  EXPECT_TRUE(moved);
}

TEST(WindowControl, HeadsThatLeftKeepTheirWindow) {
  WindowPlan plan = planOf({adaptive()});
  plan.sites[0].left = {{2, 24}, {5, 0}}; // frozen at 24, pruned
  StateMachine machine(plan.sites);
  WindowControl control(plan);
  ASSERT_TRUE(control.begin(machine, nullptr, 0).ok());
  go(control, machine, 0, 1);
  EXPECT_EQ(machine.windows("block.0.attn").size(), 6u);
  const std::vector<int64_t> windows = control.windowsAt(1)[0];
  EXPECT_EQ(windows[2], 24);
  EXPECT_EQ(windows[5], 0);
  EXPECT_EQ(machine.windows("block.0.attn")[2], static_cast<int32_t>(windows[3]));
  const OrderedJson line = control.line(1);
  EXPECT_LT(control.line(1)["acr"].get<double>(), line["acr_live"].get<double>() + 1);
}

// A head whose numbers are broken keeps its window, and the log says so once.
TEST(WindowControl, WarnsOfNumbersThatAreNone) {
  const WindowPlan plan = planOf({adaptive()});
  StateMachine machine(plan.sites);
  WindowControl control(plan);
  ASSERT_TRUE(control.begin(machine, nullptr, 0).ok());
  go(control, machine, 0, 1);
  const std::vector<int32_t> before = machine.windows("block.0.attn");
  go(control, machine, 1, 5);
  ASSERT_TRUE(control.before(machine).ok());
  Tensor sums(ElementType::F32, {8, 12});
  std::fill(sums.as<float>().begin(), sums.as<float>().end(), std::nanf(""));
  for (const char *path : {"control/statistics/block.0.attn", "control/statistics/block.1.attn"})
    ASSERT_TRUE(machine.writeState(path, sums).ok());
  absl::StatusOr<std::string> warning = control.after(machine, 6);
  ASSERT_TRUE(warning.ok());
  EXPECT_NE(warning->find("step 6"), std::string::npos) << *warning;
  for (const WindowControl::Layer &layer : control.layers())
    for (const std::optional<Feature> &feature : layer.controller.state().smoothed)
      EXPECT_TRUE(feature && std::isfinite((*feature)[0]));
}

// Of 12 heads in windows of 8 and full, T = 128.
TEST(WindowControl, LineAndFile) {
  WindowRule fixed = ruleOf(Kind::Fixed, {8}, twoSites(6));
  fixed.heads[1].clear();
  WindowControl control(planOf({fixed}, twoSites(6)));
  const OrderedJson line = control.line(0);
  EXPECT_DOUBLE_EQ(line["acr"].get<double>(), (8.0 / 128 + 1) / 2);
  EXPECT_DOUBLE_EQ(line["pair_ratio"].get<double>(), (causalPairs(8, 128) / (128 * 129 / 2) + 1) / 2);
  EXPECT_EQ(line["shares"]["8"], 0.5);
  // Tiles of 64: full computes 12,288 pairs, a window of 8 4,096 + 64 (64 + 7); products of
  // 2 + 3 + 4 times 8 channels, a multiply-add as two.
  EXPECT_EQ(line["executed_flops"].get<double>(), 6 * (12288 + 4096 + 64 * 71) * 2.0 * 9 * 8);
  EXPECT_DOUBLE_EQ(line["executed_ratio"].get<double>(), (12288.0 + 4096 + 64 * 71) / (2 * 12288));
  // In tiles of 64 rows and 128 keys (queries) each range is one block; of 64 queries, two and one,
  // and with a window of 8 two and one as well.
  control.setTiles([](int64_t, int64_t) { return AttendTiles{128, 128, 64, 128}; });
  const double forward = 12 * 2 * 64 * 128 * 2.0 * 16, query = 12 * 2 * 64 * 128 * 2.0 * 24;
  EXPECT_EQ(control.line(0)["executed_flops"].get<double>(), forward + query + 12 * 3 * 64 * 64 * 2.0 * 32);
  EXPECT_EQ(control.executedShare(), 1);
  EXPECT_EQ(control.files().at("windows.json"), "{\"length\":128,\"windows\":[[8,8,8,8,8,8],[\"full\","
                                                "\"full\",\"full\",\"full\",\"full\",\"full\"]]}\n");
}

} // namespace
} // namespace weft::rt
