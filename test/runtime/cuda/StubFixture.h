//===- StubFixture.h - A machine on the stub of the driver ------*- C++ -*-===//
#pragma once

#include "test/runtime/cuda/CudaExecutable.h"
#include "test/runtime/cuda/Stub.h"

#include <dlfcn.h>

#include <cstdlib>

namespace weft::rt {

/// Entries that the stub runs; their parameters are what it records.
inline constexpr const char *kPtx = R"(
.version 8.0
.target sm_80
.visible .entry count(.param .u64 n) { ret; }
.visible .entry mapped(.param .u64 a, .param .u64 b, .param .align 64 .b8 map[128], .param .u64 scratch) { ret; }
.visible .entry crash(.param .u64 n) { ret; }
.visible .entry overrun(.param .u64 n) { ret; }
)";

struct StubCalls {
  void (*reset)();
  void (*devices)(int);
  void (*memory)(uint64_t);
  void (*fail)(const char *, int, int);
  int (*calls)(const char *);
  const char *(*log)();
  int (*live)();
};

class CudaStub : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("WEFT_CUDA_LIBS", WEFT_STUB_FOLDER, 1);
    void *library = dlopen(WEFT_STUB_FOLDER "/libcuda.so.1", RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    auto find = [&](auto &function, const char *symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      ASSERT_NE(function, nullptr) << symbol;
    };
    find(stub.reset, "weftStubReset"), find(stub.devices, "weftStubDevices");
    find(stub.memory, "weftStubMemory"), find(stub.fail, "weftStubFail");
    find(stub.calls, "weftStubCalls"), find(stub.log, "weftStubLog"), find(stub.live, "weftStubLive");
  }
  void SetUp() override { stub.reset(); }
  void TearDown() override { EXPECT_EQ(stub.live(), 0) << "something is left"; }
  static inline StubCalls stub;
};
inline constexpr uint64_t kBytes = 4096;

/// State: w (4 floats), n (1 integer). `step`: x -> arena -> y, w = x, n += blocks
/// of `kernel` on 1000 items; `clear`: w = 0.
inline Executable small(const char *kernel = "count") {
  Executable executable;
  executable.model = "small", executable.target = "sm_90a";
  executable.stateBytes = 512, executable.arenaBytes = kBytes;
  executable.states = {stateEntry("w", ElementType::F32, {4}, 0),
                       stateEntry("n", ElementType::I32, {1}, 256)};
  executable.kernels = {ptxKernel(kPtx, kernel), ownKernel(Kernel::Kind::Zero),
                        ownKernel(Kernel::Kind::Copy)};
  Operand x{Space::Input, 0, 16, 0}, y{Space::Result, 0, 16, 0}, w{Space::State, 0, 16, 0},
      n{Space::State, 256, 4, 0}, buffer{Space::Arena, 64, 16, 0};
  executable.programs = {{"step",
                          {{"x", ElementType::F32, {4}}},
                          {{"y", ElementType::F32, {4}}},
                          {{2, 1, {x, buffer}}, {2, 1, {buffer, y}}, {2, 1, {x, w}}, {0, 1000, {n}}}},
                         {"clear", {}, {}, {{1, 1, {w}}}}};
  return executable;
}

inline Tensor inputOf(float first) {
  return tensorOf<float>(ElementType::F32, {4}, {first, first + 1, first + 2, first + 3});
}

/// A run that was started, and its one result.
struct Started {
  std::vector<Tensor> results{Tensor(ElementType::F32, {4})};
  uint64_t number = 0;
  float first() const { return results[0].as<float>()[0]; }
};

/// Runs `step` and returns y's first number.
inline absl::StatusOr<float> step(Machine &machine, float first) {
  Tensor x = inputOf(first);
  std::vector<Tensor> results{Tensor(ElementType::F32, {4})};
  if (absl::Status status = machine.run("step", {&x, 1}, results); !status.ok())
    return status;
  return results[0].as<float>()[0];
}

inline int32_t counted(const Machine &machine) { return machine.readState("n")->as<int32_t>()[0]; }

inline std::string refusal(const Executable &executable, const CudaOptions &options = {}) {
  return std::string(makeCudaMachine(executable, options).status().message());
}

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

} // namespace weft::rt
