//===- PassTrail.h - What each pass did, while it happens --------*- C++ -*-===//
#pragma once

#include "tools/weft/inspect/IrTexts.h"

#include "frontend/Source.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassInstrumentation.h"

#include <chrono>
#include <string>
#include <vector>

namespace weft::inspect {

/// What the hooks of one compilation write down. It outlives the pass manager.
struct Trail {
  explicit Trail(const lang::SourceFiles &sources) : sources(sources) {}

  struct Entry {
    std::string name;
    double milliseconds = 0;
    bool changed = false;
    TextChange change;
    rt::OrderedJson traffic; // bytes by program
  };

  /// A place of the text as a number of `texts`: {"scopes": [...], "at": [[file, line, column]...]}.
  int32_t placeOf(mlir::Location loc);
  void capture(mlir::ModuleOp module, const std::string &name, double milliseconds);
  void countLines(mlir::ModuleOp programs);

  const lang::SourceFiles &sources;
  std::vector<Entry> entries;
  IrTexts texts;
  rt::OrderedJson ledger = rt::OrderedJson::array(); // of fusions
  rt::OrderedJson flops = rt::OrderedJson::object(); // by program and layer
  rt::OrderedJson lines = rt::OrderedJson::array();  // [[file, line, FLOPs, ops]...] of the first program

private:
  int32_t makePlace(mlir::Location loc);
  int32_t fileOf(mlir::FileLineColLoc place) const;
  std::string last;
  llvm::DenseMap<mlir::Location, int32_t> known;
};

/// Fills `trail`. Printing does not count to a pass's time.
class TrailInstrumentation : public mlir::PassInstrumentation {
public:
  explicit TrailInstrumentation(Trail &trail) : trail(trail) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  Trail &trail;
  std::chrono::steady_clock::time_point start;
};

/// Bytes of operands and results of every op in the body of each function and
/// program, each op by itself: what would go through memory if that were a kernel.
rt::OrderedJson trafficOf(mlir::ModuleOp module);

/// One entry a kernel of several ops and program that launches it: {"program",
/// "kernel", "calls", "ops", "apart", "fused", "scopes", "place"}. `apart`: bytes of
/// operands and results of its ops one by one; `fused`: of the kernel's own.
rt::OrderedJson ledgerOf(mlir::ModuleOp kernels, Trail &trail);

/// {program: [[layer, FLOPs of products, others]...]}.
rt::OrderedJson flopsOf(mlir::ModuleOp programs);

/// What a kernel computes, as ops people know; neighbours of one kind once.
std::vector<std::string> opsOf(mlir::Region &body);

/// Bytes of the tensors among `types`, where their sizes are known.
double bytesIn(mlir::TypeRange types);

} // namespace weft::inspect
