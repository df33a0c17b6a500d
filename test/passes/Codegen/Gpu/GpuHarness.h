//===- GpuHarness.h - Kernels for the GPU against float64 loops -*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"
#include "test/passes/Codegen/Gpu/BlockEmulator.h"

#include "mlir/IR/MLIRContext.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weft::test {

/// One kernel from text, run as thread blocks on the host, and its judge.
class GpuHarness {
public:
  /// Argument number and its element's number to a value; floats without one are
  /// standard normal numbers, rounded to how the argument is stored.
  using Fill = std::function<double(size_t, size_t)>;
  std::map<size_t, Fill> fill;
  /// Result number to the argument whose storage it takes.
  std::map<size_t, size_t> inPlace;
  /// Bytes that operands start behind a multiple of 16.
  size_t misplaced = 0;
  bool maySlow = false; // the slow path is what is looked for

  explicit GpuHarness(const std::string &text);

  KernelOp kernel();
  /// Stores these arguments and results as bf16, with converts inside the kernel.
  void storeHalves(const std::vector<unsigned> &ofArguments, const std::vector<unsigned> &ofResults);
  /// Results by element, from `blocks` blocks.
  std::vector<std::vector<double>> run(int64_t blocks, uint64_t seed);
  /// Compares with the interpreter, |got - expected| <= tolerance (1 + |expected|),
  /// and runs on 5 blocks in another order, which must give the same bits.
  void check(double tolerance);

private:
  void prepare();

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Array> arrays;
  std::unique_ptr<BlockEmulator> emulator;
};

} // namespace weft::test
