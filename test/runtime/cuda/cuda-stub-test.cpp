// Launch code against the recording stub of the driver (Stub.h).
#include "test/runtime/cuda/StubFixture.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include <unistd.h>

namespace weft::rt {
namespace {

using ::testing::TempDir;

TEST_F(CudaStub, RunsCallsInOrder) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(machine->readState("w")->bytes, Tensor(ElementType::F32, {4}).bytes); // zero at the start
  for (int round = 1; round <= 4; ++round) {
    absl::StatusOr<float> first = step(*machine, static_cast<float>(round));
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(*first, static_cast<float>(round)); // catches inputs that a graph froze
    EXPECT_EQ(counted(*machine), 264 * round);    // 132 multiprocessors x 2 blocks
  }
  EXPECT_EQ(machine->readState("w")->bytes, inputOf(4).bytes);
  ASSERT_TRUE(machine->writeState("w", inputOf(9)).ok());
  EXPECT_EQ(machine->readState("w")->bytes, inputOf(9).bytes);
  ASSERT_TRUE(machine->run("clear", {}, {}).ok());
  EXPECT_EQ(machine->readState("w")->bytes, Tensor(ElementType::F32, {4}).bytes);
}

// Two inputs and two results of odd sizes, and an operand that starts inside its
// port: catches ports that share a place or are copied in part.
TEST_F(CudaStub, KeepsPortsApart) {
  Executable executable;
  executable.model = "ports", executable.target = "sm_80";
  executable.kernels = {ownKernel(Kernel::Kind::Copy)};
  Operand first{Space::Input, 0, 400, 0}, second{Space::Input, 1, 8, 4};
  executable.programs = {
      {"go",
       {{"a", ElementType::F32, {100}}, {"b", ElementType::I32, {3}}},
       {{"c", ElementType::I32, {3}}, {"d", ElementType::F32, {100}}},
       {{0, 1, {first, {Space::Result, 1, 400, 0}}}, {0, 1, {second, {Space::Result, 0, 8, 0}}}}}};
  CudaOptions options;
  options.poison = true;
  std::unique_ptr<Machine> machine = loadCuda(executable, options);
  ASSERT_NE(machine, nullptr);
  for (int round = 0; round < 3; ++round) {
    std::vector<Tensor> inputs{Tensor(ElementType::F32, {100}),
                               tensorOf<int32_t>(ElementType::I32, {3}, {1, 2, round})};
    std::vector<Tensor> results{Tensor(ElementType::I32, {3}), Tensor(ElementType::F32, {100})};
    for (size_t i = 0; i < 100; ++i)
      inputs[0].as<float>()[i] = static_cast<float>(i * 10) + static_cast<float>(round);
    ASSERT_TRUE(machine->run("go", inputs, results).ok());
    EXPECT_EQ(results[1].bytes, inputs[0].bytes);
    EXPECT_EQ(results[0].as<int32_t>()[0], 2);
    EXPECT_EQ(results[0].as<int32_t>()[1], round);
    EXPECT_EQ(results[0].as<int32_t>()[2], -1); // nobody wrote it: the poison
  }
}

// Catches an allocation, a wait or a compilation inside a step.
TEST_F(CudaStub, AStepAllocatesNothingAndWaitsOnce) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  const CudaCounters &counters = *cudaCounters(*machine);
  CudaCounters before = counters;
  int allocations = stub.calls("cuMemAlloc_v2") + stub.calls("cuMemHostAlloc");
  int waits = stub.calls("cuStreamSynchronize"), modules = stub.calls("cuModuleLoadDataEx");
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(step(*machine, 1).ok());
  EXPECT_EQ(stub.calls("cuMemAlloc_v2") + stub.calls("cuMemHostAlloc"), allocations);
  EXPECT_EQ(stub.calls("cuStreamSynchronize"), waits + 10);
  EXPECT_EQ(stub.calls("cuModuleLoadDataEx"), modules);
  EXPECT_EQ(stub.calls("cuGraphLaunch"), 9);
  EXPECT_EQ(stub.calls("cuLaunchKernel"), 2); // the first run, and the capture
  EXPECT_EQ(counters.deviceAllocations, before.deviceAllocations);
  EXPECT_EQ(counters.synchronizations, before.synchronizations + 10);
  EXPECT_EQ(counters.graphsCaptured, 1u);
  EXPECT_EQ(counters.graphLaunches, 9u);
  EXPECT_EQ(counters.launches, 4u);
  EXPECT_EQ(counters.deviceAllocations, 3u); // state, arena, ports
  EXPECT_EQ(counters.pinnedAllocations, 1u);
  EXPECT_EQ(cudaCounters(*machine), &counters);
}

/// What ran, without what differs from one machine to the next.
std::string withoutAddresses(const std::string &log) {
  return std::regex_replace(log, std::regex("0x[0-9a-f]+"), "@");
}

TEST_F(CudaStub, GraphsAndCallsDoTheSame) {
  std::vector<std::string> logs;
  for (bool graphs : {true, false}) {
    stub.reset();
    CudaOptions options;
    options.graphs = graphs;
    std::unique_ptr<Machine> machine = loadCuda(small(), options);
    ASSERT_NE(machine, nullptr);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(*step(*machine, static_cast<float>(i)), static_cast<float>(i));
    EXPECT_EQ(counted(*machine), 3 * 264);
    EXPECT_EQ(stub.calls("cuGraphLaunch"), graphs ? 2 : 0);
    logs.push_back(withoutAddresses(stub.log()));
  }
  EXPECT_EQ(logs[0], logs[1]);
}

/// The stub runs a graph's nodes latest first. `besides` reads what the chain then overwrites:
/// catches a branch that the chain does not wait for, and one that is not made at all.
TEST_F(CudaStub, ABranchWaitsForWhatItShares) {
  Executable executable = small();
  auto written = [](Operand operand) {
    operand.written = true;
    return operand;
  };
  Operand x{Space::Input, 0, 16, 0}, y{Space::Result, 0, 16, 0}, w{Space::State, 0, 16, 0},
      a{Space::Arena, 0, 16, 0}, b{Space::Arena, 256, 16, 0};
  executable.programs[0].calls = {
      {2, 1, {x, written(a)}}, {1, 1, {written(w)}}, {2, 1, {a, written(b)}, /*beside=*/true},
      {2, 1, {x, written(w)}}, {1, 1, {written(a)}}, {2, 1, {b, written(y)}}};
  using Branches = CudaOptions::Branches;
  for (Branches branches : {Branches::None, Branches::Patterns, Branches::All}) {
    stub.reset();
    CudaOptions options;
    options.branches = branches;
    std::unique_ptr<Machine> machine = loadCuda(executable, options);
    ASSERT_NE(machine, nullptr);
    for (int i = 1; i < 4; ++i)
      EXPECT_EQ(*step(*machine, static_cast<float>(i)), static_cast<float>(i));
    EXPECT_EQ(stub.calls("cuStreamUpdateCaptureDependencies"), branches == Branches::None ? 0 : 6);
    EXPECT_EQ(machine->readState("w")->as<float>()[0], 3.0f);
  }
}

TEST_F(CudaStub, StartsAsManyBlocksAsAsked) {
  for (auto [grid, items, expected] :
       {std::tuple(0, 1000, 264), std::tuple(0, 5, 5), std::tuple(1, 1000, 1), std::tuple(7, 1000, 7),
        std::tuple(132, 1000, 132), std::tuple(132, 3, 3), std::tuple(1000, 900, 900), std::tuple(7, 0, 0)}) {
    CudaOptions options;
    options.grid = grid;
    Executable executable = small();
    executable.programs[0].calls[3].grid = items;
    std::unique_ptr<Machine> machine = loadCuda(executable, options);
    ASSERT_NE(machine, nullptr);
    ASSERT_TRUE(step(*machine, 1).ok());
    EXPECT_EQ(counted(*machine), expected) << grid << ", " << items;
  }
}

// The parameters: addresses, then maps by value, then scratch; the stub's maps
// hold their base first.
TEST_F(CudaStub, PassesAddressesMapsAndScratch) {
  Executable executable = small();
  Kernel &kernel = executable.kernels[0] = ptxKernel(kPtx, "mapped", 256);
  kernel.launch.sharedBytes = 100 * 1024, kernel.scratchBytes = 192;
  kernel.launch.maps = {{1, ElementType::BF16, {64, 8}, {128}, {64, 8}, 128}};
  Operand w{Space::State, 0, 16, 0}, buffer{Space::Arena, 1024, 1024, 0};
  executable.programs[0].calls[3] = {0, 10, {w, buffer}};
  std::unique_ptr<Machine> machine = loadCuda(executable);
  ASSERT_NE(machine, nullptr);
  ASSERT_TRUE(step(*machine, 1).ok());
  std::smatch match;
  std::string log = stub.log();
  ASSERT_TRUE(
      std::regex_search(log, match,
                        std::regex("launch mapped 10 x 256, 102400 bytes: 0x([0-9a-f]+) 0x([0-9a-f]+) "
                                   "map\\( 0x([0-9a-f]+) \\) 0x([0-9a-f]+)\n")))
      << log;
  EXPECT_EQ(match[2], match[3]); // the map's base is operand 1
  EXPECT_NE(match[1], match[2]);
  EXPECT_NE(match[4], match[2]);
  EXPECT_EQ(stub.calls("cuFuncSetAttribute"), 1); // more than 48 KiB is asked for
  EXPECT_EQ(cudaCounters(*machine)->deviceBytes, 512 + kBytes + 512 + 10 * 192);
}

TEST_F(CudaStub, MultipliesRowMajorMatrices) { checkProducts({}); }

// w of 2 x 2 ones; a = w w, b = w w, c = a b: products that count tiles. Catches counters that two
// products share, a graph that clears them once only or not at all, or each before its product, and an edge
// that went with a fill (the stub runs the latest node that may run).
TEST_F(CudaStub, AGraphClearsAllCountersAtOnce) {
  Executable executable;
  executable.model = "products", executable.target = "sm_90a";
  executable.stateBytes = 256, executable.arenaBytes = 1024;
  executable.states = {stateEntry("w", ElementType::F32, {4}, 0)};
  executable.kernels = {ownKernel(Kernel::Kind::Gemm)};
  Gemm &gemm = executable.kernels[0].gemm;
  gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = 2;
  gemm.typeA = gemm.typeB = gemm.typeC = ElementType::F32;
  auto in = [](Space space, uint64_t offset, bool written) {
    Operand operand{space, offset, 16, 0};
    operand.written = written;
    return operand;
  };
  Operand w = in(Space::State, 0, false);
  executable.programs = {
      {"go",
       {},
       {{"c", ElementType::F32, {4}}},
       {{0, 1, {w, w, in(Space::Arena, 0, true)}},
        {0, 1, {w, w, in(Space::Arena, 256, true)}},
        {0, 1, {in(Space::Arena, 0, false), in(Space::Arena, 256, false), in(Space::Result, 0, true)}}}}};
  using Branches = CudaOptions::Branches;
  for (Branches branches : {Branches::None, Branches::All}) {
    stub.reset();
    CudaOptions options;
    options.branches = branches;
    std::unique_ptr<Machine> machine = loadCuda(executable, options);
    ASSERT_NE(machine, nullptr);
    ASSERT_TRUE(machine->writeState("w", tensorOf<float>(ElementType::F32, {4}, {1, 1, 1, 1})).ok());
    for (int run = 0; run < 4; ++run) {
      std::vector<Tensor> results{Tensor(ElementType::F32, {4})};
      absl::Status status = machine->run("go", {}, results);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(results[0].as<float>()[3], 8); // each of a and b is 2; 2 x 2 x 2
    }
    std::string log = stub.log();
    auto lines = [&](const char *text) {
      std::regex pattern(text);
      return std::distance(std::sregex_iterator(log.begin(), log.end(), pattern), std::sregex_iterator());
    };
    EXPECT_EQ(lines("counter\n"), 3);              // those of the first run, which is no graph
    EXPECT_EQ(lines("fill 768 with 0"), 3) << log; // one for each launch of the graph
  }
}

TEST_F(CudaStub, NamesDevicesThatAreNotThere) {
  CudaOptions options;
  options.device = 1;
  EXPECT_HAS(refusal(small(), options), "cuda:1: the driver sees 1 devices, from cuda:0 on");
  stub.devices(0);
  EXPECT_HAS(refusal(small()), "cuda:0: the driver sees no device");
  EXPECT_EQ(cudaDevices()->size(), 0u);
  stub.devices(2);
  std::vector<CudaDevice> devices = *cudaDevices();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].index, 1);
  EXPECT_EQ(devices[1].name, "Stub H200");
  EXPECT_EQ(devices[1].chip, "sm_90a");
  EXPECT_EQ(devices[1].multiprocessors, 132);
  EXPECT_EQ(devices[1].sharedBytes, 232448u);
  EXPECT_EQ(devices[1].clockMHz, 1980);
  EXPECT_EQ(devices[1].memoryBytes, uint64_t(1) << 30);
  EXPECT_EQ(devices[1].driverVersion, 13000);
}

TEST_F(CudaStub, PoisonShowsWhatNobodyWrote) {
  Executable executable = small();
  executable.programs[0].calls.erase(executable.programs[0].calls.begin()); // x -> arena
  for (bool poison : {true, false}) {
    CudaOptions options;
    options.poison = poison;
    std::unique_ptr<Machine> machine = loadCuda(executable, options);
    ASSERT_NE(machine, nullptr);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(std::isnan(*step(*machine, 1)), poison);
    EXPECT_EQ(machine->readState("w")->bytes, inputOf(1).bytes);
  }
}

// Two machines: the second finds what the first made.
TEST_F(CudaStub, KeepsWhatTheAssemblerMade) {
  CudaOptions options;
  options.cacheFolder = TempDir() + "weft-cubins-" + std::to_string(getpid());
  std::atomic<int> made = 0;
  options.assembler = {"ptxas of a test", [&](std::string_view ptx, std::string_view chip) {
                         EXPECT_EQ(chip, "sm_90a");
                         ++made;
                         return absl::StatusOr<std::string>(std::string(ptx));
                       }};
  for (uint64_t machines : {0, 1}) {
    std::unique_ptr<Machine> machine = loadCuda(small(), options);
    ASSERT_NE(machine, nullptr);
    ASSERT_TRUE(step(*machine, 1).ok());
    EXPECT_EQ(made, 1);
    EXPECT_EQ(cudaCounters(*machine)->cubinsFound, machines);
    EXPECT_EQ(cudaCounters(*machine)->compiledByAssembler, 1 - machines);
    EXPECT_EQ(cudaCounters(*machine)->modulesLoaded, 1u);
  }
  options.assembler.identity = "a newer ptxas";
  loadCuda(small(), options);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(stub.calls("cuModuleLoadDataEx"), 0);
  options.assembler = {"broken", [](std::string_view, std::string_view) {
                         return absl::StatusOr<std::string>(absl::InternalError("ptxas: line 7"));
                       }};
  EXPECT_EQ(refusal(small(), options), "kernel @count can't be loaded: ptxas: line 7");
  std::filesystem::remove_all(options.cacheFolder);
}

// Machine code of sm_80 does not load on 9.0; assembling for the target instead of the device.
TEST_F(CudaStub, AssemblesOlderTargetsForTheDevice) {
  CudaOptions options;
  std::string asked;
  options.assembler = {"ptxas of a test", [&](std::string_view ptx, std::string_view chip) {
                         asked = std::string(chip);
                         return absl::StatusOr<std::string>(std::string(ptx));
                       }};
  Executable executable = small();
  executable.target = "sm_80";
  ASSERT_NE(loadCuda(executable, options), nullptr);
  EXPECT_EQ(asked, "sm_90");
}

TEST_F(CudaStub, LoadsEqualObjectsOnceAndCubinsAsTheyAre) {
  Executable executable = small();
  for (int i = 0; i < 20; ++i) // several loaders at work
    executable.kernels.push_back(ptxKernel(kPtx + std::to_string(i % 10), "count"));
  executable.kernels.push_back(ptxKernel(kPtx, "crash"));
  executable.kernels.push_back(ptxKernel(std::string(kPtx) + "cubin", "count"));
  executable.kernels.back().form = Kernel::Form::Cubin;
  std::unique_ptr<Machine> machine = loadCuda(executable);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(cudaCounters(*machine)->modulesLoaded, 12u);
  EXPECT_EQ(cudaCounters(*machine)->compiledByDriver, 11u);
  EXPECT_EQ(stub.calls("cuModuleLoadData"), 1);
  std::vector<CudaKernel> kernels = cudaKernels(*machine);
  ASSERT_EQ(kernels.size(), 23u); // Zero and Copy have no code
  EXPECT_EQ(kernels[21].name, "@crash");
  EXPECT_EQ(kernels[21].registers, 128);
  EXPECT_EQ(kernels[21].blocksPerMultiprocessor, 2);
  EXPECT_EQ(*step(*machine, 2), 2);
}

TEST_F(CudaStub, ProfilesEachKernel) {
  std::string path = TempDir() + "weft-cuda-profile-" + std::to_string(getpid());
  setenv("WEFT_PROFILE", path.c_str(), 1);
  std::unique_ptr<Machine> machine = loadCuda(small());
  unsetenv("WEFT_PROFILE");
  ASSERT_NE(machine, nullptr);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(step(*machine, 1).ok());
  machine.reset();
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::filesystem::remove(path);
  EXPECT_HAS(text, "\"kernel\": \"@count\"");
  EXPECT_HAS(text, "\"calls\": 9");       // 3 copies a run
  EXPECT_HAS(text, "\"seconds\": 0.006"); // 2 ms a call, says the stub
}

} // namespace
} // namespace weft::rt
