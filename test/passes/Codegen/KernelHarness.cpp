//===- KernelHarness.cpp --------------------------------------------------===//
#include "test/passes/Codegen/KernelHarness.h"

#include "runtime/cpu/Gemm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <sstream>

#include <gtest/gtest.h>

using namespace mlir;

namespace weft::test {

struct KernelHarness::Loaded {
  rt::Kernel kernel;
  rt::ObjectImage image;
  rt::KernelFunction function = nullptr;
  std::vector<char> scratch;
  int64_t grid = 1;
};

std::string tensor(const std::string &axes, const std::string &element) {
  std::istringstream words(axes);
  std::string sizes, names, word;
  while (words >> word) {
    auto colon = word.find(':');
    sizes += word.substr(colon + 1) + "x";
    names += (names.empty() ? "" : ", ") + word.substr(0, colon);
  }
  return "tensor<" + sizes + element + (names.empty() ? "" : ", #weft.axes<" + names + ">") + ">";
}

KernelHarness::KernelHarness(const std::string &text) {
  DialectRegistry registry;
  registerWeftDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    ADD_FAILURE() << "no kernel in\n" << text;
}

KernelHarness::~KernelHarness() = default;

KernelOp KernelHarness::kernel() { return *module->getOps<KernelOp>().begin(); }

void KernelHarness::makeInputs() {
  if (!arrays.empty())
    return;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (auto [number, type] : llvm::enumerate(kernel().getArgumentTypes())) {
    Array array(type);
    auto rule = fill.find(number);
    bool integers = cast<RankedTensorType>(type).getElementType().isInteger(32);
    for (size_t i = 0; i < array.data.size(); ++i) {
      double value = rule == fill.end() ? normal(random) : rule->second(number, i);
      array.data[i] = integers ? value : static_cast<float>(value);
    }
    arrays.push_back(std::move(array));
  }
}

const std::vector<Array> &KernelHarness::inputs() {
  makeInputs();
  return arrays;
}

void KernelHarness::load() {
  if (loaded)
    return;
  rt::prepareBlas();
  CpuTarget target = hostTarget();
  if (vectorBits)
    target.vectorBits = vectorBits;
  auto compiled = compileKernel(kernel(), target);
  ASSERT_TRUE(succeeded(compiled));
  loaded = std::make_unique<Loaded>();
  loaded->kernel = std::move(*compiled);
  loaded->scratch.resize(loaded->kernel.scratchBytes + 64);
  if (loaded->kernel.kind == rt::Kernel::Kind::Gemm) {
    loaded->grid = rt::gemmGrid(loaded->kernel.gemm);
    return;
  }
  loaded->grid = gridOf(kernel());
  std::string_view object = loaded->kernel.object;
  auto image = rt::ObjectImage::load({&object, 1});
  ASSERT_TRUE(image.ok()) << image.status();
  loaded->image = std::move(*image);
  auto function = loaded->image.find(0, loaded->kernel.symbol);
  ASSERT_TRUE(function.ok()) << function.status();
  loaded->function = reinterpret_cast<rt::KernelFunction>(*function);
}

static void runItems(const rt::Kernel &kernel, rt::KernelFunction function, std::vector<void *> &operands,
                     int64_t begin, int64_t end, void *scratch) {
  if (kernel.kind == rt::Kernel::Kind::Gemm)
    rt::runGemm(kernel.gemm, static_cast<const float *>(operands[0]), static_cast<const float *>(operands[1]),
                static_cast<float *>(operands.back()), begin, end);
  else
    function(operands.data(), begin, end, &rt::kernelTable(), scratch);
}

static void *aligned(std::vector<char> &bytes) {
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  return reinterpret_cast<void *>((address + 63) / 64 * 64);
}

std::vector<std::vector<float>> KernelHarness::run() {
  load();
  makeInputs();
  std::vector<std::vector<float>> results;
  if (!loaded)
    return results;
  constexpr float kUntouched = 12345.5F;
  // Starts as garbage: a kernel that reads what it has not written shows.
  std::vector<std::vector<float>> buffers;
  for (auto [number, type] : llvm::enumerate(kernel().getArgumentTypes())) {
    std::vector<float> buffer(arrays[number].data.size() + kGuard, kUntouched);
    bool integers = cast<RankedTensorType>(type).getElementType().isInteger(32);
    for (size_t i = 0; i < arrays[number].data.size(); ++i) {
      auto value = static_cast<float>(arrays[number].data[i]);
      auto whole = static_cast<int32_t>(integers ? arrays[number].data[i] : 0);
      std::memcpy(&buffer[i], integers ? static_cast<void *>(&whole) : &value, sizeof(float));
    }
    buffers.push_back(std::move(buffer));
  }
  std::vector<size_t> home, sizes;
  size_t arguments = buffers.size();
  for (auto [number, type] : llvm::enumerate(kernel().getResultTypes())) {
    sizes.push_back(static_cast<size_t>(cast<RankedTensorType>(type).getNumElements()));
    auto shared = inPlace.find(number);
    home.push_back(shared == inPlace.end() ? buffers.size() : shared->second);
    if (shared == inPlace.end()) {
      buffers.emplace_back(sizes.back() + kGuard, std::nanf(""));
      std::fill_n(buffers.back().begin() + static_cast<int64_t>(sizes.back()), kGuard, kUntouched);
    }
  }
  std::vector<void *> operands;
  for (size_t i = 0; i < arguments; ++i)
    operands.push_back(buffers[i].data());
  for (size_t place : home)
    operands.push_back(buffers[place].data());
  for (int64_t end = loaded->grid; end > 0; end -= itemsPerCall)
    runItems(loaded->kernel, loaded->function, operands, std::max<int64_t>(end - itemsPerCall, 0), end,
             aligned(loaded->scratch));
  for (const auto &buffer : buffers)
    for (size_t i = buffer.size() - kGuard; i < buffer.size(); ++i)
      EXPECT_EQ(buffer[i], kUntouched) << "something wrote past the end of an operand";
  for (auto [place, size] : llvm::zip(home, sizes))
    results.emplace_back(buffers[place].begin(), buffers[place].begin() + static_cast<int64_t>(size));
  return results;
}

void KernelHarness::check(double tolerance) {
  auto got = run();
  States states;
  auto expected = interpret(cast<FunctionOpInterface>(kernel().getOperation()), arrays, states);
  ASSERT_TRUE(succeeded(expected));
  ASSERT_EQ(got.size(), expected->size());
  for (size_t r = 0; r < got.size(); ++r) {
    bool integers = cast<RankedTensorType>(kernel().getResultTypes()[r]).getElementType().isInteger(32);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < got[r].size(); ++i) {
      double want = (*expected)[r].data[i], have = got[r][i];
      if (integers) {
        int32_t whole = 0;
        std::memcpy(&whole, &got[r][i], sizeof(whole));
        have = whole;
      }
      double error = std::abs(have - want) / (1 + std::abs(want));
      if (std::isnan(have) && std::isnan(want))
        error = 0;
      if (!(error <= worst))
        worst = error, at = i;
    }
    EXPECT_LE(worst, tolerance) << "result " << r << " element " << at << ": expected "
                                << (*expected)[r].data[at] << ", found " << got[r][at];
  }
}

double KernelHarness::time(int repeats) {
  run();
  std::vector<std::vector<float>> buffers;
  std::vector<void *> operands;
  for (const Array &array : arrays)
    buffers.emplace_back(array.data.begin(), array.data.end());
  for (auto [number, type] : llvm::enumerate(kernel().getArgumentTypes()))
    if (cast<RankedTensorType>(type).getElementType().isInteger(32))
      for (size_t i = 0; i < arrays[number].data.size(); ++i) {
        auto whole = static_cast<int32_t>(arrays[number].data[i]);
        std::memcpy(&buffers[number][i], &whole, sizeof(whole));
      }
  for (Type type : kernel().getResultTypes())
    buffers.emplace_back(static_cast<size_t>(cast<RankedTensorType>(type).getNumElements()));
  for (auto &buffer : buffers)
    operands.push_back(buffer.data());
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    runItems(loaded->kernel, loaded->function, operands, 0, loaded->grid, aligned(loaded->scratch));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

} // namespace weft::test
