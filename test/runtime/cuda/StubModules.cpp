//===- StubModules.cpp - Modules and kernels of the stub ------------------===//
#include "test/runtime/cuda/StubDriver.h"

#include <algorithm>
#include <cstring>
#include <regex>

using namespace weft::rt::cuda;

namespace {

/// Entries of PTX text with the sizes of their parameters.
void readPtx(const std::string &text, StubModule &module) {
  static const std::regex entry(R"(\.entry\s+(\w+)\s*\(([^)]*)\)\s*(?:\.reqntid\s+(\d+))?)");
  static const std::regex parameter(
      R"(\.param\s+(?:\.align\s+\d+\s+)?\.([busf]\d+)\s+(?:\.ptr\s+(?:\.[a-z]+\s+)?(?:\.align\s+\d+\s+)?)?\w+(?:\[(\d+)\])?)");
  for (std::sregex_iterator it(text.begin(), text.end(), entry), end; it != end; ++it) {
    auto kernel = std::make_unique<StubKernel>();
    kernel->name = (*it)[1];
    std::string list = (*it)[2];
    if ((*it)[3].matched) // it was compiled for them
      kernel->mostThreads = std::max(kernel->mostThreads, std::stoi((*it)[3]));
    for (std::sregex_iterator p(list.begin(), list.end(), parameter); p != end; ++p) {
      size_t bytes = std::stoul((*p)[1].str().substr(1)) / 8;
      kernel->parameters.push_back((*p)[2].matched ? bytes * std::stoul((*p)[2]) : bytes);
    }
    module.kernels.emplace(kernel->name, std::move(kernel));
  }
}

Result load(Module *module, const char *image) {
  auto made = std::make_unique<StubModule>();
  readPtx(image, *made);
  ++stub().live;
  *module = reinterpret_cast<Module>(made.release());
  return kSuccess;
}

/// `a`, `b`, words, `flag` (runtime/cuda/Tune.cpp).
void compare(const std::vector<std::string> &values) {
  uint64_t numbers[4] = {};
  for (size_t i = 0; i < 4; ++i)
    std::memcpy(&numbers[i], values[i].data(), sizeof(numbers[i]));
  const void *a = reinterpret_cast<const void *>(numbers[0]), *b = reinterpret_cast<const void *>(numbers[1]);
  if (std::memcmp(a, b, 4 * numbers[2]) != 0)
    *reinterpret_cast<uint32_t *>(numbers[3]) = 1;
}

Result runKernel(const StubKernel &kernel, unsigned blocks, const std::string &line,
                 const std::vector<std::string> &values) {
  stub().log += line;
  DevicePointer first = 0;
  if (!values.empty() && values[0].size() == sizeof(first))
    std::memcpy(&first, values[0].data(), sizeof(first));
  if (kernel.name == "weft_differ")
    compare(values);
  if (kernel.name == "crash")
    return kIllegalAddress;
  if (kernel.name == "overrun")
    *reinterpret_cast<unsigned char *>(first - 3) = 7;
  if (kernel.name == "count") {
    if (!stub().owns(first, 4))
      return kIllegalAddress;
    *reinterpret_cast<uint32_t *>(first) += blocks;
  }
  return kSuccess;
}

} // namespace

extern "C" {

Result cuModuleLoadData(Module *module, const void *image) {
  WEFT_ENTER("cuModuleLoadData");
  return load(module, static_cast<const char *>(image));
}
Result cuModuleLoadDataEx(Module *module, const void *image, unsigned count, JitOption *options,
                          void **values) {
  WEFT_ENTER("cuModuleLoadDataEx");
  const auto *text = static_cast<const char *>(image);
  for (unsigned i = 0; i < count; ++i)
    if (const char *fault = std::strstr(text, "syntax error"); fault && options[i] == kJitErrorLog)
      std::strcpy(static_cast<char *>(values[i]),
                  "ptxas application ptx input, line 3; error: syntax error\n");
  return std::strstr(text, "syntax error") ? kInvalidPtx : load(module, text);
}
Result cuModuleUnload(Module module) {
  --stub().live;
  delete reinterpret_cast<StubModule *>(module);
  return kSuccess;
}
Result cuModuleGetFunction(Function *function, Module module, const char *name) {
  WEFT_ENTER("cuModuleGetFunction");
  auto &kernels = reinterpret_cast<StubModule *>(module)->kernels;
  auto found = kernels.find(name);
  if (found == kernels.end())
    return kNotFound;
  *function = reinterpret_cast<Function>(found->second.get());
  return kSuccess;
}
Result cuFuncGetAttribute(int *value, int attribute, Function function) {
  *value = attribute == kFunctionMaxThreads  ? reinterpret_cast<StubKernel *>(function)->mostThreads
           : attribute == kFunctionRegisters ? 128
                                             : 0;
  return kSuccess;
}
Result cuFuncSetAttribute(Function, int, int) {
  WEFT_ENTER("cuFuncSetAttribute");
  return kSuccess;
}
Result cuFuncLoad(Function) { return kSuccess; }
Result cuFuncGetParamInfo(Function function, size_t number, size_t *, size_t *bytes) {
  const auto &parameters = reinterpret_cast<StubKernel *>(function)->parameters;
  if (number >= parameters.size())
    return kInvalidValue;
  *bytes = parameters[number];
  return kSuccess;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function, int, size_t) {
  *blocks = 2;
  return kSuccess;
}
Result cuLaunchKernel(Function function, unsigned gridX, unsigned, unsigned, unsigned blockX, unsigned,
                      unsigned, unsigned sharedBytes, Stream, void **parameters, void **) {
  WEFT_ENTER("cuLaunchKernel");
  const auto &kernel = *reinterpret_cast<StubKernel *>(function);
  std::string line = "launch " + kernel.name + " " + std::to_string(gridX) + " x " + std::to_string(blockX) +
                     ", " + std::to_string(sharedBytes) + " bytes:";
  std::vector<std::string> values;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    values.emplace_back(static_cast<const char *>(parameters[i]), kernel.parameters[i]);
    DevicePointer address = 0;
    std::memcpy(&address, values[i].data(), sizeof(address));
    line += values[i].size() == sizeof(address) ? hex(address) : " map(" + hex(address) + " )";
  }
  line += "\n";
  return stub().submit([=, &kernel] { return runKernel(kernel, gridX, line, values); });
}
/// The stub's own format: base, type, rank, swizzle, sizes and box's first.
Result cuTensorMapEncodeTiled(EncodedTensorMap *map, int type, uint32_t rank, void *base,
                              const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,
                              const uint32_t *, int, int swizzle, int, int) {
  WEFT_ENTER("cuTensorMapEncodeTiled");
  *map = {{reinterpret_cast<uintptr_t>(base), static_cast<uint64_t>(type), rank,
           static_cast<uint64_t>(swizzle), sizes[0], rank > 1 ? strides[0] : 0, box[0]}};
  return kSuccess;
}
}
