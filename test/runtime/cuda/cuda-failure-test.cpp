// What fails, against the recording stub of the driver (Stub.h).
#include "test/runtime/cuda/StubFixture.h"

#include "runtime/cuda/Abi.h"

namespace weft::rt {
namespace {

TEST_F(CudaStub, RefusesMapsTheHardwareDoesNotTake) {
  Executable executable = small();
  executable.kernels[0] = ptxKernel(kPtx, "mapped");
  executable.kernels[0].scratchBytes = 64;
  TensorMap good{1, ElementType::BF16, {64, 8}, {128}, {64, 8}, 128};
  Operand w{Space::State, 0, 16, 0}, buffer{Space::Arena, 1024, 1024, 0};
  auto message = [&](const TensorMap &map) {
    executable.kernels[0].launch.maps = {map};
    executable.programs[0].calls[3] = {0, 10, {w, buffer}};
    return refusal(executable);
  };
  EXPECT_EQ(message(good), "");
  TensorMap map = good;
  map.strides[0] = 136;
  EXPECT_HAS(message(map), "kernel @mapped: tensor map 0 (sizes 64 x 8, box 64 x 8, innermost first): a "
                           "stride of 136 bytes is no multiple of 16");
  map = good, map.box[1] = 257;
  EXPECT_HAS(message(map), "a box of 257 elements");
  map = good, map.swizzle = 64;
  EXPECT_HAS(message(map), "rows of its box have 128 bytes, more than its swizzle of 64");
  buffer.offset = 1032;
  EXPECT_HAS(message(good), "no multiple of 16 bytes");
}

TEST_F(CudaStub, RefusesCallsThatDoNotFitTheEntry) {
  Executable executable = small();
  Operand w{Space::State, 0, 16, 0};
  executable.programs[0].calls[3].operands = {w, w};
  EXPECT_EQ(refusal(executable),
            "kernel @count: a call passes 2 addresses, 0 tensor maps and no scratch, but "
            "parameter 1 of its entry is missing");
  executable.programs[0].calls[3].operands = {};
  EXPECT_HAS(refusal(executable), "parameter 0 of its entry has 8 bytes");
  executable = small("mapped");
  executable.programs[0].calls[3].operands = {w, w};
  executable.kernels[0].scratchBytes = 64;
  EXPECT_HAS(refusal(executable),
             "2 addresses, 0 tensor maps and scratch, but parameter 2 of its entry has 128");
}

TEST_F(CudaStub, RefusesProductsOfOtherTypes) {
  Executable executable;
  executable.model = "m", executable.target = "sm_80", executable.stateBytes = 4096;
  executable.kernels = {ownKernel(Kernel::Kind::Gemm)};
  Gemm &gemm = executable.kernels[0].gemm;
  gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = 8, gemm.typeA = ElementType::BF16;
  Operand a{Space::State, 0, 1024, 0};
  executable.programs = {{"go", {}, {}, {{0, 1, {a, a, a}}}}};
  EXPECT_HAS(refusal(executable), "BF16 x F32 -> F32): a product on the GPU takes F32 x F32 or BF16 x BF16");
  gemm.typeA = ElementType::F32;
  stub.fail("cublasLtMatmulAlgoGetHeuristic", 1, 15);
  EXPECT_HAS(refusal(executable), "kernel gemm (m 8, n 8, k 8, batch 1, rows of 8, 8 and 8 elements, F32 x "
                                  "F32 -> F32): cuBLASLt has no algorithm: CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST_F(CudaStub, RefusesBeforeItAllocates) {
  stub.memory(4500);
  std::string message = refusal(small());
  EXPECT_HAS(message, "cuda:0 (Stub H200): model small needs 5.0 KiB");
  EXPECT_HAS(message, "4.4 KiB are available; largest: ");
  EXPECT_EQ(stub.calls("cuMemAlloc_v2"), 0);
  EXPECT_EQ(stub.calls("cuModuleLoadDataEx"), 0); // nor compiles
}

TEST_F(CudaStub, ExplainsWhereMemoryEnded) {
  stub.fail("cuMemAlloc_v2", 2, cuda::kOutOfMemory);
  absl::Status status = makeCudaMachine(small(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_HAS(status.message(), "cuda:0: a block of 4.0 KiB for the arena with");
  EXPECT_HAS(status.message(), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_TRUE(makeCudaMachine(small(), {}).ok()); // the process goes on
}

TEST_F(CudaStub, NamesKernelsThatCannotBeLoaded) {
  Executable executable = small();
  executable.kernels[0].object += "syntax error";
  EXPECT_EQ(refusal(executable), "kernel @count can't be loaded: CUDA_ERROR_INVALID_PTX (text of the stub): "
                                 "ptxas application ptx input, line 3; error: syntax error");
  executable = small("missing");
  EXPECT_EQ(refusal(executable), "kernel @missing can't be loaded: its PTX has no entry 'missing'");
  executable = small();
  executable.kernels[0].launch.threads = 1024;
  EXPECT_HAS(refusal(executable),
             "a block of 1024 threads is more than the 512 that its 128 registers allow");
  executable = small();
  executable.kernels[0].form = Kernel::Form::Host;
  EXPECT_HAS(refusal(executable), "it is code for the CPU");
  executable.target = "cpu:x86_64";
  EXPECT_HAS(refusal(executable), "target 'cpu:x86_64': expected sm_80 or sm_90a");
}

// A launch that is refused leaves the machine as it was, in a capture too.
TEST_F(CudaStub, GoesOnAfterARefusedLaunch) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  for (int launch : {1, 1, 2}) { // of the first run; of the run after; of the capture
    stub.fail("cuLaunchKernel", launch, cuda::kLaunchOutOfResources);
    absl::StatusOr<float> first = step(*machine, 1);
    if (launch == 2) {
      ASSERT_TRUE(first.ok());
      first = step(*machine, 1);
    }
    EXPECT_EQ(first.status().message(),
              "kernel @count can't be started with 264 blocks of 128 threads, 128 registers and 0 bytes of "
              "shared memory: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (text of the stub)");
  }
  ASSERT_TRUE(step(*machine, 5).ok());
  EXPECT_EQ(*step(*machine, 6), 6);
  EXPECT_EQ(cudaCounters(*machine)->graphsCaptured, 1u);
}

TEST_F(CudaStub, ACrashEndsTheMachineAndNotTheProcess) {
  std::unique_ptr<Machine> machine = loadCuda(small("crash"));
  ASSERT_NE(machine, nullptr);
  absl::Status status = step(*machine, 1).status();
  EXPECT_EQ(status.message(), "program step: CUDA_ERROR_ILLEGAL_ADDRESS (text of the stub); WEFT_CUDA_SYNC=1 "
                              "names the kernel");
  for (const absl::Status &later :
       {step(*machine, 1).status(), machine->readState("w").status(), machine->writeState("w", inputOf(1))})
    EXPECT_HAS(later.message(), "program step: CUDA_ERROR_ILLEGAL_ADDRESS (text of the stub); the device's "
                                "state is lost");
}

TEST_F(CudaStub, SynchronousRunsNameTheKernel) {
  CudaOptions options;
  options.synchronous = true;
  std::unique_ptr<Machine> machine = loadCuda(small("crash"), options);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(step(*machine, 1).status().message(),
            "program step, call 3 (kernel @crash): CUDA_ERROR_ILLEGAL_ADDRESS (text of the stub)");
}

TEST_F(CudaStub, GuardsSeeWritesOutsideABlock) {
  Executable executable = small("overrun");
  executable.programs[0].calls[3].operands[0] = {Space::Arena, 0, 16, 0};
  CudaOptions options;
  options.guard = true;
  std::unique_ptr<Machine> machine = loadCuda(executable, options);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(step(*machine, 1).status().message(),
            "program step wrote 3 bytes before the start of the arena (4.0 KiB)");
  options.synchronous = true;
  machine = loadCuda(executable, options);
  EXPECT_EQ(step(*machine, 1).status().message(),
            "program step, call 3 (kernel @overrun) wrote 3 bytes before the start of the arena (4.0 KiB)");
  machine = loadCuda(small(), options);
  EXPECT_TRUE(step(*machine, 1).ok());
}

// Each call of the driver fails once: always an error, never anything left over,
// and the next machine works.
TEST_F(CudaStub, SurvivesEachFailure) {
  Executable executable = small();
  executable.kernels.push_back(ownKernel(Kernel::Kind::Gemm));
  executable.kernels[3].gemm = {2, 2, 2, 2, 2, 2};
  Operand a{Space::Arena, 0, 16, 0}, b{Space::Arena, 128, 16, 0};
  executable.programs[0].calls.push_back({3, 1, {a, a, b}});
  int failures = 0;
  for (const char *symbol : {"cuDevicePrimaryCtxRetain",
                             "cuCtxSetCurrent",
                             "cuStreamCreate",
                             "cuMemGetInfo_v2",
                             "cuMemAlloc_v2",
                             "cuMemHostAlloc",
                             "cuModuleLoadDataEx",
                             "cuModuleGetFunction",
                             "cuMemsetD8Async",
                             "cublasLtMatmulAlgoGetHeuristic",
                             "cuMemcpyHtoDAsync_v2",
                             "cuMemcpyDtoDAsync_v2",
                             "cuMemcpyDtoHAsync_v2",
                             "cuLaunchKernel",
                             "cublasLtMatmul",
                             "cuStreamSynchronize",
                             "cuStreamBeginCapture_v2",
                             "cuStreamGetCaptureInfo_v2",
                             "cuGraphGetNodes",
                             "cuGraphDestroyNode",
                             "cuGraphAddDependencies",
                             "cuGraphInstantiateWithFlags",
                             "cuGraphLaunch",
                             "cuEventCreate"})
    for (int nth = 1; nth < 50; ++nth) {
      SCOPED_TRACE(std::string(symbol) + ", call " + std::to_string(nth));
      stub.reset();
      stub.fail(symbol, nth, cuda::kInvalidValue);
      absl::StatusOr<std::unique_ptr<Machine>> machine = makeCudaMachine(executable, {});
      absl::Status status = machine.status();
      for (int run = 0; run < 3 && status.ok(); ++run)
        status = step(**machine, 1).status();
      bool reached = stub.calls(symbol) >= nth;
      EXPECT_TRUE(!status.ok() || !reached || std::string(symbol) == "cuCtxSetCurrent");
      failures += reached;
      if (machine.ok())
        machine->reset();
      EXPECT_EQ(stub.live(), 0);
      if (!reached)
        break;
    }
  EXPECT_GT(failures, 30);
  stub.reset();
  std::unique_ptr<Machine> machine = loadCuda(executable);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(*step(*machine, 2), 2);
}

TEST_F(CudaStub, RefusesWrongTensors) {
  std::unique_ptr<Machine> machine = loadCuda(small());
  ASSERT_NE(machine, nullptr);
  Tensor wrong(ElementType::I32, {4});
  std::vector<Tensor> results{Tensor(ElementType::F32, {4})};
  EXPECT_EQ(machine->run("step", {&wrong, 1}, results).message(), "input x: expected F32[4], found I32[4]");
  EXPECT_EQ(machine->run("walk", {}, {}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(machine->writeState("w", wrong).message(), "state w: expected F32[4], found I32[4]");
  EXPECT_EQ(machine->readState("v").status().code(), absl::StatusCode::kNotFound);
}

} // namespace
} // namespace weft::rt
