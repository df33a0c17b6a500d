// On a GPU; all of it is skipped where there is none. Takes seconds.
#include "test/runtime/cuda/CudaExecutable.h"

#include <cmath>
#include <filesystem>

#include <unistd.h>

namespace weft::rt {
namespace {

/// y[i] = x[i] + w[i] for 4096 numbers, in items of 128; and kernels that fail.
constexpr const char *kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 px, .param .u64 pw, .param .u64 py)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %a<8>;
  .reg .f32 %f<3>;
  ld.param.u64 %a0, [px];
  ld.param.u64 %a1, [pw];
  ld.param.u64 %a2, [py];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %nctaid.x;
  mov.u32 %r2, %tid.x;
ITEM:
  setp.ge.u32 %p, %r0, 32;
  @%p bra DONE;
  mad.lo.u32 %r3, %r0, 128, %r2;
  mul.wide.u32 %a3, %r3, 4;
  add.s64 %a4, %a0, %a3;
  add.s64 %a5, %a1, %a3;
  add.s64 %a6, %a2, %a3;
  ld.global.f32 %f0, [%a4];
  ld.global.f32 %f1, [%a5];
  add.rn.f32 %f2, %f0, %f1;
  st.global.f32 [%a6], %f2;
  add.u32 %r0, %r0, %r1;
  bra ITEM;
DONE:
  ret;
}
.visible .entry crash(.param .u64 px)
{
  .reg .b64 %a<2>;
  .reg .f32 %f;
  mov.u64 %a0, 64;
  ld.global.f32 %f, [%a0];
  ld.param.u64 %a1, [px];
  st.global.f32 [%a1], %f;
  ret;
}
.visible .entry overrun(.param .u64 px)
{
  .reg .b64 %a;
  .reg .f32 %f;
  ld.param.u64 %a, [px];
  mov.f32 %f, 0f40000000;
  st.global.f32 [%a+-4], %f;
  ret;
}
)";

/// Copies a box of 8 x 64 bf16 from a 16 x 64 tensor by a tensor map: rows 4 to 11.
constexpr const char *kMapPtx = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry box(.param .u64 px, .param .u64 py, .param .align 64 .b8 map[128], .param .u64 scratch)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %a<6>;
  .shared .align 128 .b8 tile[1024];
  .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r2, bar;
  setp.ne.u32 %p, %r0, 0;
  @%p bra JOIN;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %a5, [%r2], 1024;
  mov.b64 %a0, map;
  cvta.param.u64 %a0, %a0;
  mov.u32 %r3, 0;
  mov.u32 %r4, 4;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a0, {%r3, %r4}], [%r2];
JOIN:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p, [%r2], 0;
  @!%p bra WAIT;
  mul.lo.u32 %r5, %r0, 8;
  add.u32 %r6, %r1, %r5;
  ld.shared.b64 %a1, [%r6];
  ld.param.u64 %a2, [py];
  cvt.u64.u32 %a3, %r5;
  add.s64 %a2, %a2, %a3;
  st.global.b64 [%a2], %a1;
  ld.param.u64 %a4, [scratch];
  st.global.b64 [%a4], %a1;
  ret;
}
)";

constexpr int64_t kSize = 4096;
constexpr uint64_t kBytes = kSize * 4;

class CudaMachine : public ::testing::Test {
protected:
  void SetUp() override {
    absl::StatusOr<std::vector<CudaDevice>> devices = cudaDevices();
    if (!devices.ok() || devices->empty())
      GTEST_SKIP() << "unsupported: no CUDA device"
                   << (devices.ok() ? "" : ": " + std::string(devices.status().message()));
    device = devices->front();
  }
  CudaDevice device;
};

/// `step`: y = x + w through the arena, then `kernel`; w = y.
Executable small(const char *kernel = nullptr) {
  Executable executable;
  executable.model = "small", executable.target = "sm_80";
  executable.stateBytes = kBytes, executable.arenaBytes = kBytes;
  executable.states = {stateEntry("w", ElementType::F32, {kSize}, 0)};
  executable.kernels = {ptxKernel(kPtx, "add"), ownKernel(Kernel::Kind::Copy), ownKernel(Kernel::Kind::Zero)};
  Operand x{Space::Input, 0, kBytes, 0}, y{Space::Result, 0, kBytes, 0}, w{Space::State, 0, kBytes, 0},
      buffer{Space::Arena, 0, kBytes, 0};
  executable.programs = {
      {"step",
       {{"x", ElementType::F32, {kSize}}},
       {{"y", ElementType::F32, {kSize}}},
       {{2, 1, {buffer}}, {0, 32, {x, w, buffer}}, {1, 1, {buffer, y}}, {1, 1, {buffer, w}}}}};
  if (kernel) {
    executable.kernels.push_back(ptxKernel(kPtx, kernel));
    executable.programs[0].calls.push_back({3, 1, {buffer}});
  }
  return executable;
}

Tensor ramp(float scale) {
  Tensor tensor(ElementType::F32, {kSize});
  for (size_t i = 0; i < kSize; ++i)
    tensor.as<float>()[i] = scale * static_cast<float>(i);
  return tensor;
}

absl::Status step(Machine &machine, Tensor &y) {
  Tensor x = ramp(0.5F);
  return machine.run("step", {&x, 1}, {&y, 1});
}

TEST_F(CudaMachine, RunsKernelsAndReplaysThem) {
  for (bool graphs : {true, false})
    for (int64_t grid : {0, 1, 7, 132}) {
      CudaOptions options;
      options.graphs = graphs, options.grid = grid, options.poison = true, options.guard = true;
      std::unique_ptr<Machine> machine = loadCuda(small(), options);
      ASSERT_NE(machine, nullptr);
      ASSERT_TRUE(machine->writeState("w", ramp(1)).ok());
      Tensor y(ElementType::F32, {kSize});
      for (int round = 1; round <= 4; ++round) {
        absl::Status status = step(*machine, y);
        ASSERT_TRUE(status.ok()) << status;
        for (size_t i = 0; i < kSize; ++i)
          ASSERT_EQ(y.as<float>()[i], (1 + 0.5F * static_cast<float>(round)) * static_cast<float>(i));
      }
      EXPECT_EQ(machine->readState("w")->bytes, y.bytes);
      EXPECT_EQ(cudaCounters(*machine)->graphLaunches, graphs ? 3u : 0u);
    }
}

TEST_F(CudaMachine, AThousandReplaysTakeNothing) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  Tensor y(ElementType::F32, {kSize});
  ASSERT_TRUE(step(*machine, y).ok());
  ASSERT_TRUE(step(*machine, y).ok());
  CudaCounters before = *cudaCounters(*machine);
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(step(*machine, y).ok());
  const CudaCounters &after = *cudaCounters(*machine);
  EXPECT_EQ(after.deviceBytes, before.deviceBytes);
  EXPECT_EQ(after.deviceAllocations, before.deviceAllocations);
  EXPECT_EQ(after.synchronizations, before.synchronizations + 1000);
  EXPECT_EQ(after.launches, before.launches);
}

TEST_F(CudaMachine, CopiesBoxesByTensorMaps) {
  if (device.major != 9)
    GTEST_SKIP() << "unsupported: tensor maps need sm_90, found " << device.chip;
  Executable executable;
  executable.model = "box", executable.target = "sm_90a";
  executable.stateBytes = 4096;
  executable.states = {stateEntry("a", ElementType::BF16, {16, 64}, 0),
                       stateEntry("b", ElementType::BF16, {8, 64}, 2048)};
  executable.kernels = {ptxKernel(kMapPtx, "box")};
  executable.kernels[0].launch.maps = {{0, ElementType::BF16, {64, 16}, {128}, {64, 8}, 0}};
  executable.kernels[0].scratchBytes = 64;
  executable.programs = {
      {"go", {}, {}, {{0, 1, {{Space::State, 0, 2048, 0}, {Space::State, 2048, 1024, 0}}}}}};
  std::unique_ptr<Machine> machine = loadCuda(executable);
  ASSERT_NE(machine, nullptr);
  Tensor a(ElementType::BF16, {16, 64});
  for (size_t i = 0; i < 1024; ++i)
    a.as<uint16_t>()[i] = static_cast<uint16_t>(i);
  ASSERT_TRUE(machine->writeState("a", a).ok());
  absl::Status status = machine->run("go", {}, {});
  ASSERT_TRUE(status.ok()) << status;
  Tensor b = *machine->readState("b");
  for (size_t i = 0; i < 512; ++i)
    ASSERT_EQ(b.as<uint16_t>()[i], 4 * 64 + i);
}

TEST_F(CudaMachine, MultipliesRowMajorMatrices) { checkProducts({}); }

/// In a process of its own, which no later test needs: 0 when all is told as it should be.
int crashTold(bool synchronous) {
  CudaOptions options;
  options.synchronous = synchronous;
  Tensor y(ElementType::F32, {kSize});
  std::unique_ptr<Machine> machine = loadCuda(small("crash"), options);
  if (!machine)
    return 1;
  std::string message(step(*machine, y).message());
  if (message.find(synchronous ? "kernel @crash" : "CUDA_ERROR_ILLEGAL_ADDRESS") == std::string::npos)
    return 2;
  if (step(*machine, y).message().find("state is lost") == absl::string_view::npos)
    return 3;
  machine.reset();
  std::string next(makeCudaMachine(small(), {}).status().message());
  return next.find("start the program anew") == std::string::npos ? 4 : 0;
}

TEST_F(CudaMachine, ACrashIsToldAndTheProgramGoesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (bool synchronous : {false, true})
    EXPECT_EXIT(std::exit(crashTold(synchronous)), ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaMachine, GuardsSeeWritesOutsideABlock) {
  CudaOptions options;
  options.guard = options.synchronous = true;
  std::unique_ptr<Machine> machine = loadCuda(small("overrun"), options);
  ASSERT_NE(machine, nullptr);
  Tensor y(ElementType::F32, {kSize});
  EXPECT_NE(step(*machine, y).message().find("kernel @overrun) wrote 4 bytes before the start of the arena"),
            std::string::npos);
}

TEST_F(CudaMachine, ExplainsWhatCannotBeLoaded) {
  Executable executable = small();
  executable.kernels[0].object += "\nnonsense;\n";
  std::string message(makeCudaMachine(executable, {}).status().message());
  EXPECT_NE(message.find("kernel @add can't be loaded: CUDA_ERROR_INVALID_PTX"), std::string::npos)
      << message;
  EXPECT_NE(message.find("line"), std::string::npos) << message; // what the compiler said
  executable = small();
  executable.arenaBytes = uint64_t(1) << 50;
  message = std::string(makeCudaMachine(executable, {}).status().message());
  EXPECT_NE(message.find("model small needs 1.0 PiB"), std::string::npos) << message;
  EXPECT_NE(loadCuda(small()), nullptr);
}

} // namespace
} // namespace weft::rt
