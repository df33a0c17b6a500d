//===- ProductCheck.cpp - Products on the GPU against loops ---------------===//
#include "test/runtime/cuda/CudaExecutable.h"

#include "runtime/core/ExecutableCheck.h"
#include "runtime/core/Floats.h"

#include <bit>
#include <cmath>

namespace weft::rt {
namespace {

/// What lies in memory, as doubles.
std::vector<double> doublesOf(const Tensor &tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    values.push_back(floatAt(tensor, i));
  return values;
}

/// Small numbers without a pattern, exact in bf16.
Tensor noise(ElementType type, int64_t count, uint32_t seed) {
  Tensor tensor(type, {count});
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    seed = seed * 1664525 + 1013904223;
    float value = static_cast<float>(static_cast<int>(seed >> 24) - 128) / 128;
    if (type == ElementType::F32)
      tensor.as<float>()[i] = value;
    else
      tensor.as<uint16_t>()[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  }
  return tensor;
}

constexpr double kSlope = 0.7978845608028654; // sqrt(2 / pi)
double gelu(double x) { return x / 2 * (1 + std::tanh(kSlope * (x + 0.044715 * x * x * x))); }
/// By a central difference: shares no formula with what is checked.
double geluSlope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

class Case {
public:
  Case(const ProductCase &made, const CudaOptions &options) : gemm(made.gemm) {
    names = {"a", "b"};
    if (gemm.separate)
      names.emplace_back("added");
    names.emplace_back("out");
    if (gemm.epilogue != Gemm::Epilogue::None)
      names.emplace_back("auxiliary");
    Executable executable;
    executable.model = made.name, executable.target = "sm_80";
    executable.kernels = {ownKernel(Kernel::Kind::Gemm)};
    executable.kernels[0].gemm = gemm;
    Call call;
    for (size_t i = 0; i < names.size(); ++i) {
      ElementType type = i == 0 ? gemm.typeA : i == 1 ? gemm.typeB : gemm.typeC;
      uint64_t bytes = *gemmOperandBytes(gemm, static_cast<int>(std::min<size_t>(i, 2)));
      tensors.push_back(
          noise(type, static_cast<int64_t>(bytes / sizeOf(type)), static_cast<uint32_t>(i + 1)));
      executable.states.push_back(stateEntry(names[i], type, tensors.back().shape, executable.stateBytes));
      call.operands.push_back({Space::State, executable.stateBytes, bytes, 0});
      executable.stateBytes += (bytes + 255) / 256 * 256;
    }
    executable.programs = {{"go", {}, {}, {call}}};
    machine = loadCuda(executable, options);
  }

  void check() {
    ASSERT_NE(machine, nullptr);
    for (size_t i = 0; i < names.size(); ++i)
      ASSERT_TRUE(machine->writeState(names[i], tensors[i]).ok());
    ASSERT_TRUE(machine->run("go", {}, {}).ok());
    for (size_t i = 0; i < names.size(); ++i)
      before.push_back(doublesOf(tensors[i])), after.push_back(doublesOf(*machine->readState(names[i])));
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == "a" || names[i] == "b" || names[i] == "added") {
        EXPECT_EQ(before[i], after[i]) << names[i];
      }
    size_t out = gemm.separate ? 3 : 2;
    std::vector<bool> inside(after[out].size());
    for (int64_t z = 0; z < gemm.batch; ++z)
      for (int64_t i = 0; i < gemm.m; ++i)
        for (int64_t j = 0; j < gemm.n; ++j) {
          auto place = static_cast<size_t>(z * gemm.strideC + i * gemm.ldc + j);
          inside[place] = true;
          checkElement(z, i, j, place, out);
        }
    for (size_t i = 0; i < inside.size(); ++i)
      if (!inside[i]) {
        ASSERT_EQ(before[out][i], after[out][i]) << "written between rows, at " << i;
      }
  }

private:
  void checkElement(int64_t z, int64_t i, int64_t j, size_t place, size_t out) {
    double sum = 0, size = 0;
    for (int64_t l = 0; l < gemm.k; ++l) {
      int64_t a = z * gemm.strideA + (gemm.transA ? l * gemm.lda + i : i * gemm.lda + l);
      int64_t b = z * gemm.strideB + (gemm.transB ? j * gemm.ldb + l : l * gemm.ldb + j);
      double term = before[0][static_cast<size_t>(a)] * before[1][static_cast<size_t>(b)];
      sum += term, size += std::abs(term);
    }
    if (gemm.accumulate)
      sum += before[2][place], size += std::abs(before[2][place]);
    // Half a unit in the last place of bf16, or fp32 sums of k terms.
    double step = gemm.typeC == ElementType::BF16 ? 1.0 / 256 : static_cast<double>(gemm.k) / (1 << 23);
    double bound = step * (size + 1) + 1e-6;
    if (gemm.epilogue == Gemm::Epilogue::GeluGrad)
      sum *= geluSlope(before.back()[place]);
    ASSERT_NEAR(after[out][place], sum, bound) << "batch " << z << ", row " << i << ", column " << j;
  }

  Gemm gemm;
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  std::vector<std::vector<double>> before, after;
  std::unique_ptr<Machine> machine;
};

} // namespace

void checkProducts(const CudaOptions &options) {
  for (const ProductCase &made : productCases()) {
    SCOPED_TRACE(made.name);
    Case(made, options).check();
    if (::testing::Test::HasFatalFailure())
      return;
  }
}

} // namespace weft::rt
