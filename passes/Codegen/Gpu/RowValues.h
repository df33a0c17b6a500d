//===- RowValues.h - Values of one row in a thread's registers --*- C++ -*-===//
#pragma once

#include "passes/Codegen/Gpu/RowPlan.h"

#include <map>

namespace weft {

/// Values of nodes, asked for where they are needed and then kept. A node with a
/// layout's last axis is a vector of its lanes, any other a number.
class RowValues {
public:
  RowValues(Block &block, const RowProgram &program, const RowPlan &plan)
      : block(block), e(block.e), program(program), plan(plan) {
    placeSlots();
  }

  /// What does not depend on the row is computed before `op` from here on, once for
  /// all rows, by member `member` of its team.
  void hoistBefore(mlir::Operation *op, mlir::Value member);
  /// Moves on to row `row`; null: to none.
  void open(mlir::Value row);
  /// Starts to copy what row `ahead` reads to the thread's slots from `slots` on.
  void fetch(mlir::Value ahead, mlir::Value slots);
  /// The open row's slots.
  void setSlots(mlir::Value newSlots) { slots = newSlots; }
  /// A loop over elements: piece 0 of layout 0 starts at element `index`.
  /// (of row `newRow`, where there are rows).
  void openFlat(mlir::Value index, mlir::Value newRow = {});

  mlir::Value number(int node); // of one without axes
  mlir::Value at(int node, int layout, int64_t piece);
  void set(int node, int layout, int64_t piece, mlir::Value value) { known[{node, layout, piece}] = value; }
  void setNumber(int node, mlir::Value value) { numbers[node] = value; }

  void sum(int node);    // a sum (or maximum) of a row
  void rotate(int node); // RoPE
  void storeResult(int node, int result);

  /// Number of the first element of a piece, i64; outside the row the last whole vector's.
  mlir::Value first(int layout, int64_t piece);
  /// Null where every thread has an element.
  mlir::Value isInside(int layout, int64_t piece);
  /// Result `number`'s part of the row.
  mlir::Value resultOf(int64_t number, mlir::RankedTensorType type);
  int64_t alignmentOf(mlir::Type element, int64_t lanes, bool ofRow) const;

private:
  void placeSlots();
  mlir::Value vectorNumber(int64_t piece);
  mlir::Value operandAt(const RowNode &node, int layout, int64_t piece);
  mlir::Value loadOperand(const RowNode &node, int layout, int64_t piece);
  mlir::Value hoisted(llvm::function_ref<mlir::Value()> make);
  mlir::Value indexIn(const RowNode &node, int layout, int64_t piece);
  mlir::Value rowOffset(llvm::ArrayRef<Axis> axes);
  mlir::Value elementNumber(const RowNode &node, int layout, int64_t piece);
  mlir::Value apply(const RowNode &node, llvm::ArrayRef<mlir::Value> inputs, int layout, int64_t piece);
  bool isVector(const RowNode &node, int layout) const;
  mlir::Value slotOf(const RowNode &node, int layout, int64_t piece, mlir::Value start);
  mlir::Value moved(mlir::Value base, mlir::RankedTensorType type);
  Emitter lanesOf(int layout) const;

  Block &block;
  Emitter &e;
  const RowProgram &program;
  const RowPlan &plan;
  mlir::Value row, member, flatIndex, slots;
  std::map<std::tuple<int, int, int64_t>, mlir::Value> known;
  std::map<int, mlir::Value> numbers, bases;
  std::map<std::pair<int, int>, int64_t> slotNumbers; // operand, layout: number of its first part
  // Of all rows.
  mlir::Operation *before = nullptr;
  int64_t held = 0; // elements that stay in registers
  std::map<std::tuple<int, int, int64_t>, mlir::Value> constant;
  std::map<std::pair<int, int64_t>, mlir::Value> starts, masks;
};

} // namespace weft
