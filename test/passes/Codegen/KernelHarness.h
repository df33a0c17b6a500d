//===- KernelHarness.h - Compiled kernels against float64 loops -*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"
#include "passes/Codegen/Codegen.h"
#include "runtime/cpu/ObjectImage.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace weft::test {

/// One kernel from text, compiled for the host, and its judge.
class KernelHarness {
public:
  /// Argument number and its array's element number to a value; floats without
  /// one are standard normal numbers.
  using Fill = std::function<double(size_t, size_t)>;
  std::map<size_t, Fill> fill;
  /// Result number to the argument whose storage it takes.
  std::map<size_t, size_t> inPlace;
  /// A call covers this many work items; the last ones come first.
  int64_t itemsPerCall = 3;
  int vectorBits = 0; // 0: the host's

  explicit KernelHarness(const std::string &text);
  ~KernelHarness();

  /// Results of the machine code, by element.
  std::vector<std::vector<float>> run();
  /// Compares with the interpreter: |got - expected| <= tolerance (1 + |expected|).
  void check(double tolerance);
  /// Seconds of one run over all items on this thread.
  double time(int repeats);

  KernelOp kernel();
  const std::vector<Array> &inputs();
  /// Elements past each operand that must stay as they were.
  static constexpr size_t kGuard = 64;

private:
  struct Loaded;
  void load();
  void makeInputs();

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Array> arrays;
  std::unique_ptr<Loaded> loaded;
};

/// tensor<AxBxf32, #weft.axes<a, b>> from "a:3 b:4".
std::string tensor(const std::string &axes, const std::string &element = "f32");

/// The window without a bound.
constexpr double kFull = 2147483647;

/// What kernels over positions share: rows, and where documents start in each.
struct DocumentRows {
  int64_t batch = 1, length = 8;
  std::vector<double> starts{0};

  /// Where the document of position `i`, counted over all rows, starts in its row.
  double start(size_t i) const {
    double found = 0;
    for (double at : starts)
      if (at <= static_cast<double>(i % static_cast<size_t>(length)))
        found = at;
    return found;
  }

protected:
  /// The data axes, in front of a tensor's own.
  std::string front() const {
    return "batch:" + std::to_string(batch) + " pos:" + std::to_string(length) + " ";
  }
};

} // namespace weft::test
