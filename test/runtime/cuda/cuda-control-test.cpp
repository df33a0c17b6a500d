// Training steps and what a controller reads meanwhile, against the stub of the driver: it runs
// what is on its stream only when it is waited for.
#include "test/runtime/cuda/StubFixture.h"
#include "test/runtime/train/TrainSetup.h"

#include <cstring>
#include <functional>

namespace weft::rt {
namespace {

/// Programs of a training step with the ports of a model's; nothing is learned.
Executable trainable() {
  Executable executable = small();
  executable.states[1].role = StateEntry::Role::Cache;
  executable.states.push_back(stateEntry("grad/w", ElementType::F32, {4}, 320));
  executable.states.back().role = StateEntry::Role::Gradient;
  executable.states[0].init = {InitRule::Kind::Constant, 2.5, 0};
  Operand w{Space::State, 0, 4, 0}, n{Space::State, 256, 4, 0}, result{Space::Result, 0, 4, 0};
  std::vector<Port> batch;
  for (const char *name : {"tokens", "targets", "doc_start"})
    batch.push_back({name, ElementType::I32, {2, 8}});
  executable.programs = {
      {"micro", batch, {{"loss_sum", ElementType::F32, {}}}, {{0, 1000, {n}}, {2, 1, {w, result}}}},
      {"update",
       {{"hyper.0", ElementType::F32, {3}}, {"inverse_count", ElementType::F32, {}}},
       {{"grad_norm", ElementType::F32, {}}},
       {{2, 1, {w, result}}}}};
  return executable;
}

// The training loop itself: 20 steps more bring 20 late reads more, and not one wait
// for all, not one allocation. Catches a wait that comes back into the loop.
TEST_F(CudaStub, ATrainingStepWaitsForNothing) {
  Scratch scratch;
  std::vector<CudaCounters> counters;
  for (int64_t steps : {10, 30}) {
    std::unique_ptr<Machine> machine = loadCuda(trainable());
    ASSERT_NE(machine, nullptr);
    RunResult result = runTraining(*machine, smallRecipe(steps), scratch / std::to_string(steps));
    ASSERT_TRUE(result.summary.ok()) << result.summary.status();
    EXPECT_EQ(result.summary->step, steps);
    counters.push_back(*cudaCounters(*machine));
    EXPECT_EQ(counted(*machine), 2 * steps * 264); // each micro-batch once
    for (const Json &line : logLines(scratch / std::to_string(steps), "train"))
      EXPECT_EQ(line["grad_norm"], 2.5);
  }
  EXPECT_EQ(counters[1].synchronizations, counters[0].synchronizations);
  EXPECT_EQ(counters[1].deviceAllocations, counters[0].deviceAllocations);
  EXPECT_EQ(counters[1].pinnedAllocations, counters[0].pinnedAllocations);
  EXPECT_EQ(counters[1].graphLaunches, counters[0].graphLaunches + 20 * 3);
  EXPECT_EQ(counters[1].lateReads, counters[0].lateReads + 20);
}

/// `observe`: writes x to entries a and b of a controller, then n grows and y = x; `later`: n grows.
Executable observing() {
  auto written = [](Space space, uint64_t offset, uint64_t bytes) {
    Operand operand{space, offset, bytes, 0};
    operand.written = true;
    return operand;
  };
  Executable executable = small();
  executable.states.push_back(stateEntry("a", ElementType::F32, {4}, 320));
  executable.states.push_back(stateEntry("b", ElementType::F32, {4}, 336));
  executable.states[2].role = executable.states[3].role = StateEntry::Role::Control;
  const Operand x{Space::Input, 0, 16, 0}, n = written(Space::State, 256, 4);
  executable.programs = {{"observe",
                          {{"x", ElementType::F32, {4}}},
                          {{"y", ElementType::F32, {4}}},
                          {{2, 1, {x, written(Space::State, 320, 16)}},
                           {2, 1, {x, written(Space::State, 336, 16)}},
                           {0, 1000, {n}},
                           {2, 1, {x, written(Space::Result, 0, 16)}}}},
                         {"later", {}, {}, {{0, 1000, {n}}}}};
  return executable;
}

uint64_t startObserve(Machine &machine, float first, Started &run) {
  Tensor x = inputOf(first);
  absl::StatusOr<uint64_t> number = machine.start("observe", {&x, 1}, run.results);
  EXPECT_TRUE(number.ok()) << number.status();
  return run.number = number.value_or(0);
}

int launches(const char *log) {
  int count = 0;
  for (const char *at = log; (at = std::strstr(at, "launch count")); ++at)
    ++count;
  return count;
}

// What a controller reads has come before the run that writes it is done, let alone what was
// started behind it; in the run's own calls, in its first graph and in its later ones. Catches: a
// read behind the run or behind all, one of what was written later, a graph's second half left out.
TEST_F(CudaStub, AControllersStateComesBeforeTheRunEnds) {
  std::unique_ptr<Machine> machine = loadCuda(observing());
  ASSERT_NE(machine, nullptr);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const float first = static_cast<float>(10 * round + 1);
    const int before = launches(stub.log());
    Started run;
    startObserve(*machine, first, run);
    ASSERT_TRUE(machine->start("later", {}, {}).ok());
    Tensor a, b, after;
    const uint64_t readA = *machine->startRead("a", a), readB = *machine->startRead("b", b);
    ASSERT_TRUE(machine->writeState("a", inputOf(-5)).ok());
    const uint64_t readAfter = *machine->startRead("a", after);
    ASSERT_TRUE(machine->wait(readB).ok());
    EXPECT_EQ(b.as<float>()[3], first + 3);
    EXPECT_EQ(a.as<float>()[0], 0); // not asked for
    ASSERT_TRUE(machine->wait(readA).ok());
    EXPECT_EQ(a.as<float>()[0], first);
    EXPECT_EQ(launches(stub.log()), before);
    EXPECT_EQ(run.first(), 0);
    ASSERT_TRUE(machine->wait(run.number).ok());
    EXPECT_EQ(run.first(), first);
    EXPECT_EQ(launches(stub.log()), before + 1);
    ASSERT_TRUE(machine->wait(readAfter).ok());
    EXPECT_EQ(after.as<float>()[0], -5);
    EXPECT_EQ(launches(stub.log()), before + 2);
  }
  EXPECT_EQ(cudaCounters(*machine)->graphLaunches, 2 * 2 + 2u); // each observe is two
  EXPECT_EQ(counted(*machine), 6 * 264);
}

// The ring of pinned memory holds 340 runs behind the first, so that one of these counts of runs ends
// on the bytes of the first. Catches: an early read that is copied when the next run has its bytes.
TEST_F(CudaStub, AnEarlyReadOutlivesItsRun) {
  for (size_t count = 336; count < 346; ++count) {
    SCOPED_TRACE(count);
    std::unique_ptr<Machine> machine = loadCuda(observing());
    ASSERT_NE(machine, nullptr);
    Started first;
    Tensor early;
    startObserve(*machine, 1, first);
    const uint64_t read = *machine->startRead("a", early);
    ASSERT_TRUE(machine->wait(first.number).ok());
    std::vector<Started> more(count);
    for (Started &run : more)
      startObserve(*machine, 100, run);
    ASSERT_TRUE(machine->wait(more.back().number).ok());
    EXPECT_EQ(more.back().first(), 100);
    ASSERT_TRUE(machine->wait(read).ok());
    EXPECT_EQ(early.as<float>()[0], 1);
  }
}

// More than there are events for: early reads are let go of as what they stand among is.
TEST_F(CudaStub, HundredsOfEarlyReadsGoOn) {
  std::unique_ptr<Machine> machine = loadCuda(observing());
  ASSERT_NE(machine, nullptr);
  std::vector<Started> runs(700);
  std::vector<Tensor> values(runs.size());
  std::vector<uint64_t> reads;
  for (size_t i = 0; i < runs.size(); ++i) {
    startObserve(*machine, static_cast<float>(i), runs[i]);
    reads.push_back(*machine->startRead("b", values[i]));
    if (i % 3 == 0) {
      ASSERT_TRUE(machine->wait(reads[i]).ok());
    }
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSERT_TRUE(machine->wait(reads[i]).ok());
    ASSERT_EQ(values[i].as<float>()[0], static_cast<float>(i));
  }
}

/// Reads at every second step, and notes how many counts had run when it had what it reads.
class Watching final : public Control {
public:
  explicit Watching(std::function<int()> launches) : count(std::move(launches)) {}
  absl::Status begin(Machine &, const ControlState *, int64_t) override { return absl::OkStatus(); }
  bool observes(int64_t number) const override { return number % 2 == 0; }
  int64_t rehearsals(int64_t) const override { return 0; }
  absl::Status before(Machine &machine) override {
    return machine.writeState("a", Tensor(ElementType::I32, {4}));
  }
  absl::Status rehearsed(Machine &, int64_t, int64_t) override { return absl::OkStatus(); }
  absl::Status look(Machine &machine, int64_t number) override {
    if (!observes(number))
      return absl::OkStatus();
    absl::StatusOr<uint64_t> read = machine.startRead("a", value);
    coming = read.value_or(0);
    return read.status();
  }
  absl::StatusOr<std::string> after(Machine &machine, int64_t number) override {
    if (!observes(number))
      return std::string();
    absl::Status status = machine.wait(coming);
    ran.push_back(count());
    for (int32_t token : value.as<int32_t>())
      seen.push_back(token);
    return status.ok() ? absl::StatusOr<std::string>(std::string()) : status;
  }
  double acr() const override { return 1; }
  OrderedJson line(int64_t step) override { return {{"kind", "windows"}, {"step", step}}; }
  ControlState state() const override { return {}; }
  std::map<std::string, std::string> files() const override { return {}; }
  bool live() const override { return false; }
  std::unique_ptr<Control> copy() const override { return nullptr; }

  std::vector<int> ran;
  std::vector<int32_t> seen;

private:
  std::function<int()> count;
  Tensor value;
  uint64_t coming = 0;
};

// The training loop decides before the last micro-batch of a control step has ended and before its
// update, and from what a machine sees that does one thing after the other. Catches: a decision
// that waits for the step, statistics of another micro-batch or step.
TEST_F(CudaStub, AControlStepIsDecidedBeforeItEnds) {
  Executable executable = trainable();
  executable.states.push_back(stateEntry("a", ElementType::I32, {4}, 384));
  executable.states.back().role = StateEntry::Role::Control;
  Operand tokens{Space::Input, 0, 16, 0}, a{Space::State, 384, 16, 0}, n{Space::State, 256, 4, 0};
  a.written = true;
  executable.programs.push_back(executable.programs[0]);
  executable.programs.back().name = "observe";
  std::vector<Call> &calls = executable.programs.back().calls;
  calls.insert(calls.begin(), {2, 1, {tokens, a}});
  executable.programs[1].calls.push_back({0, 1000, {n}}); // of the update
  Scratch scratch;
  std::vector<int32_t> expected;
  for (bool beside : {false, true}) {
    CudaOptions machineOptions;
    machineOptions.synchronous = !beside;
    std::unique_ptr<Machine> machine = loadCuda(executable, machineOptions);
    ASSERT_NE(machine, nullptr);
    const int before = launches(stub.log());
    Watching control([&] { return launches(stub.log()) - before; });
    TrainOptions options;
    options.control = &control;
    RunResult result =
        runTraining(*machine, smallRecipe(8), scratch / (beside ? "beside" : "plain"), options);
    ASSERT_TRUE(result.summary.ok()) << result.summary.status();
    if (!beside)
      expected = control.seen;
    else // three counts a step, and that of the step's first micro-batch
      EXPECT_EQ(control.ran, (std::vector<int>{4, 10, 16, 22}));
    EXPECT_EQ(control.seen, expected);
    EXPECT_EQ(expected.size(), 16u);
  }
}

} // namespace
} // namespace weft::rt
