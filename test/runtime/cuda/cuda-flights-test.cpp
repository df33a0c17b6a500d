// What is under way on the GPU, against the stub of the driver: it runs what is on
// its stream only when it is waited for.
#include "runtime/cuda/StateCopy.h"
#include "test/runtime/cuda/StubFixture.h"

namespace weft::rt {
namespace {

void start(Machine &machine, float first, Started &run) {
  Tensor x = inputOf(first);
  absl::StatusOr<uint64_t> number = machine.start("step", {&x, 1}, run.results);
  ASSERT_TRUE(number.ok()) << number.status();
  run.number = *number;
  x.as<float>()[0] = -1; // inputs may change at once
}

// Catches a start that waits, a wait that waits for all, results of another run.
TEST_F(CudaStub, StartsWithoutWaiting) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  Started runs[3];
  int waits = stub.calls("cuStreamSynchronize");
  for (int i = 0; i < 3; ++i)
    start(*machine, static_cast<float>(i + 1), runs[i]);
  EXPECT_EQ(stub.calls("cuStreamSynchronize") + stub.calls("cuEventSynchronize"), waits);
  EXPECT_LT(runs[0].number, runs[1].number);
  ASSERT_TRUE(machine->wait(runs[1].number).ok());
  EXPECT_EQ(runs[0].first(), 1);
  EXPECT_EQ(runs[1].first(), 2);
  EXPECT_EQ(runs[2].first(), 0);
  EXPECT_EQ(stub.calls("cuEventSynchronize"), 1);
  EXPECT_EQ(stub.calls("cuStreamSynchronize"), waits);
  ASSERT_TRUE(machine->wait(runs[0].number).ok()); // is done
  EXPECT_EQ(stub.calls("cuEventSynchronize"), 1);
  ASSERT_TRUE(machine->wait(runs[2].number).ok());
  EXPECT_EQ(runs[2].first(), 3);
  EXPECT_EQ(stub.calls("cuStreamSynchronize"), waits + 1); // nothing was left behind it
  EXPECT_EQ(counted(*machine), 3 * 264);
  EXPECT_EQ(cudaCounters(*machine)->lateReads, 1u);
}

// More than the ring and the events hold: catches a place that is used twice.
TEST_F(CudaStub, HundredsUnderWayKeepTheirPlaces) {
  Executable executable = small();
  // 100,000 floats more, so that a few runs fill the ring.
  executable.programs[0].inputs.push_back({"ballast", ElementType::F32, {100000}});
  std::unique_ptr<Machine> machine = loadCuda(executable);
  ASSERT_NE(machine, nullptr);
  std::vector<Started> runs(300);
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<Tensor> inputs{inputOf(static_cast<float>(i)), Tensor(ElementType::F32, {100000})};
    absl::StatusOr<uint64_t> number = machine->start("step", inputs, runs[i].results);
    ASSERT_TRUE(number.ok()) << number.status();
    runs[i].number = *number;
    ASSERT_TRUE(machine->start("clear", {}, {}).ok());
  }
  ASSERT_TRUE(machine->wait(runs.back().number).ok());
  for (size_t i = 0; i < runs.size(); ++i)
    ASSERT_EQ(runs[i].first(), static_cast<float>(i));
  EXPECT_EQ(cudaCounters(*machine)->pinnedAllocations, 1u);
}

// A small write takes effect between what was started before and after it.
TEST_F(CudaStub, WritesStateInOrderAndWithoutWaiting) {
  Executable executable = small();
  Operand w{Space::State, 0, 16, 0}, y{Space::Result, 0, 16, 0};
  executable.programs.push_back({"read", {}, {{"y", ElementType::F32, {4}}}, {{2, 1, {w, y}}}});
  std::unique_ptr<Machine> machine = loadCuda(executable);
  ASSERT_NE(machine, nullptr);
  int waits = stub.calls("cuStreamSynchronize");
  std::vector<Started> runs(3);
  uint64_t last = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    ASSERT_TRUE(machine->writeState("w", inputOf(static_cast<float>(10 * i))).ok());
    last = *machine->start("read", {}, runs[i].results);
  }
  EXPECT_EQ(stub.calls("cuStreamSynchronize"), waits);
  ASSERT_TRUE(machine->wait(last).ok());
  for (size_t i = 0; i < runs.size(); ++i)
    EXPECT_EQ(runs[i].first(), static_cast<float>(10 * i));
}

// A small read is of where it stands between what is started. Catches: one that waits, one of a later value,
// one that is copied before it has come.
TEST_F(CudaStub, ReadsStateInOrderAndWithoutWaiting) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  int waits = stub.calls("cuStreamSynchronize");
  Tensor values[3];
  uint64_t numbers[3];
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(machine->writeState("w", inputOf(static_cast<float>(10 * i + 1))).ok());
    absl::StatusOr<uint64_t> number = machine->startRead("w", values[i]);
    ASSERT_TRUE(number.ok()) << number.status();
    numbers[i] = *number;
  }
  EXPECT_EQ(values[0].as<float>()[0], 0);
  EXPECT_EQ(stub.calls("cuStreamSynchronize") + stub.calls("cuEventSynchronize"), waits);
  ASSERT_TRUE(machine->wait(numbers[1]).ok());
  EXPECT_EQ(stub.calls("cuStreamSynchronize"), waits);
  EXPECT_EQ(values[0].as<float>()[0], 1);
  EXPECT_EQ(values[1].as<float>()[0], 11);
  ASSERT_TRUE(machine->wait(numbers[2]).ok());
  EXPECT_EQ(values[2].as<float>()[0], 21);
  EXPECT_FALSE(machine->startRead("no such", values[0]).ok());
}

TEST_F(CudaStub, ACrashIsToldByTheWait) {
  std::unique_ptr<Machine> machine = loadCuda(small("crash"));
  ASSERT_NE(machine, nullptr);
  Started first, second;
  start(*machine, 1, first);
  start(*machine, 2, second);
  EXPECT_HAS(machine->wait(first.number).message(), "program step: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_FALSE(step(*machine, 1).ok());
}

TEST_F(CudaStub, LetsGoOfWhatIsUnderWay) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  {
    Started run;
    start(*machine, 1, run);
    ASSERT_TRUE(machine->wait(run.number).ok());
  }
  Started last;
  start(*machine, 2, last);
  machine.reset(); // the fixture looks for what is left
}

// `prepare` runs before the first run, and after writes of what it reads; n counts.
TEST_F(CudaStub, PreparesOnceAndAfterWrites) {
  Executable executable = small();
  executable.states.push_back(stateEntry("v", ElementType::F32, {4}, 128));
  Operand w{Space::State, 0, 16, 0}, copied{Space::State, 320, 16, 0}, n{Space::State, 256, 4, 0},
      y{Space::Result, 0, 16, 0};
  executable.programs = {{"prepare", {}, {}, {{2, 1, {w, copied}}, {0, 1000, {n}}}},
                         {"read", {}, {{"y", ElementType::F32, {4}}}, {{2, 1, {copied, y}}}}};
  std::unique_ptr<Machine> machine = loadCuda(executable);
  ASSERT_NE(machine, nullptr);
  std::vector<Tensor> results{Tensor(ElementType::F32, {4})};
  int times = 0;
  for (float first : {3.0f, 5.0f, 8.0f}) {
    ASSERT_TRUE(machine->writeState("w", inputOf(first)).ok());
    ++times;
    for (int run = 0; run < 3; ++run) {
      ASSERT_TRUE(machine->writeState("v", inputOf(1)).ok()); // not read by it
      ASSERT_TRUE(machine->run("read", {}, results).ok());
      EXPECT_EQ(results[0].as<float>()[0], first);
      EXPECT_EQ(counted(*machine), times * 264);
    }
  }
}

// A new phase takes its state from the old one on the device. Catches: a write that is
// under way left out, bytes of another entry, a copy between layouts that differ, a table
// that follows from state and is not made anew.
TEST_F(CudaStub, stateGoesOverOnTheDevice) {
  Executable reading = small();
  Operand w{Space::State, 0, 16, 0}, y{Space::Result, 0, 16, 0};
  reading.programs.push_back({"read", {}, {{"y", ElementType::F32, {4}}}, {{2, 1, {w, y}}}});
  std::unique_ptr<Machine> from = loadCuda(small()), to = loadCuda(reading);
  ASSERT_TRUE(from && to);
  const int outs = stub.calls("cuMemcpyDtoHAsync_v2");
  ASSERT_TRUE(from->writeState("w", inputOf(7)).ok());
  EXPECT_EQ(copyStateOnDevice(from.get(), *to, "w").value_or(false), true);
  EXPECT_EQ(stub.calls("cuMemcpyDtoHAsync_v2"), outs);
  std::vector<Tensor> results{Tensor(ElementType::F32, {4})};
  ASSERT_TRUE(to->run("read", {}, results).ok());
  EXPECT_EQ(results[0].as<float>()[3], 10.0F);
  EXPECT_EQ(copyStateOnDevice(nullptr, *to, "w").value_or(false), true);
  ASSERT_TRUE(to->run("read", {}, results).ok());
  EXPECT_EQ(results[0].as<float>()[3], 0.0F);
  Executable sliced = small();
  sliced.states[0].kept = {1};
  std::unique_ptr<Machine> other = loadCuda(sliced);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(copyStateOnDevice(from.get(), *other, "w").value_or(true), false);
  EXPECT_FALSE(copyStateOnDevice(from.get(), *to, "nothing").ok());
}

// What was planned beside what the driver says: the stub's blocks alone.
TEST_F(CudaStub, CountsMemory) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  absl::StatusOr<std::optional<CudaMemory>> memory = cudaMemory(*machine);
  ASSERT_TRUE(memory.ok() && *memory) << memory.status();
  EXPECT_EQ((*memory)->state, 512u);
  EXPECT_EQ((*memory)->arena, kBytes);
  EXPECT_EQ((*memory)->ports, 512u);
  EXPECT_EQ((*memory)->planned(), 1024 + kBytes);
  EXPECT_EQ((*memory)->grown, 1024 + kBytes);
  EXPECT_EQ((*memory)->before, 0u);
  EXPECT_EQ((*memory)->total, uint64_t(1) << 30);
}

TEST_F(CudaStub, TimesProgramsAndKernels) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  EXPECT_FALSE(cudaProgramSeconds(*machine, "step"));
  ASSERT_TRUE(step(*machine, 1).ok());
  EXPECT_DOUBLE_EQ(cudaProgramSeconds(*machine, "step").value_or(0), 0.002); // as the stub says
  ASSERT_TRUE(timeKernels(*machine).ok());
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(step(*machine, 1).ok());
  EXPECT_EQ(stub.calls("cuGraphLaunch"), 0);
  std::vector<KernelTime> times = kernelTimes(*machine)->times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].name, "copy"); // 3 calls a run, 2 ms each
  EXPECT_EQ(times[0].kind, "memory");
  EXPECT_EQ(times[0].calls, 12u);
  EXPECT_DOUBLE_EQ(times[0].seconds, 0.024);
  EXPECT_EQ(times[0].bytes, 12 * 32); // 16 read, 16 written
  EXPECT_EQ(times[1].kind, "rows");
  EXPECT_DOUBLE_EQ(times[1].share({4 / 0.002 * 2, 0}), 0.5); // 4 bytes in 2 ms, of twice that
}

} // namespace
} // namespace weft::rt
