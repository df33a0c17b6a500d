//===- watch-test.cpp - Numbers of parameters that a run reports -----------===//
#include "runtime/measure/Watch.h"
#include "test/runtime/train/TrainSetup.h"

#include <cmath>

namespace weft::rt {
namespace {

TEST(Watch, KindsLeaveOutNumbersAlone) {
  EXPECT_EQ(kindOf("block.3.attn.gate"), "block[..].attn.gate");
  EXPECT_EQ(kindOf("group.0.step.12.w2"), "group[..].step[..].w2");
  EXPECT_EQ(kindOf("embed"), "embed");
}

/// The bigram machine whose table holds 2 on the diagonal.
BigramMachine diagonal() {
  BigramMachine machine(smallOptions());
  Tensor table = *machine.readState("table");
  for (int64_t i = 0; i < table.elements(); ++i)
    set(table, i, i % 17 == 0 ? 2 : 0);
  EXPECT_TRUE(machine.writeState("table", table).ok());
  return machine;
}

double valueOf(WatchKind kind) {
  absl::StatusOr<WatchValues> values = watch({"f(table)", kind, {{"table", 1}}}, diagonal());
  EXPECT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->kinds.at("table"), values->values.at("table"));
  return values->values.at("table");
}

// By hand for 2 I of size 16. Sigmoid of the mean in place of the mean of sigmoids gives 0.531.
TEST(Watch, ByHand) {
  EXPECT_NEAR(valueOf(WatchKind::StableRank), 16, 1e-9);
  EXPECT_NEAR(valueOf(WatchKind::Norm), 8, 1e-12);
  EXPECT_NEAR(valueOf(WatchKind::Mean), 2.0 / 16, 1e-12);
  EXPECT_NEAR(valueOf(WatchKind::Sigmoid), 0.5 * 15 / 16 + 1 / (1 + std::exp(-2)) / 16, 1e-9);
}

// wq [8, 2, 3, 4] with 5 of 6 heads kept is [8, 5, 4]: 8 rows. wo [2, 3, 4, 8] is [5, 4, 8]: 20 rows.
// The declared number of axes taken as it stands gives 160 rows for wo.
TEST(Watch, KeptSlicesAreMatricesToo) {
  Matrix q = asMatrix(Tensor(ElementType::F32, {8, 5, 4}), {"wq", 1, {8, 2, 3, 4}});
  EXPECT_EQ(q.rows, 8);
  EXPECT_EQ(q.columns, 20);
  Matrix o = asMatrix(Tensor(ElementType::F32, {5, 4, 8}), {"wo", 3, {2, 3, 4, 8}});
  EXPECT_EQ(o.rows, 20);
  EXPECT_EQ(o.columns, 8);
  EXPECT_EQ(asMatrix(Tensor(ElementType::F32, {2, 3, 4, 8}), {"wo", 3, {2, 3, 4, 8}}).rows, 24);
}

TEST(Watch, UnknownParametersAreNamed) {
  absl::StatusOr<WatchValues> values = watch({"mean(x)", WatchKind::Mean, {{"x", 1}}}, diagonal());
  ASSERT_FALSE(values.ok());
  EXPECT_NE(std::string(values.status().message()).find("mean(x)"), std::string::npos);
}

TEST(Watch, RunsLogItAtEveryEvaluation) {
  Scratch scratch;
  BigramMachine machine(smallOptions());
  Recipe recipe = smallRecipe(6);
  recipe.evalEvery = 2;
  TrainOptions options;
  options.watch = {{"norm(all)", WatchKind::Norm, {{"table", 1}}}};
  ASSERT_TRUE(runTraining(machine, recipe, scratch / "run", options).summary.ok());
  std::vector<Json> lines = logLines(scratch / "run", "watch");
  ASSERT_EQ(lines.size(), 3u);
  double sum = 0;
  const Tensor table = *machine.readState("table");
  for (int64_t i = 0; i < table.elements(); ++i)
    sum += get(table, i) * get(table, i);
  EXPECT_EQ(lines[2]["step"], 6);
  EXPECT_NEAR(lines[2]["values"]["table"].get<double>(), std::sqrt(sum), 1e-9);
  EXPECT_NE(lines[0]["values"]["table"], lines[2]["values"]["table"]);
}

} // namespace
} // namespace weft::rt
