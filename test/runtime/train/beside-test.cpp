// The training loop on a machine that works beside the host gives what it gives on
// one that does not, and leaves it something to do.
#include "test/runtime/train/LateMachine.h"
#include "test/runtime/train/TrainSetup.h"

#include <regex>

namespace weft::rt {
namespace {

struct Case {
  const char *name;
  Recipe recipe;
  TrainOptions options;
  BigramOptions model = smallOptions();
  std::shared_ptr<const TokenStream> stream = tokenStream();
};

/// One micro-batch a step; of 8 rows, 4 hold token 13, whose gradient is infinite.
Case skipping() {
  Case test{"steps without a finite norm", smallRecipe(8), {}};
  test.model.rows = 1, test.model.poison = 13;
  test.recipe.rows = test.recipe.microBatches = 1;
  std::vector<int32_t> ids(33, 2);
  ids.insert(ids.end(), 33, 13);
  auto stream = std::make_shared<TokenStream>();
  stream->add(ids);
  test.stream = stream;
  return test;
}

std::vector<Case> cases() {
  std::vector<Case> list{{"plain", smallRecipe(9), {}}, skipping()};
  Case saves{"saves", smallRecipe(9), {}};
  saves.recipe.saveEvery = 2;
  list.push_back(saves);
  Case sparse{"few lines", smallRecipe(9), {}};
  sparse.recipe.logEvery = 4;
  list.push_back(sparse);
  Case until{"until", smallRecipe(9), {}};
  until.options.until = 4;
  list.push_back(until);
  Case triggered{"trigger", smallRecipe(9), {}};
  triggered.options.trigger = [](int64_t step, double) { return step == 5; };
  list.push_back(triggered);
  return list;
}

/// log.jsonl and console lines without times.
std::string textOf(const std::string &folder) {
  std::string text;
  for (Json line : logLines(folder, "train")) {
    line.erase("seconds"), line.erase("tokens_per_s");
    text += dumpJson(line) + "\n";
  }
  return text + std::regex_replace(readFile(folder + ".console").value_or(""),
                                   std::regex("  [^ ]+ tokens/s[^\n]*"), "");
}

RunResult runCase(const Case &test, Machine &machine, const std::string &folder) {
  Console lines(nullptr);
  EXPECT_TRUE(lines.mirrorTo(folder + ".console").ok());
  TrainOptions options = test.options;
  options.console = &lines;
  return runTraining(machine, test.recipe, folder, options, nullptr, test.stream);
}

// Catches: a result read before its wait (NaN); slots that two steps share; an update
// that starts before the last norm is known (its bias correction counts a skipped
// step); gradients of a step that was only begun left behind.
TEST(Beside, GivesTheSame) {
  Scratch scratch;
  for (const Case &test : cases()) {
    SCOPED_TRACE(test.name);
    BigramMachine plain(test.model);
    LateMachine late(test.model);
    const std::string name = test.name;
    RunResult expected = runCase(test, plain, scratch / (name + ".plain"));
    RunResult found = runCase(test, late, scratch / (name + ".late"));
    ASSERT_TRUE(expected.summary.ok()) << expected.summary.status();
    ASSERT_TRUE(found.summary.ok()) << found.summary.status();
    EXPECT_EQ(found.model, expected.model);
    EXPECT_EQ(found.state, expected.state);
    EXPECT_EQ(textOf(scratch / (name + ".late")), textOf(scratch / (name + ".plain")));
    EXPECT_EQ(found.summary->step, expected.summary->step);
    EXPECT_EQ(found.summary->skipped, expected.summary->skipped);
    EXPECT_EQ(late.left(), 0u);
    EXPECT_EQ(late.readState("grad/table")->bytes, plain.readState("grad/table")->bytes);
    EXPECT_EQ(late.hyper, plain.hyper);
  }
}

// Only the last step leaves the machine with nothing to do.
TEST(Beside, NeverStandsStill) {
  Scratch scratch;
  LateMachine machine(smallOptions());
  ASSERT_TRUE(runTraining(machine, smallRecipe(20), scratch / "run").summary.ok());
  EXPECT_EQ(machine.dry, 1);
}

// Stopped after a step while the next was begun; resumed on the other kind of machine.
TEST(Beside, StopsAndResumesToTheSameBytes) {
  Scratch scratch;
  BigramMachine whole(smallOptions());
  LateMachine first(smallOptions()), second(smallOptions());
  RunResult expected = runTraining(whole, smallRecipe(9), scratch / "whole");
  TrainOptions options;
  int asked = 0;
  options.stop = [&] { return ++asked == 4; };
  RunResult half = runTraining(first, smallRecipe(9), scratch / "run", options);
  ASSERT_TRUE(half.summary.ok()) << half.summary.status();
  EXPECT_EQ(half.summary->step, 4);
  EXPECT_TRUE(half.summary->interrupted);
  const Tensor gradient = *first.readState("grad/table");
  for (std::byte byte : gradient.bytes)
    ASSERT_EQ(byte, std::byte{0});
  options = {};
  options.resume = true;
  RunResult rest = runTraining(second, smallRecipe(9), scratch / "run", options);
  ASSERT_TRUE(rest.summary.ok()) << rest.summary.status();
  EXPECT_EQ(rest.model, expected.model);
  EXPECT_EQ(rest.state, expected.state);
  std::vector<Json> lines = logLines(scratch / "run", "train");
  ASSERT_EQ(lines.size(), 9u);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(lines[i]["step"], i + 1);
}

} // namespace
} // namespace weft::rt
