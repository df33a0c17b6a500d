//===- Verify.h - Does a pass change what a module computes? -----*- C++ -*-===//
//
// `weft verify --each-pass`: the module is run by the float64 interpreter, on
// numbers drawn by name, before and after each pass.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Verify/Observe.h"

#include "mlir/Pass/PassManager.h"

namespace weft {

struct VerifyOptions {
  double tolerance = 1e-9;         // of the greatest number of a tensor
  double gradientTolerance = 1e-5; // of central differences
  uint64_t seed = 1;
  /// Passes, by argument, that change numbers on purpose.
  std::vector<std::string> lossy{"weft-freeze-heads"};
  /// Passes that round what is stored, and how far that may go instead of `tolerance`.
  std::map<std::string, double> rounding;
};

/// Where two runs differ most.
struct Difference {
  std::string program, result; // a result's port, or `state @NAME`
  double error = 0;            // relative; infinite where one has NaN or another shape
  std::string place;           // [index], or what is wrong
};

struct PassVerdict {
  enum class Kind { Same, Changed, Lossy, Idle };
  std::string pass;
  Kind kind = Kind::Same;
  int64_t compared = 0; // tensors
  Difference worst;

  /// One line: `pass: 12 tensors, largest error 2.1e-13`, or what it changed.
  std::string text() const;
};

struct VerifyReport {
  std::vector<PassVerdict> passes;
  /// The first pass that changed the function, or null.
  const PassVerdict *firstFault() const;
};

/// The largest difference over programs, results and state entries that both
/// have. Where `@forward` became programs, its loss and outputs are compared
/// with theirs (those without dropout). `compared` counts tensors.
/// A program that ran before and fails after differs infinitely, with its error.
Difference compare(const Observation &before, const Observation &after, int64_t &compared);

/// Gradients that @micro adds to `grad/PATH`, against central differences of its
/// loss along a random direction of each parameter.
Difference checkGradients(mlir::ModuleOp module, const Inputs &inputs, int64_t &compared);

/// Watches every module pass of `manager`; `report` is filled while it runs and
/// must outlive the run. After `differentiate` gradients are checked by
/// checkGradients, since nothing was there to compare them with.
void verifyEachPass(mlir::PassManager &manager, VerifyReport &report, VerifyOptions options = {});

/// A pass (argument `plant-FAULT`) that breaks a module on purpose, so that a
/// test can see that it is found; null when `fault` is no name of one.
///   dropped-residual     one add becomes its first operand
///   swapped-heads        heads 0 and 1 of an attention's output change places
///   window-off-by-one    each window loses a key (a window of 1 gains one)
///   wrong-kv-group       key heads 0 and 1 change places, values do not
///   overlapping-buffers  two live buffers of a planned schedule share bytes
/// The first four belong after unroll-layers, the last after plan-memory. The
/// pass fails where the module has nothing to break.
std::unique_ptr<mlir::Pass> createPlantPass(llvm::StringRef fault);

} // namespace weft
