// Plans: addresses, precedence, matching depths, and every option's default.
#include "frontend/Plan.h"
#include "test/frontend/error-pages.h"

#include <gtest/gtest.h>

namespace weft::lang {
namespace {

struct Read {
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file;
  std::optional<Model> model;
  std::optional<Plan> plan;
};

/// Plan `p` of `text` for the model `name` of models/`used`.weft.
Read readPlan(const std::string &used, const std::string &name, const std::string &text,
              const Overrides &overrides = {}, const std::string &plan = "p") {
  Read read;
  read.file = parseText(WEFT_SOURCE_DIR "/models/x.weft", "use \"" + used + ".weft\"\n" + text, read.sources,
                        read.diagnostics);
  read.model = checkModel(read.file, read.sources, name, overrides, read.diagnostics);
  if (read.model)
    read.plan = checkPlan(read.file, read.sources, plan, *read.model, read.diagnostics);
  return read;
}

Read forNano(const std::string &statements) {
  return readPlan("nano", "nano", "plan p for nano {\n" + statements + "\n}\n");
}

std::set<std::string> codes(const Diagnostics &diagnostics) {
  std::set<std::string> result;
  for (const Diagnostic &entry : diagnostics.sorted())
    result.insert(std::string(codeName(entry.code)));
  return result;
}

using Windows = std::vector<int64_t>;

TEST(Plan, FixedWindowsReachEveryHead) {
  Read read = forNano("windows 32");
  ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
  EXPECT_EQ(read.plan->fixedWindows.size(), 2u);
  EXPECT_EQ(read.plan->fixedWindows.at("block.1.attn"), (Windows{32, 32}));
}

TEST(Plan, TheNarrowerAddressWinsWhateverTheOrder) {
  for (const char *text :
       {"windows 32\nwindows [16, full] on block[1].attn\nwindows 8 on block[1].attn.heads[1]",
        "windows 8 on block[1].attn.heads[1]\nwindows [16, full] on block[1].attn\nwindows 32"}) {
    Read read = forNano(text);
    ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
    EXPECT_EQ(read.plan->fixedWindows.at("block.0.attn"), (Windows{32, 32}));
    EXPECT_EQ(read.plan->fixedWindows.at("block.1.attn"), (Windows{16, 8}));
  }
}

// Catches: heads counted column-major, or a window of the model that a plan forgets.
TEST(Plan, HeadsCountRowMajorAndOthersKeepTheModelsWindow) {
  Read read = readPlan("qwen3", "qwen3", "plan p for qwen3 { windows 64 on block[0].attn.heads[0, 3..4] }\n");
  ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
  const Windows &windows = read.plan->fixedWindows.at("block.0.attn");
  ASSERT_EQ(windows.size(), 16u);
  EXPECT_EQ(windows[0], 64);
  EXPECT_EQ(windows[1], kFullWindow);
  EXPECT_EQ(windows[3], 64);
  EXPECT_EQ(windows[4], 64);
  EXPECT_EQ(read.plan->sites[0].kvHeads, 8);

  Read zoo =
      readPlan("zoo", "gemma_like", "plan p for gemma_like { windows 16 on block[0, 5].attn.heads[0] }\n");
  ASSERT_TRUE(zoo.plan) << zoo.diagnostics.render(zoo.sources);
  EXPECT_EQ(zoo.plan->fixedWindows.at("block.0.attn"), (Windows{16, 128, 128, 128}));
  EXPECT_EQ(zoo.plan->fixedWindows.at("block.5.attn"), (Windows{16, kFullWindow, kFullWindow, kFullWindow}));

  Read shared = readPlan("zoo", "shared", "plan p for shared { windows 16 on group[1].step[2].attn }\n");
  ASSERT_TRUE(shared.plan) << shared.diagnostics.render(shared.sources);
  EXPECT_EQ(shared.plan->fixedWindows.size(), 1u);
  EXPECT_EQ(shared.plan->fixedWindows.begin()->first, "group.1.step.2.attn");
}

TEST(Plan, ShippedPlansCheck) {
  Read read;
  read.file = parseFile(WEFT_SOURCE_DIR "/models/plans.weft", read.sources, read.diagnostics);
  for (const ast::Plan &tree : read.file.plans) {
    Overrides overrides;
    if (tree.model.text == "san")
      overrides = {{"hidden", "2048"}, {"depth", "4"}};
    std::optional<Model> model =
        checkModel(read.file, read.sources, tree.model.text, overrides, read.diagnostics);
    ASSERT_TRUE(model);
    EXPECT_TRUE(checkPlan(read.file, read.sources, tree.name.text, *model, read.diagnostics))
        << tree.name.text << read.diagnostics.render(read.sources);
  }
}

// The shipped plans write every option with its default, so both must be equal.
TEST(Plan, WrittenDefaultsAreTheDefaults) {
  Read read = readPlan("plans", "gpt2",
                       "plan p for gpt2 {\n windows adaptive\n freeze 25% of block[..].attn.heads[..]\n}\n"
                       "plan both for gpt2 {\n use asymmetric\n use frozen\n}\n");
  std::optional<Plan> written = checkPlan(read.file, read.sources, "both", *read.model, read.diagnostics);
  ASSERT_TRUE(read.plan && written) << read.diagnostics.render(read.sources);
  const WindowsRule &a = read.plan->windows[0], &b = written->windows[0];
  EXPECT_EQ(a.windows, (Windows{512, 1024, 2048, kFullWindow}));
  EXPECT_EQ(a.windows, b.windows);
  EXPECT_EQ(a.adaptive.every, b.adaptive.every);
  EXPECT_EQ(a.adaptive.hierarchy, b.adaptive.hierarchy);
  EXPECT_EQ(a.adaptive.hierarchy, (Windows{2, 2, 2, 2}));
  EXPECT_EQ(a.adaptive.featureKeep, b.adaptive.featureKeep);
  EXPECT_EQ(a.adaptive.resolutionKeep, b.adaptive.resolutionKeep);
  EXPECT_EQ(a.adaptive.threshold, b.adaptive.threshold);
  EXPECT_EQ(a.adaptive.penalty, b.adaptive.penalty);
  EXPECT_EQ(a.adaptive.start, b.adaptive.start);
  EXPECT_EQ(a.adaptive.jointWidth, b.adaptive.jointWidth);
  const FreezeRule &c = read.plan->freezes[0], &d = written->freezes[0];
  EXPECT_EQ(c.by, d.by);
  EXPECT_EQ(c.at, d.at);
  EXPECT_EQ(c.pattern, d.pattern);
  EXPECT_EQ(c.tolerance, d.tolerance);
  EXPECT_EQ(c.calibrateRows, d.calibrateRows);
  EXPECT_EQ(c.rounds, d.rounds);
  EXPECT_EQ(c.stop, d.stop);
  EXPECT_DOUBLE_EQ(c.negligible, d.negligible);
  EXPECT_EQ(c.cutMiddle, d.cutMiddle);
  EXPECT_EQ(c.addressed.size(), 144u);
}

TEST(Plan, FreezeTopologyHasAHierarchyOfOne) {
  Read read = forNano("windows adaptive [16, full] { topology = freeze }");
  ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
  EXPECT_EQ(read.plan->windows[0].adaptive.hierarchy, Windows{2});
}

TEST(Plan, StartsAtACandidate) {
  EXPECT_TRUE(forNano("windows adaptive [16, full] { start = 16 }").plan);
  Read read = forNano("windows adaptive [16, 32] { start = 24 }");
  EXPECT_FALSE(read.plan);
  EXPECT_NE(read.diagnostics.render(read.sources).find("one of the candidates, 16, 32, found 24"),
            std::string::npos);
}

// Drawn patterns are dense without saying so; what can't be is refused by name. Mutations
// caught: a drawn pattern that is fitted; a limit of `form = dense` alone; a square that trains.
TEST(Plan, DenseForms) {
  for (const char *pattern : {"resample", "gaussian", "dirichlet(4)"}) {
    const std::string text = std::string("freeze 1 of block[0].attn.heads[..] { pattern = ") + pattern;
    Read read = forNano(text + " }");
    ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
    EXPECT_TRUE(read.plan->freezes[0].dense) << pattern;
    checkPlanAgainst(*read.plan, 2048, 1, read.diagnostics);
    EXPECT_FALSE(read.diagnostics.hasErrors());
    checkPlanAgainst(*read.plan, 4096, 1, read.diagnostics);
    EXPECT_NE(read.diagnostics.render(read.sources).find("found 4096, which is 67108864 bytes a head"),
              std::string::npos);
    EXPECT_EQ(codes(forNano(text + ", form = compact }").diagnostics), std::set<std::string>{"W0406"});
    EXPECT_EQ(codes(forNano(text + ", patterns = trained }").diagnostics), std::set<std::string>{"W0406"});
  }
  EXPECT_FALSE(forNano("freeze 1 of block[0].attn.heads[..]").plan->freezes[0].dense);
  EXPECT_TRUE(forNano("freeze 1 of block[0].attn.heads[..] { form = dense }").plan->freezes[0].dense);
}

// 5 layers of attention weigh what one with feed-forward weighs: 4 become 20 exactly.
TEST(Plan, DropMatchesDepth) {
  auto depthOf = [](const char *statement, Overrides overrides) {
    Read read = readPlan("san", "san", std::string("plan p for san { ") + statement + " }\n", overrides);
    EXPECT_TRUE(read.plan) << read.diagnostics.render(read.sources);
    return read.plan ? read.plan->drops[0].newDepth : -1;
  };
  Overrides ffn4 = {{"hidden", "2048"}, {"depth", "4"}}, ffn9 = {{"hidden", "2048"}, {"depth", "9"}};
  Overrides ffn20 = {{"hidden", "2048"}, {"depth", "20"}};
  EXPECT_EQ(depthOf("drop block[..].ffn match params", ffn4), 20);
  EXPECT_EQ(depthOf("drop block[..].ffn match params", ffn9), 45);
  EXPECT_EQ(depthOf("drop block[..].ffn match params", ffn20), 100);
  EXPECT_EQ(depthOf("drop block[..].ffn", ffn4), 4);
  EXPECT_EQ(depthOf("drop block[..].ffn depth 7", ffn4), 7);
  EXPECT_EQ(depthOf("drop block[..].ffn match flops { length = 2048 }", ffn4), 8);
  EXPECT_EQ(depthOf("drop block[..].ffn match flops { length = 2048 }", ffn9), 18);
  EXPECT_EQ(depthOf("drop block[..].ffn match flops { length = 2048, round = nearest }", ffn9), 19);
  EXPECT_EQ(depthOf("drop block[..].ffn match flops { length = 2048 }", ffn20), 41);
  EXPECT_EQ(depthOf("drop block[..].ffn match flops { length = 2048, round = nearest }", ffn20), 42);
}

// Of 3 (2 M + 2 V d + 4 T L h d_h), V d = 16384 x 512, and M = 3,932,160 a layer with FFN and
// 786,432 without: with 4 T h d_h = 4,194,304 a layer in full, half of it is 2,097,152, and what
// row sums see of it at T = 2048 is 2,098,176 (2048 x 2049 pairs / 2), or under windows of 256
// 491,648 (2048 x 256 - 256 x 255 / 2 pairs). Mutations caught: counts exchanged, a window not
// looked up, the pairs of the first rows counted as those of the last.
TEST(Plan, DropCountsWhatItIsAsked) {
  Overrides ffn4 = {{"hidden", "2048"}, {"depth", "4"}};
  auto dropOf = [&](const std::string &count, const std::string &window) {
    std::string text = slurp(WEFT_SOURCE_DIR "/models/san.weft");
    const std::string values = "u @ wv";
    text.insert(text.find(values) + values.size(), window);
    text += "\nplan p for san { drop block[..].ffn match flops { length = 2048, count = " + count + " } }\n";
    Read read;
    read.file = parseText(WEFT_SOURCE_DIR "/models/x.weft", text, read.sources, read.diagnostics);
    read.model = checkModel(read.file, read.sources, "san", ffn4, read.diagnostics);
    EXPECT_TRUE(read.model) << read.diagnostics.render(read.sources);
    if (read.model)
      read.plan = checkPlan(read.file, read.sources, "p", *read.model, read.diagnostics);
    EXPECT_TRUE(read.plan) << read.diagnostics.render(read.sources);
    return read.plan ? read.plan->drops[0] : DropRule();
  };
  auto mismatch = [](double depth, double pairs) {
    return (2 * depth * 786432 + 16777216 + depth * pairs) / (2 * 4 * 3932160.0 + 16777216 + 4 * pairs) - 1;
  };
  EXPECT_EQ(dropOf("full", "").newDepth, 8);
  EXPECT_NEAR(dropOf("full", "").mismatch, mismatch(8, 4194304), 1e-12);
  EXPECT_EQ(dropOf("causal", "").newDepth, 10);
  EXPECT_NEAR(dropOf("causal", "").mismatch, mismatch(10, 2097152), 1e-12); // -1/18
  EXPECT_EQ(dropOf("executed", "").newDepth, 10);
  EXPECT_NEAR(dropOf("executed", "").mismatch, mismatch(10, 2098176), 1e-12);
  EXPECT_EQ(dropOf("executed", ", window = 256").newDepth, 16);
  EXPECT_NEAR(dropOf("executed", ", window = 256").mismatch, mismatch(16, 491648), 1e-12);
  // The other two don't look at windows.
  EXPECT_EQ(dropOf("causal", ", window = 256").newDepth, 10);
}

// GPT-2: biases are not counted, so 12 layers become 36.
TEST(Plan, DropCountsMatricesOnly) {
  Read read =
      readPlan("gpt2", "gpt2",
               "plan p for gpt2 {\n drop block[..].ffn match params\n windows 64 on block[35].attn\n}\n");
  ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
  EXPECT_EQ(read.plan->drops[0].newDepth, 36);
  EXPECT_EQ(read.plan->depthSetting, "depth");
  EXPECT_EQ(read.plan->sites.size(), 36u);
  EXPECT_EQ(read.plan->fixedWindows.begin()->first, "block.35.attn");
}

// What stays after a drop: names, and weights in matrices as the paper counts
// them. Mutation caught: the branch's parameters still listed.
TEST(Plan, DroppedModelsHoldWhatIsLeft) {
  Read read = readPlan("san", "san", "plan p for san { drop block[..].ffn match params }\n",
                       {{"hidden", "2048"}, {"depth", "4"}});
  ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
  Model after = afterDrops(*read.plan, *read.model);
  int64_t total = 0;
  for (const ParameterInfo &info : parametersOf(after)) {
    EXPECT_EQ(info.path.find("ffn"), std::string::npos) << info.path;
    int64_t count = 1;
    for (int64_t size : info.shape)
      count *= size;
    total += count;
  }
  EXPECT_EQ(total, 24'130'580);
  EXPECT_EQ(layerMatrixWeights(after, {}), 15'728'640);
  EXPECT_EQ(layerMatrixWeights(*read.model, {}), 15'728'640);

  Read some = readPlan("san", "san", "plan p for san { drop block[0..2].ffn }\n",
                       {{"hidden", "2048"}, {"depth", "4"}});
  ASSERT_TRUE(some.plan) << some.diagnostics.render(some.sources);
  after = afterDrops(*some.plan, *some.model);
  EXPECT_EQ(layerMatrixWeights(after, {}), 15'728'640 - 3 * 3'145'728);
  EXPECT_EQ(outlineOf(after)->root.children[3].children.size(), 2u);
  EXPECT_EQ(outlineOf(after)->root.children[2].children.size(), 1u);
}

// Qwen3 has GQA and a gated FFN: 28 layers of it weigh as much as 70 without.
TEST(Plan, DropMatchesQwen) {
  Read read = readPlan("qwen3", "qwen3", "plan p for qwen3 { drop block[..].ffn match params }\n");
  ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
  EXPECT_EQ(read.plan->drops[0].newDepth, 70);
}

TEST(Plan, AMissingBranchNamesTheSetting) {
  Read read = readPlan("san", "san", "plan p for san { drop block[..].ffn }\n");
  EXPECT_FALSE(read.plan);
  std::string text = read.diagnostics.render(read.sources);
  EXPECT_NE(text.find("W0417"), std::string::npos) << text;
  EXPECT_NE(text.find("hidden = 0"), std::string::npos) << text;
}

TEST(Plan, UnknownOptionsListTheOnesThereAre) {
  Read read = forNano("windows adaptive [16, full] { evry = 5 steps }");
  std::string text = read.diagnostics.render(read.sources);
  EXPECT_NE(text.find("passthrough"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean `every`?"), std::string::npos) << text;
}

TEST(Plan, AllIndependentErrorsAreReported) {
  Read read = forNano(
      "windows 0\nwindows 16 on block[9].attn\nfreeze block[0].attn { form = dens }\ndorp block[..].ffn");
  EXPECT_EQ(codes(read.diagnostics), (std::set<std::string>{"W0403", "W0406", "W0407", "W0409"}))
      << read.diagnostics.render(read.sources);
}

TEST(Plan, TheTableShowsEveryHead) {
  Read read = forNano("windows 32 on block[0]\nfreeze block[0].attn.heads[1]\nfreeze 1 of block[1].attn");
  ASSERT_TRUE(read.plan) << read.diagnostics.render(read.sources);
  EXPECT_EQ(printPlan(*read.plan), "block.0.attn  32       32 f\n"
                                   "block.1.attn  full ?f  full ?f\n"
                                   "f frozen, p pruned, ? a candidate: training chooses\n");
}

TEST(Plan, EveryDiagnosticHasAPlace) {
  Read read = forNano("windows 16 on block[..].attn.heads[2]");
  std::vector<Diagnostic> entries = read.diagnostics.sorted();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(read.sources.textAt(entries[0].place), "2");
}

} // namespace
} // namespace weft::lang
