//===- Frame.h - Values of one run of a region -------------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Axes.h"

#include <memory>

namespace weft::interp {

/// Arrays of the values of one region, and what the run will assign to state.
class Frame {
public:
  explicit Frame(const States &states) : states(states) {}

  void bind(mlir::Value value, Array array) { values[value] = std::make_unique<Array>(std::move(array)); }
  const Array &operator[](mlir::Value value) const { return *values.find(value)->second; }
  /// Null for an optional operand that is not there.
  const Array *find(mlir::Value value) const { return value ? &(*this)[value] : nullptr; }
  /// The first element: scalars.
  double scalar(mlir::Value value) const { return (*this)[value].data.front(); }
  /// A new array for a result, of its type; the reference stays good.
  Array &make(mlir::Value result, double fill = 0) {
    bind(result, Array(result.getType(), fill));
    return *values.find(result)->second;
  }
  void release(mlir::Value value) { values.erase(value); }

  /// Contents as they were when the program started.
  const States &states;
  /// Assignments in order, for the end of the program.
  std::vector<std::pair<std::string, Array>> assigned;

private:
  llvm::DenseMap<mlir::Value, std::unique_ptr<Array>> values;
};

// One function an op; the families are in the files named here.

// Elementwise.cpp
mlir::LogicalResult evaluate(ConstantOp op, Frame &frame);
mlir::LogicalResult evaluate(IntegersOp op, Frame &frame);
mlir::LogicalResult evaluate(UnaryOp op, Frame &frame);
mlir::LogicalResult evaluate(UnaryGradOp op, Frame &frame);
mlir::LogicalResult evaluate(BinaryOp op, Frame &frame);
mlir::LogicalResult evaluate(SumToOp op, Frame &frame);
mlir::LogicalResult evaluate(PartialSumOp op, Frame &frame);
mlir::LogicalResult evaluate(DropoutOp op, Frame &frame);
mlir::LogicalResult evaluate(ConvertOp op, Frame &frame);

// Rows.cpp
mlir::LogicalResult evaluate(LayerNormOp op, Frame &frame);
mlir::LogicalResult evaluate(LayerNormGradOp op, Frame &frame);
mlir::LogicalResult evaluate(RmsNormOp op, Frame &frame);
mlir::LogicalResult evaluate(RmsNormGradOp op, Frame &frame);
mlir::LogicalResult evaluate(SoftmaxOp op, Frame &frame);
mlir::LogicalResult evaluate(SoftmaxGradOp op, Frame &frame);
mlir::LogicalResult evaluate(RopeOp op, Frame &frame);

// Products.cpp
mlir::LogicalResult evaluate(ContractOp op, Frame &frame);
mlir::LogicalResult evaluate(ReshapeOp op, Frame &frame);
mlir::LogicalResult evaluate(GatherOp op, Frame &frame);
mlir::LogicalResult evaluate(GatherGradOp op, Frame &frame);
mlir::LogicalResult evaluate(PositionOp op, Frame &frame);
mlir::LogicalResult evaluate(DocumentOp op, Frame &frame);

// Attention.cpp
mlir::LogicalResult evaluate(AttendOp op, Frame &frame);
mlir::LogicalResult evaluate(AttendGradQueryOp op, Frame &frame);
mlir::LogicalResult evaluate(AttendGradKeyValueOp op, Frame &frame);
mlir::LogicalResult evaluate(HeadStatisticsOp op, Frame &frame);
mlir::LogicalResult evaluate(PatternStatisticsOp op, Frame &frame);
mlir::LogicalResult evaluate(CacheUpdateOp op, Frame &frame);

// Patterns.cpp
mlir::LogicalResult evaluate(TakeOp op, Frame &frame);
mlir::LogicalResult evaluate(PutOp op, Frame &frame);
mlir::LogicalResult evaluate(MixOp op, Frame &frame);
mlir::LogicalResult evaluate(MixGradValueOp op, Frame &frame);
mlir::LogicalResult evaluate(MixGradPatternOp op, Frame &frame);
mlir::LogicalResult evaluate(MixTableOp op, Frame &frame);
/// What weft.mix asks of `windows`: errors at `op`.
mlir::LogicalResult checkWindows(llvm::ArrayRef<double> windows, int64_t heads, mlir::Operation *op);
mlir::LogicalResult evaluate(MixScaleOp op, Frame &frame);
mlir::LogicalResult evaluate(MixProductOp op, Frame &frame);
mlir::LogicalResult evaluate(MixDenseOp op, Frame &frame);
mlir::LogicalResult evaluate(MixDenseGradValueOp op, Frame &frame);

// Loss.cpp
mlir::LogicalResult evaluate(CrossEntropyOp op, Frame &frame);
mlir::LogicalResult evaluate(CrossEntropyGradOp op, Frame &frame);
mlir::LogicalResult evaluate(LossHeadOp op, Frame &frame);
mlir::LogicalResult evaluate(LossHeadGradOp op, Frame &frame);

// Optimiser.cpp
mlir::LogicalResult evaluate(NormOp op, Frame &frame);
mlir::LogicalResult evaluate(ClipScaleOp op, Frame &frame);
mlir::LogicalResult evaluate(AdamWOp op, Frame &frame);
mlir::LogicalResult evaluate(PolarOp op, Frame &frame);
mlir::LogicalResult evaluate(AcceptOp op, Frame &frame);

// State.cpp
mlir::LogicalResult evaluate(GetOp op, Frame &frame);
mlir::LogicalResult evaluate(SetOp op, Frame &frame);
mlir::LogicalResult evaluate(GetFlatOp op, Frame &frame);
mlir::LogicalResult evaluate(SetFlatOp op, Frame &frame);

// Interpret.cpp
mlir::LogicalResult evaluate(FusedOp op, Frame &frame);
mlir::LogicalResult evaluate(LaunchOp op, Frame &frame);

/// Runs the ops of `block` on `inputs`; the answer is what its terminator gives.
/// Assignments to state are appended to `assigned`.
mlir::FailureOr<llvm::SmallVector<Array>> runBlock(mlir::Block &block, llvm::ArrayRef<Array> inputs,
                                                   const States &states,
                                                   std::vector<std::pair<std::string, Array>> &assigned);

} // namespace weft::interp
