//===- RowProgram.h - A fused body as groups of loops -----------*- C++ -*-===//
//
// A fused body, for one row: the ops taken apart into elementwise maps and
// reductions (`nodes`), and those put together into loops (`groups`). A map and
// the reductions that read it share one loop as long as nothing in it needs a
// reduction of the same loop.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "passes/Codegen/Emitter.h"

#include <functional>

namespace weft {

struct Axis {
  mlir::StringAttr name;
  int64_t size = 1;
  bool operator==(const Axis &) const = default;
};
using Axes = llvm::SmallVector<Axis, 4>;

int64_t countOf(llvm::ArrayRef<Axis> axes);

/// All axes of a tensor; those without names are called by number.
Axes allAxes(mlir::Type type);

/// Elements between neighbours along axis `name` of a row-major tensor, 0 if it has none.
int64_t strideOf(llvm::ArrayRef<Axis> axes, mlir::StringAttr name);

struct RowNode {
  enum class Kind : uint8_t { Operand, Map, Reduce, Rope };
  /// The element's values of the inputs, and its number in the whole tensor (asked for by dropout alone).
  using MapFn =
      std::function<mlir::Value(Emitter &, llvm::ArrayRef<mlir::Value>, llvm::function_ref<mlir::Value()>)>;

  Kind kind = Kind::Map;
  Axes axes; // of a row's part
  llvm::SmallVector<int, 4> inputs;
  MapFn map;
  int operand = -1;            // Operand: the kernel's argument
  int64_t component = -1;      // Operand: one element of it, whatever its shape
  mlir::RankedTensorType type; // Operand, Map: with the axes of rows
  bool largest = false;        // Reduce: the maximum, else the sum
  bool chunked = false;        // Reduce: over the rows of a chunk too
  RopeOp rope;
  int position = -1, table = -1; // Rope: arguments

  int group = -1;
  bool stored = false;               // read by other loops: from memory
  int64_t scratch = -1;              // its bytes in scratch, when not in a result
  llvm::SmallVector<int, 1> results; // result numbers that it is
};

struct RowGroup {
  Axes axes;
  llvm::SmallVector<int> nodes;
  bool rope = false;
};

struct RowProgram {
  llvm::SmallVector<mlir::StringAttr> rows;
  Axes rowAxes;
  int64_t rowCount = 1, chunks = 1;
  bool flat = false; // one loop over all elements
  Axes flatAxes;     // of it
  std::vector<RowNode> nodes;
  std::vector<RowGroup> groups;
  int64_t scratchBytes = 0;

  bool isRow(mlir::StringAttr name) const { return llvm::is_contained(rows, name); }
  Axes localAxes(mlir::Type type) const;
};

/// Takes a fused kernel apart. Errors, at the op: one that no row program has,
/// partial sums over other rows than the kernel's.
llvm::FailureOr<RowProgram> buildRowProgram(KernelOp kernel);

/// Can this op stand in a fused body?
bool isRowOp(mlir::Operation *op);

/// Fills the function's body.
void emitRowProgram(Emitter &e, const RowProgram &program, KernelOp kernel,
                    llvm::ArrayRef<mlir::Value> operands, mlir::Value begin, mlir::Value end,
                    mlir::Value scratch);

} // namespace weft
