//===- BlockEmulator.h - Thread blocks on the host --------------*- C++ -*-===//
//
// Runs a kernel that was written for the GPU on this machine: each thread of a
// block is a coroutine, the special registers, shuffles and barriers become calls
// of the host, blocks run one after another. Threads go on in an order drawn from
// a seed, so that what lacks a barrier gives another answer or none.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/Gpu.h"
#include "runtime/cpu/ObjectImage.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <memory>
#include <string>
#include <vector>

namespace weft::test {

class BlockEmulator {
public:
  /// Takes a kernel as lowerGpuKernel leaves it. `problem` is set when it can't be run.
  explicit BlockEmulator(GpuCode code);

  /// Runs all work items on `blocks` blocks. Answers what went wrong, or nothing.
  std::string run(const std::vector<void *> &operands, int64_t blocks, uint64_t seed);

  std::string problem;

private:
  struct Global {
    size_t offset = 0, bytes = 0;
    bool shared = false;
    std::vector<char> initial;
  };
  void rewrite(mlir::LLVM::LLVMFuncOp function);
  void placeGlobals(mlir::ModuleOp module, mlir::Value machine);

  GpuCode code;
  std::string object;
  rt::ObjectImage image;
  void *function = nullptr;
  std::vector<Global> globals;
  std::vector<char> memory, scratch;
  bool hasScratch = false;
};

} // namespace weft::test
