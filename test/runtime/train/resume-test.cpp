//===- resume-test.cpp - Stopped, killed and interrupted runs ---*- C++ -*-===//
#include "test/runtime/train/TrainSetup.h"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace weft::rt {
namespace {

constexpr int64_t kSteps = 10;

Recipe savingRecipe() {
  Recipe recipe = smallRecipe(kSteps);
  recipe.saveEvery = 3;
  return recipe;
}

/// Runs `body` in a child; returns what waitpid says.
int inChild(const std::function<int()> &body) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

RunResult straightRun(const Scratch &scratch) {
  BigramMachine machine(smallOptions());
  RunResult result = runTraining(machine, savingRecipe(), scratch / "straight");
  EXPECT_TRUE(result.summary.ok()) << result.summary.status();
  return result;
}

/// Resumes in a fresh machine and compares files and log with a run that was never stopped.
void resumeAndCompare(const Scratch &scratch, const std::string &run) {
  const RunResult straight = straightRun(scratch);
  BigramMachine machine(smallOptions());
  TrainOptions options;
  options.resume = true;
  RunResult resumed = runTraining(machine, savingRecipe(), scratch / run, options);
  ASSERT_TRUE(resumed.summary.ok()) << resumed.summary.status();
  EXPECT_EQ(resumed.summary->step, kSteps);
  EXPECT_EQ(straight.model, resumed.model);
  EXPECT_EQ(straight.state, resumed.state);
  ASSERT_FALSE(straight.model.empty());
  std::vector<Json> a = logLines(scratch / "straight", "train"), b = logLines(scratch / run, "train");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (const char *key : {"step", "tokens", "loss", "lr", "grad_norm", "skipped"})
      EXPECT_EQ(a[i][key], b[i][key]) << "line " << i << " " << key;
}

// Rate, loss and first token of steps 6 to 10, and all bytes at the end.
TEST(Resume, FiveAndFiveStepsEqualTen) {
  Scratch scratch;
  BigramMachine first(smallOptions()), second(smallOptions()), whole(smallOptions());
  TrainOptions options;
  options.until = 5;
  RunResult half = runTraining(first, savingRecipe(), scratch / "run", options);
  ASSERT_TRUE(half.summary.ok()) << half.summary.status();
  EXPECT_EQ(half.summary->step, 5);
  resumeAndCompare(scratch, "run");

  ASSERT_TRUE(runTraining(whole, savingRecipe(), scratch / "whole").summary.ok());
  ASSERT_TRUE(runTraining(first, savingRecipe(), scratch / "again", options).summary.ok());
  options = {};
  options.resume = true;
  ASSERT_TRUE(runTraining(second, savingRecipe(), scratch / "again", options).summary.ok());
  ASSERT_EQ(whole.firstTokens.size(), 20u);
  ASSERT_EQ(second.firstTokens.size(), 10u);
  EXPECT_TRUE(
      std::equal(second.firstTokens.begin(), second.firstTokens.end(), whole.firstTokens.begin() + 10));
  EXPECT_TRUE(std::equal(second.hyper.begin(), second.hyper.end(), whole.hyper.begin() + 5));
}

TEST(Resume, AfterKillBetweenSaves) {
  Scratch scratch;
  const int status = inChild([&] {
    BigramMachine machine(smallOptions());
    TrainOptions options;
    int asked = 0;
    options.stop = [&] {
      if (++asked == 8) // after step 8; the last save was at 6
        ::raise(SIGKILL);
      return false;
    };
    runTraining(machine, savingRecipe(), scratch / "run", options);
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(*readFile(scratch / "run/checkpoints/latest"), "step-00000006\n");
  ASSERT_EQ(logLines(scratch / "run", "train").size(), 8u);
  resumeAndCompare(scratch, "run");
}

TEST(Resume, AfterKillInsideASave) {
  Scratch scratch;
  const int status = inChild([&] {
    BigramMachine machine(smallOptions());
    machine.onRead = [saves = 0](std::string_view name) mutable {
      if (name == "adamw.v/table" && ++saves == 2) // model.safetensors is written, state.safetensors half
        ::raise(SIGKILL);
    };
    runTraining(machine, savingRecipe(), scratch / "run");
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(*readFile(scratch / "run/checkpoints/latest"), "step-00000003\n");
  EXPECT_FALSE(std::filesystem::exists(scratch / "run/checkpoints/step-00000006"));
  resumeAndCompare(scratch, "run");
  for (const auto &entry : std::filesystem::directory_iterator(scratch / "run/checkpoints"))
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path(); // leftovers are cleared
}

TEST(Resume, AfterKillBeforeTheFirstSave) {
  Scratch scratch;
  const int status = inChild([&] {
    BigramMachine machine(smallOptions());
    TrainOptions options;
    options.stop = []() -> bool { return ::raise(SIGKILL); };
    runTraining(machine, savingRecipe(), scratch / "run", options);
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  resumeAndCompare(scratch, "run");
}

/// Trains with a guard; sends itself `signals` SIGINTs after step 4.
int interruptedChild(const std::string &path, int signals) {
  return inChild([&] {
    InterruptGuard guard;
    BigramMachine machine(smallOptions());
    TrainOptions options;
    int asked = 0;
    options.stop = [&] {
      if (++asked == 4)
        for (int i = 0; i < signals; ++i)
          ::raise(SIGINT);
      return InterruptGuard::requested();
    };
    RunResult result = runTraining(machine, savingRecipe(), path, options);
    return result.summary.ok() && result.summary->interrupted ? kInterruptedExit : 1;
  });
}

TEST(Interrupt, FirstFinishesTheStepAndSaves) {
  Scratch scratch;
  const int status = interruptedChild(scratch / "run", 1);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(*readFile(scratch / "run/checkpoints/latest"), "step-00000004\n");
  resumeAndCompare(scratch, "run");
}

TEST(Interrupt, SecondStopsAtOnce) {
  Scratch scratch;
  const int status = interruptedChild(scratch / "run", 2);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(*readFile(scratch / "run/checkpoints/latest"), "step-00000003\n"); // 4 was not saved
}

TEST(Resume, WarnsWhenTheLengthOfTheRunChanges) {
  Scratch scratch;
  BigramMachine machine(smallOptions()), longer(smallOptions());
  ASSERT_TRUE(runTraining(machine, savingRecipe(), scratch / "run").summary.ok());
  Console console(nullptr);
  ASSERT_TRUE(console.mirrorTo(scratch / "console").ok());
  TrainOptions options;
  options.resume = true;
  options.console = &console;
  Recipe recipe = savingRecipe();
  recipe.steps = 12;
  RunResult result = runTraining(longer, recipe, scratch / "run", options);
  ASSERT_TRUE(result.summary.ok());
  EXPECT_EQ(result.summary->step, 12);
  EXPECT_NE(readFile(scratch / "console")->find("planned for 10 steps, now for 12"), std::string::npos);
}

TEST(Resume, OfAFinishedRunDoesNothing) {
  Scratch scratch;
  BigramMachine machine(smallOptions()), again(smallOptions());
  RunResult first = runTraining(machine, savingRecipe(), scratch / "run");
  TrainOptions options;
  options.resume = true;
  RunResult second = runTraining(again, savingRecipe(), scratch / "run", options);
  ASSERT_TRUE(second.summary.ok());
  EXPECT_EQ(first.model, second.model);
  EXPECT_TRUE(again.firstTokens.empty());
}

} // namespace
} // namespace weft::rt
