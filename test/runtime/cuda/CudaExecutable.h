//===- CudaExecutable.h - Small executables for tests of the GPU -*- C++ -*-===//
#pragma once

#include "runtime/cuda/Cuda.h"

#include <gtest/gtest.h>

namespace weft::rt {

inline Kernel ptxKernel(const std::string &ptx, const std::string &symbol, uint32_t threads = 128) {
  Kernel kernel;
  kernel.name = "@" + symbol, kernel.symbol = symbol, kernel.object = ptx;
  kernel.form = Kernel::Form::Ptx, kernel.launch.threads = threads;
  return kernel;
}

inline Kernel ownKernel(Kernel::Kind kind) {
  Kernel kernel;
  kernel.name = kind == Kernel::Kind::Zero ? "zero" : kind == Kernel::Kind::Copy ? "copy" : "gemm";
  kernel.kind = kind;
  return kernel;
}

inline StateEntry stateEntry(const std::string &name, ElementType type, std::vector<int64_t> shape,
                             uint64_t offset) {
  StateEntry entry;
  entry.name = name, entry.type = type, entry.shape = std::move(shape), entry.offset = offset;
  return entry;
}

template <typename T> Tensor tensorOf(ElementType type, std::vector<int64_t> shape, std::vector<T> values) {
  Tensor tensor(type, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<T>().begin());
  return tensor;
}

inline std::unique_ptr<Machine> loadCuda(const Executable &executable, const CudaOptions &options = {}) {
  absl::StatusOr<std::unique_ptr<Machine>> machine = makeCudaMachine(executable, options);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return machine.ok() ? std::move(*machine) : nullptr;
}

/// A case of a product: sizes, layouts, types, accumulation, epilogue.
struct ProductCase {
  const char *name;
  Gemm gemm;
};

/// Rows longer than what is used, so that a row length taken for a size shows.
inline std::vector<ProductCase> productCases() {
  constexpr ElementType kBf = ElementType::BF16;
  constexpr auto kGrad = Gemm::Epilogue::GeluGrad;
  constexpr auto kNone = Gemm::Epilogue::None;
  auto make = [](int64_t m, int64_t n, int64_t k, bool transA, bool transB, ElementType in, ElementType out,
                 bool accumulate, bool separate, Gemm::Epilogue epilogue, int64_t batch) {
    Gemm g;
    g.m = m, g.n = n, g.k = k, g.batch = batch, g.transA = transA, g.transB = transB;
    g.lda = (transA ? m : k) + 8, g.ldb = (transB ? k : n) + 16, g.ldc = n + 8;
    g.strideA = (transA ? k : m) * g.lda, g.strideB = (transB ? n : k) * g.ldb, g.strideC = m * g.ldc;
    g.typeA = g.typeB = in, g.typeC = out;
    g.accumulate = accumulate, g.separate = separate, g.epilogue = epilogue;
    return g;
  };
  constexpr ElementType kF = ElementType::F32;
  return {{"plain", make(24, 40, 16, false, false, kF, kF, false, false, kNone, 1)},
          {"transposed A", make(24, 40, 16, true, false, kF, kF, false, false, kNone, 1)},
          {"transposed B, in place", make(24, 40, 16, false, true, kF, kF, true, false, kNone, 1)},
          {"batches, separate", make(24, 40, 16, true, true, kF, kF, true, true, kNone, 3)},
          {"bf16 to f32", make(64, 48, 32, false, true, kBf, kF, true, true, kNone, 2)},
          {"bf16", make(64, 48, 32, true, false, kBf, kBf, false, false, kNone, 1)},
          {"gelu backwards", make(64, 48, 32, false, true, kBf, kBf, false, false, kGrad, 1)}};
}

/// Runs every case on `machine`s of its own and compares with loops in double.
void checkProducts(const CudaOptions &options);

} // namespace weft::rt
