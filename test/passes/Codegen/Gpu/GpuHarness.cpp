//===- GpuHarness.cpp -----------------------------------------------------===//
#include "test/passes/Codegen/Gpu/GpuHarness.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

using namespace mlir;

namespace weft::test {

GpuHarness::GpuHarness(const std::string &text) {
  DialectRegistry registry;
  registerWeftDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    ADD_FAILURE() << "no kernel in\n" << text;
}

void GpuHarness::storeHalves(const std::vector<unsigned> &ofArguments,
                             const std::vector<unsigned> &ofResults) {
  KernelOp op = kernel();
  Block &block = op.getBody().front();
  auto narrow = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return RankedTensorType::get(tensor.getShape(), BFloat16Type::get(&context), tensor.getEncoding());
  };
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  for (unsigned number : ofArguments) {
    BlockArgument argument = block.getArgument(number);
    Type wide = argument.getType();
    argument.setType(narrow(wide));
    auto convert = ConvertOp::create(b, op.getLoc(), wide, argument);
    argument.replaceAllUsesExcept(convert.getResult(), convert);
  }
  b.setInsertionPoint(block.getTerminator());
  for (unsigned number : ofResults) {
    OpOperand &yielded = block.getTerminator()->getOpOperand(number);
    yielded.set(ConvertOp::create(b, op.getLoc(), narrow(yielded.get().getType()), yielded.get()));
  }
  op.setFunctionType(
      FunctionType::get(&context, block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
}

KernelOp GpuHarness::kernel() { return *module->getOps<KernelOp>().begin(); }

static Type elementOf(Type type) { return cast<RankedTensorType>(type).getElementType(); }

/// An element as it is stored.
static void write(char *to, double value, Type element) {
  if (element.isInteger(32)) {
    auto whole = static_cast<int32_t>(value);
    std::memcpy(to, &whole, sizeof(whole));
    return;
  }
  auto number = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  if (element.isBF16()) {
    auto half = static_cast<uint16_t>(bits >> 16);
    std::memcpy(to, &half, sizeof(half));
  } else {
    std::memcpy(to, &bits, sizeof(bits));
  }
}

static double read(const char *from, Type element) {
  uint32_t bits = 0;
  if (element.isBF16()) {
    uint16_t half = 0;
    std::memcpy(&half, from, sizeof(half));
    bits = uint32_t{half} << 16;
  } else {
    std::memcpy(&bits, from, sizeof(bits));
  }
  if (element.isInteger(32))
    return static_cast<int32_t>(bits);
  float number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

static size_t sizeOf(Type element) { return element.isBF16() ? 2 : 4; }

void GpuHarness::prepare() {
  if (emulator)
    return;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (auto [number, type] : llvm::enumerate(kernel().getArgumentTypes())) {
    Array array(type);
    auto rule = fill.find(number);
    for (size_t i = 0; i < array.data.size(); ++i) {
      char stored[4] = {};
      write(stored, rule == fill.end() ? normal(random) : rule->second(number, i), elementOf(type));
      array.data[i] = read(stored, elementOf(type));
    }
    arrays.push_back(std::move(array));
  }
  auto code = buildGpuKernel(kernel());
  ASSERT_TRUE(succeeded(code));
  EXPECT_EQ(code->slow.empty(), !maySlow) << code->slow;
  EXPECT_EQ(code->items, gpuGridOf(kernel()));
  ASSERT_TRUE(succeeded(lowerGpuKernel(*code)));
  emulator = std::make_unique<BlockEmulator>(std::move(*code));
  EXPECT_EQ(emulator->problem, "");
}

std::vector<std::vector<double>> GpuHarness::run(int64_t blocks, uint64_t seed) {
  prepare();
  if (!emulator || !emulator->problem.empty())
    return {};
  // What lies around operands must stay as it is; results start as NaN.
  constexpr size_t kGuard = 64;
  std::vector<std::vector<char>> buffers;
  std::vector<size_t> home;
  auto add = [&](size_t bytes) {
    std::vector<char> buffer(bytes + 2 * kGuard + 16, '\x7b');
    buffers.push_back(std::move(buffer));
  };
  auto startOf = [&](size_t number) {
    auto address = reinterpret_cast<uintptr_t>(buffers[number].data()) + kGuard;
    return reinterpret_cast<char *>(address / 16 * 16 + misplaced);
  };
  for (auto [number, type] : llvm::enumerate(kernel().getArgumentTypes())) {
    size_t step = sizeOf(elementOf(type));
    add(arrays[number].data.size() * step);
    for (size_t i = 0; i < arrays[number].data.size(); ++i)
      write(startOf(number) + i * step, arrays[number].data[i], elementOf(type));
    home.push_back(number);
  }
  size_t arguments = buffers.size();
  for (auto [number, type] : llvm::enumerate(kernel().getResultTypes())) {
    auto count = static_cast<size_t>(cast<RankedTensorType>(type).getNumElements());
    auto shared = inPlace.find(number);
    if (shared == inPlace.end()) {
      add(count * sizeOf(elementOf(type)));
      std::memset(startOf(buffers.size() - 1), 0xFF, count * sizeOf(elementOf(type)));
    }
    home.push_back(shared == inPlace.end() ? buffers.size() - 1 : shared->second);
  }
  std::vector<void *> operands;
  for (size_t place : home)
    operands.push_back(startOf(place));
  EXPECT_EQ(emulator->run(operands, blocks, seed), "");
  std::vector<std::vector<double>> results;
  for (auto [number, type] : llvm::enumerate(kernel().getResultTypes())) {
    auto count = static_cast<size_t>(cast<RankedTensorType>(type).getNumElements());
    size_t step = sizeOf(elementOf(type)), place = home[arguments + number];
    for (const char *byte = startOf(place) + count * step; byte < startOf(place) + count * step + 16; ++byte)
      EXPECT_EQ(*byte, '\x7b') << "something wrote past the end of result " << number;
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i)
      values.push_back(read(startOf(place) + i * step, elementOf(type)));
    results.push_back(std::move(values));
  }
  return results;
}

void GpuHarness::check(double tolerance) {
  auto got = run(1, 1);
  States states;
  ASSERT_EQ(got.size(), kernel().getResultTypes().size());
  auto expected = interpret(cast<FunctionOpInterface>(kernel().getOperation()), arrays, states);
  ASSERT_TRUE(succeeded(expected));
  for (size_t r = 0; r < got.size(); ++r) {
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < got[r].size(); ++i) {
      double want = (*expected)[r].data[i], error = std::abs(got[r][i] - want) / (1 + std::abs(want));
      if (std::isnan(got[r][i]) && std::isnan(want))
        error = 0;
      if (!(error <= worst))
        worst = error, at = i;
    }
    EXPECT_LE(worst, tolerance) << "result " << r << " element " << at << ": expected "
                                << (*expected)[r].data[at] << ", found " << got[r][at];
  }
  for (int64_t blocks : {5}) {
    auto again = run(blocks, static_cast<uint64_t>(blocks));
    for (size_t r = 0; r < got.size(); ++r)
      for (size_t i = 0; i < got[r].size(); ++i)
        ASSERT_EQ(std::memcmp(&got[r][i], &again[r][i], sizeof(double)), 0)
            << "result " << r << " element " << i << " differs on " << blocks << " blocks: " << got[r][i]
            << " and " << again[r][i];
  }
}

} // namespace weft::test
