#include "runtime/core/Json.h"
#include "runtime/cpu/CpuMachine.h"

#include "test/runtime/cpu/CompileC.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

namespace weft::rt {
namespace {

/// Kernels of a small program, with the type KernelFunction.
constexpr const char *kSource = R"(
typedef long i64;
typedef struct { void (*sgemm)(i64, i64, i64, i64, i64, float, const float *, i64, const float *, i64, float, float *, i64); } Table;
/* y[i] = x[i] + w[i], one item per element */
void add(void *const *o, i64 begin, i64 end, const Table *table, void *scratch) {
  const int *x = o[0]; const float *w = o[1]; float *y = o[2];
  for (i64 i = begin; i < end; ++i) y[i] = x[i] + w[i];
}
/* y[i] = the sum of w over its chunk, through scratch: shows the chunks */
void chunked(void *const *o, i64 begin, i64 end, const Table *table, void *scratch) {
  float *sum = scratch; *sum = 0;
  for (i64 i = begin; i < end; ++i) *sum += ((const float *)o[0])[i] / 3;
  for (i64 i = begin; i < end; ++i) ((float *)o[1])[i] = *sum;
}
/* C (2,2) = A (2,3) B (3,2) by the table */
void product(void *const *o, i64 begin, i64 end, const Table *table, void *scratch) {
  table->sgemm(0, 0, 2, 2, 3, 1, o[0], 3, o[1], 2, 0, o[2], 2);
}
)";

constexpr int64_t kSize = 1000;
constexpr uint64_t kBytes = kSize * 4, kSlot = 4032; // kBytes, 64-byte aligned

Kernel codeKernel(const std::string &object, const char *symbol) {
  Kernel kernel;
  kernel.name = symbol, kernel.symbol = symbol, kernel.object = object, kernel.scratchBytes = 4;
  return kernel;
}

/// State: w, g. Program `step`: y = x + w into the result, through the arena;
/// g = sums of w's chunks. `clear`: g = 0.
Executable small(const std::string &object) {
  Executable executable;
  executable.model = "small", executable.target = "cpu:x86_64";
  executable.stateBytes = 2 * kSlot, executable.arenaBytes = kSlot;
  executable.states = {
      {"w", StateEntry::Role::Parameter, ElementType::F32, {kSize}, {"i"}, 0, {}, {}, 0, 0, {}},
      {"g", StateEntry::Role::Gradient, ElementType::F32, {kSize}, {"i"}, kSlot, {}, {}, 0, 0, {}}};
  executable.kernels = {codeKernel(object, "add"), codeKernel(object, "chunked"), {}, {}};
  executable.kernels[2].kind = Kernel::Kind::Zero, executable.kernels[2].name = "zero";
  executable.kernels[3].kind = Kernel::Kind::Copy, executable.kernels[3].name = "copy";
  Operand w{Space::State, 0, kBytes}, g{Space::State, kSlot, kBytes}, buffer{Space::Arena, 0, kBytes};
  Operand x{Space::Input, 0, kBytes}, y{Space::Result, 0, kBytes};
  executable.programs = {{"step",
                          {{"x", ElementType::I32, {kSize}}},
                          {{"y", ElementType::F32, {kSize}}},
                          {{0, kSize, {x, w, buffer}}, {3, 1, {buffer, y}}, {1, kSize, {w, g}}}},
                         {"clear", {}, {}, {{2, 1, {g}}}}};
  return executable;
}

std::string smallObject() {
  static const std::string object = compileC(kSource);
  return object;
}

Tensor ramp(ElementType type) {
  Tensor tensor(type, {kSize});
  for (int64_t i = 0; i < kSize; ++i)
    if (type == ElementType::I32)
      tensor.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i);
    else
      tensor.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i) * 0.25F;
  return tensor;
}

std::unique_ptr<Machine> load(Executable executable, int threads = 2) {
  absl::StatusOr<std::unique_ptr<Machine>> machine = makeCpuMachine(std::move(executable), threads);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return machine.ok() ? std::move(*machine) : nullptr;
}

TEST(CpuMachine, RunsCallsInOrderOnStateArenaAndPorts) {
  std::unique_ptr<Machine> machine = load(small(smallObject()));
  ASSERT_NE(machine, nullptr);
  ASSERT_TRUE(machine->writeState("w", ramp(ElementType::F32)).ok());
  Tensor x = ramp(ElementType::I32);
  std::vector<Tensor> results{Tensor(ElementType::F32, {kSize})};
  for (int round = 0; round < 3; ++round) {
    x.as<int32_t>()[7] = 100 + round; // pointers are bound anew for each run
    ASSERT_TRUE(machine->run("step", {&x, 1}, results).ok());
    EXPECT_EQ(results[0].as<float>()[7], 100 + round + 1.75F);
    EXPECT_EQ(results[0].as<float>()[999], 999 + 249.75F);
  }
  // Chunks of ceil(1000 / 64) = 16: items 16 to 31 share (16 + ... + 31) / 4 / 3.
  Tensor g = *machine->readState("g");
  EXPECT_NEAR(g.as<float>()[16], 376 / 12.0, 1e-4);
  EXPECT_EQ(g.as<float>()[16], g.as<float>()[31]);
  EXPECT_NE(g.as<float>()[16], g.as<float>()[32]);
  ASSERT_TRUE(machine->run("clear", {}, {}).ok());
  g = *machine->readState("g");
  EXPECT_EQ(g.as<float>()[999], 0);
  EXPECT_EQ(machine->readState("w")->bytes, ramp(ElementType::F32).bytes); // and nothing else
}

TEST(CpuMachine, SameBitsForAnyNumberOfThreads) {
  decltype(Tensor::bytes) expected;
  for (int threads : {1, 2, 3, 7}) {
    std::unique_ptr<Machine> machine = load(small(smallObject()), threads);
    ASSERT_NE(machine, nullptr);
    ASSERT_TRUE(machine->writeState("w", ramp(ElementType::F32)).ok());
    Tensor x = ramp(ElementType::I32);
    std::vector<Tensor> results{Tensor(ElementType::F32, {kSize})};
    ASSERT_TRUE(machine->run("step", {&x, 1}, results).ok());
    Tensor g = *machine->readState("g");
    if (expected.empty())
      expected = g.bytes;
    EXPECT_EQ(g.bytes, expected) << threads;
  }
}

// 5 blocks and a part: catches a block that is dropped or goes past the end.
TEST(CpuMachine, ZeroAndCopyDoWholeBuffers) {
  constexpr int64_t kElements = 5 * 16384 + 11;
  Executable executable;
  executable.target = "cpu:x86_64";
  executable.stateBytes = 2 * 393216;
  executable.states = {{"a", {}, ElementType::F32, {kElements}, {}, 0, {}, {}, 0, 0, {}},
                       {"b", {}, ElementType::F32, {kElements + 1}, {}, 393216, {}, {}, 0, 0, {}}};
  executable.kernels.resize(2);
  executable.kernels[0].kind = Kernel::Kind::Copy;
  executable.kernels[1].kind = Kernel::Kind::Zero;
  Operand a{Space::State, 0, kElements * 4}, b{Space::State, 393216, kElements * 4};
  executable.programs = {{"move", {}, {}, {{0, 1, {a, b}}, {1, 1, {a}}}}};
  std::unique_ptr<Machine> machine = load(executable);
  ASSERT_NE(machine, nullptr);
  Tensor ones(ElementType::F32, {kElements}), twos(ElementType::F32, {kElements + 1});
  std::fill(ones.as<float>().begin(), ones.as<float>().end(), 1.0F);
  std::fill(twos.as<float>().begin(), twos.as<float>().end(), 2.0F);
  ASSERT_TRUE(machine->writeState("a", ones).ok());
  ASSERT_TRUE(machine->writeState("b", twos).ok());
  ASSERT_TRUE(machine->run("move", {}, {}).ok());
  Tensor after = *machine->readState("b");
  EXPECT_EQ(after.as<float>()[kElements], 2.0F);
  after.bytes.resize(kElements * 4);
  EXPECT_EQ(after.bytes, ones.bytes);
  EXPECT_EQ(machine->readState("a")->bytes, Tensor(ElementType::F32, {kElements}).bytes);
}

/// C = A B twice: by the runtime's kernel and by one that calls the table.
TEST(CpuMachine, MultipliesByKernelAndByTable) {
  Executable executable;
  executable.target = "cpu:x86_64";
  executable.stateBytes = 256;
  executable.states = {{"a", {}, ElementType::F32, {2, 3}, {}, 0, {}, {}, 0, 0, {}},
                       {"b", {}, ElementType::F32, {3, 2}, {}, 64, {}, {}, 0, 0, {}},
                       {"c", {}, ElementType::F32, {2, 2}, {}, 128, {}, {}, 0, 0, {}},
                       {"d", {}, ElementType::F32, {2, 2}, {}, 192, {}, {}, 0, 0, {}}};
  executable.kernels = {{}, codeKernel(smallObject(), "product")};
  executable.kernels[0].kind = Kernel::Kind::Gemm;
  executable.kernels[0].gemm = {2, 2, 3, 3, 2, 2, 1, 0, 0, 0, false, false, true};
  Operand a{Space::State, 0, 24}, b{Space::State, 64, 24};
  executable.programs = {
      {"go", {}, {}, {{0, 1, {a, b, {Space::State, 128, 16}}}, {1, 1, {a, b, {Space::State, 192, 16}}}}}};
  std::unique_ptr<Machine> machine = load(executable);
  ASSERT_NE(machine, nullptr);
  Tensor left(ElementType::F32, {2, 3}), right(ElementType::F32, {3, 2});
  for (size_t i = 0; i < 6; ++i)
    left.as<float>()[i] = static_cast<float>(i + 1), right.as<float>()[i] = i % 2 ? 1.0F : 2.0F;
  ASSERT_TRUE(machine->writeState("a", left).ok());
  ASSERT_TRUE(machine->writeState("b", right).ok());
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(machine->run("go", {}, {}).ok());
  Tensor c = *machine->readState("c"), d = *machine->readState("d");
  std::vector<float> once{12, 6, 30, 15}, twice{24, 12, 60, 30}; // rows sum to 6 and 15
  EXPECT_EQ(std::vector<float>(c.as<float>().begin(), c.as<float>().end()), twice);
  EXPECT_EQ(std::vector<float>(d.as<float>().begin(), d.as<float>().end()), once);
}

TEST(CpuMachine, RefusesWrongTensorsWithBothShapes) {
  std::unique_ptr<Machine> machine = load(small(smallObject()));
  ASSERT_NE(machine, nullptr);
  Tensor x = ramp(ElementType::I32), wrongType = ramp(ElementType::F32),
         wrongShape(ElementType::I32, {10, 100});
  std::vector<Tensor> results{Tensor(ElementType::F32, {kSize})};
  EXPECT_EQ(machine->run("stop", {&x, 1}, results).code(), absl::StatusCode::kNotFound);
  absl::Status status = machine->run("step", {&wrongType, 1}, results);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "input x: expected I32[1000], found F32[1000]");
  EXPECT_EQ(machine->run("step", {&wrongShape, 1}, results).message(),
            "input x: expected I32[1000], found I32[10, 100]");
  EXPECT_EQ(machine->run("step", {}, results).message(),
            "program step: expected 1 inputs and 1 results, found 0 and 1");
  std::vector<Tensor> wrongResults{Tensor(ElementType::F64, {kSize})};
  EXPECT_EQ(machine->run("step", {&x, 1}, wrongResults).message(),
            "result y: expected F32[1000], found F64[1000]");
  Tensor hollow = x;
  hollow.bytes.resize(8); // says 1000 elements, holds 2
  EXPECT_EQ(machine->run("step", {&hollow, 1}, results).message(), "input x: expected 4000 bytes, found 8");
  EXPECT_EQ(machine->writeState("w", wrongShape).message(),
            "state w: expected F32[1000], found I32[10, 100]");
  EXPECT_EQ(machine->writeState("v", x).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(machine->readState("v").status().code(), absl::StatusCode::kNotFound);
}

std::string refusal(const Executable &executable, uint64_t available = uint64_t(1) << 40) {
  return std::string(CpuMachine::make(executable, 1, available).status().message());
}

TEST(CpuMachine, RefusesWhatItCannotLoad) {
  Executable executable = small(smallObject());
  executable.kernels[1].symbol = "missing";
  EXPECT_NE(
      refusal(executable).find("kernel chunked can't be loaded: object 0 defines no function 'missing'"),
      std::string::npos);
  executable = small(smallObject());
  executable.kernels[0].object.resize(100);
  EXPECT_NE(refusal(executable).find("kernel add can't be loaded"), std::string::npos);
  executable = small(smallObject());
  executable.programs[0].calls[0].operands[2].offset = 64;
  EXPECT_NE(refusal(executable).find("leave the arena"), std::string::npos);
  executable = small(smallObject());
  executable.target = "reference";
  EXPECT_NE(refusal(executable).find("target 'reference'"), std::string::npos);
  EXPECT_NE(refusal(small(smallObject()), 1000).find("model small needs"), std::string::npos);
}

TEST(CpuMachine, LoadsWhatWasSaved) {
  absl::StatusOr<std::string> file = serialize(small(smallObject()));
  ASSERT_TRUE(file.ok()) << file.status();
  absl::StatusOr<Executable> executable = deserialize(*file);
  ASSERT_TRUE(executable.ok()) << executable.status();
  std::unique_ptr<Machine> machine = load(*executable);
  ASSERT_NE(machine, nullptr);
  Tensor x = ramp(ElementType::I32);
  std::vector<Tensor> results{Tensor(ElementType::F32, {kSize})};
  ASSERT_TRUE(machine->run("step", {&x, 1}, results).ok());
  EXPECT_EQ(results[0].as<float>()[500], 500);
}

TEST(CpuMachine, ProfileCountsCalls) {
  std::string path = ::testing::TempDir() + "weft-profile-" + std::to_string(getpid());
  setenv("WEFT_PROFILE", path.c_str(), 1);
  std::unique_ptr<Machine> machine = load(small(smallObject()));
  unsetenv("WEFT_PROFILE");
  ASSERT_NE(machine, nullptr);
  Tensor x = ramp(ElementType::I32);
  std::vector<Tensor> results{Tensor(ElementType::F32, {kSize})};
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(machine->run("step", {&x, 1}, results).ok());
  machine.reset();
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::remove(path.c_str());
  for (const char *part : {"\"kernel\": \"add\"", "\"kernel\": \"chunked\"", "\"calls\": 3", "\"seconds\""})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find("\"zero\""), std::string::npos);
}

// Every call is an event of the trace, none before the end of the one before it.
// Mutations caught: begins counted from zero for each run; seconds for microseconds.
TEST(CpuMachine, TraceKeepsCallsInOrder) {
  std::string path = ::testing::TempDir() + "weft-trace-" + std::to_string(getpid());
  setenv("WEFT_TRACE", path.c_str(), 1);
  std::unique_ptr<Machine> machine = load(small(smallObject()));
  unsetenv("WEFT_TRACE");
  ASSERT_NE(machine, nullptr);
  Tensor x = ramp(ElementType::I32);
  std::vector<Tensor> results{Tensor(ElementType::F32, {kSize})};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(machine->run("step", {&x, 1}, results).ok());
  const double spent =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  machine.reset();
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::remove(path.c_str());
  absl::StatusOr<Json> trace = parseJson(text, "trace");
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::map<std::string, int> calls;
  double reached = 0, total = 0;
  for (const Json &event : (*trace)["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    ++calls[event["name"]];
    EXPECT_GE(event["ts"].get<double>(), reached);
    reached = event["ts"].get<double>() + event["dur"].get<double>() - 1e-3;
    total += event["dur"].get<double>();
  }
  EXPECT_EQ(calls["add"], 3);
  EXPECT_EQ(calls["chunked"], 3);
  EXPECT_GT(total, 0);
  EXPECT_LE(total, spent);
}

} // namespace
} // namespace weft::rt
