//===- FoldedKernel.h - The tile kernel of a product and what follows it -*- C++ -*-===//
//
// An item is a tile of 128 x 256 of the result. One thread of warpgroup 0 copies 64
// columns of the summed axis at a time, four of them on their way; two warpgroups
// sum 64 rows each. What follows the product runs under the products of the next
// item: sums become pairs of bf16, 64 registers a thread, which are worked on 32
// columns at a time behind the first steps of the next item's loop. So tensor cores
// wait for no exponential and no store.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Gpu/AttendEmitter.h"
#include "passes/Codegen/Gpu/FoldedProduct.h"

namespace weft {

class FoldedKernel {
public:
  static constexpr int64_t kRows = 64, kGroups = 2;     // rows of a warpgroup; warpgroups
  static constexpr int64_t kTileRows = kRows * kGroups; // of an item
  static constexpr int64_t kTileColumns = 256;
  static constexpr int64_t kStep = 64;  // of the summed axis
  static constexpr int64_t kSlice = 32; // columns that are worked on at a time
  static constexpr int64_t kSlices = kTileColumns / kSlice;
  static constexpr int64_t kStages = 4;
  static constexpr int64_t kBand = 8; // rows of tiles that are worked on side by side

  FoldedKernel(mlir::Location loc, const FoldedProblem &problem);
  AttendTile build();

private:
  using Value = mlir::Value;
  using Values = tile::Values;

  struct Item {
    Value row, column; // first
  };
  int64_t steps() const { return foldedSize(p).steps; }
  int64_t items() const { return foldedSize(p).items; }
  void makeKernel(mlir::Location loc);
  Value addMap(int operand, int64_t inner, int64_t outer, int64_t leading, int64_t innerBox,
               int64_t outerBox);
  void allocate();
  void initialiseBarriers();
  Value operand(size_t number) { return body->getArgument(static_cast<unsigned>(number)); }
  Item itemOf(Value number);

  void produce();
  void loadStep(const Item &item, Value step, Value number);

  void consume();
  /// The products of one step, committed; `sums` null: from 0.
  Value multiply(Value number, Value sums);
  void release(Value number);
  /// Sums of an item whose first step is `number`; runs `work(0)` to `work(works - 1)` under its products.
  Value sumItem(Value number, int64_t works, llvm::function_ref<void(int64_t)> work);
  Value limitOf(Value item, Value row, Value column);
  mlir::Type sliceType() { return tile::FragType::get(e.b.getContext(), kSlice, e.bf16); }
  /// Inputs of a slice, as stored.
  Values readInputs(const Item &item, Value limit, int64_t slice);
  Value evaluate(weft::Emitter &rows, int node, mlir::ValueRange scalars, llvm::DenseMap<int, Value> &known);
  Values resultsOf(mlir::ValueRange given);
  void finishSlice(const Item &item, Value limit, int64_t slice, Value pairs, mlir::ValueRange inputs);
  /// Part `number` of what follows the sums `pairs` of item `at`, -1: of none.
  void follow(Value at, Value pairs, int64_t number, Values &inputs);

  const FoldedProblem p;
  tile::Emitter e;
  AttendTile result;
  mlir::Block *body = nullptr;
  Value mapA, mapB, tilesA, tilesB, barriers, group;
};

} // namespace weft
