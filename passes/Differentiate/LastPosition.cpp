//===- LastPosition.cpp - Only what the last position needs ----------------===//
//
// Outputs are taken at the last position, and the taking goes up: an op whose
// results are only taken from works on slices of its operands instead. It ends
// where a value is needed whole, which is at the keys and values of the last
// attention: the last layer has one query a row, and what follows it is one row.
//
//===----------------------------------------------------------------------===//
#include "passes/Differentiate/Programs.h"
#include "passes/Differentiate/Take.h"

using namespace mlir;

namespace weft {
namespace {

class LastPosition {
public:
  LastPosition(func::FuncOp program, StringAttr pos, int64_t positions)
      : program(program), pos(pos), last(positions - 1) {
    slices.axes = {pos};
    slices.sizes = {positions};
    slices.indices = {last};
    slices.axis = pos;
  }

  void run() {
    Operation *terminator = bodyOf(program).getTerminator();
    OpBuilder builder(terminator);
    for (OpOperand &result : terminator->getOpOperands())
      if (axisIndex(result.get().getType(), pos) >= 0)
        result.set(takeHere(builder, result.get(), slices));
    // Users stand behind what they use: one walk from the end meets every taking
    // before the op that it can pass.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(bodyOf(program))))
      if (onlyTaken(op))
        passUp(op);
    eraseDeadOps(bodyOf(program));
    program.setFunctionType(FunctionType::get(program.getContext(), bodyOf(program).getArgumentTypes(),
                                              terminator->getOperandTypes()));
  }

private:
  /// Whether the results of `op` that are used are used by takings alone.
  bool onlyTaken(Operation &op) const {
    return !op.use_empty() && llvm::all_of(op.getUsers(), [&](Operation *user) {
      auto take = dyn_cast<TakeOp>(user);
      return take && take.getAxisAttr() == pos && take.getIndices() == ArrayRef<int64_t>(last);
    });
  }

  void passUp(Operation &op) {
    OpBuilder builder(&op);
    IRMapping mapping;
    Value place;
    if (auto attend = dyn_cast<AttendOp>(op)) {
      if (attend.getOffset())
        return;
      mapping.map(attend.getQ(), takeHere(builder, attend.getQ(), slices));
      if (Value start = attend.getDocStart())
        mapping.map(start, takeHere(builder, start, slices));
      place = lastPlace(builder, op.getLoc());
    } else if (worksBySlices(&op, slices)) {
      for (Value operand : op.getOperands())
        if (axisIndex(operand.getType(), pos) >= 0)
          mapping.map(operand, takeHere(builder, operand, slices));
    } else {
      return;
    }
    Operation *one = builder.clone(op, mapping);
    if (auto attend = dyn_cast<AttendOp>(one))
      attend.getOffsetMutable().assign(place);
    for (auto [whole, taken] : llvm::zip(op.getResults(), one->getResults())) {
      taken.setType(slices.of(cast<RankedTensorType>(whole.getType())));
      for (Operation *user : llvm::make_early_inc_range(whole.getUsers())) {
        user->replaceAllUsesWith(ValueRange(taken));
        user->erase();
      }
    }
    op.erase(); // a use less of what it was made of
  }

  Value lastPlace(OpBuilder &builder, Location loc) {
    return IntegersOp::create(builder, loc, RankedTensorType::get({1}, builder.getI32Type()),
                              builder.getDenseI32ArrayAttr(static_cast<int32_t>(last)));
  }

  func::FuncOp program;
  StringAttr pos;
  int64_t last;
  Slices slices;
};

} // namespace

LogicalResult keepLastPosition(func::FuncOp program) {
  Value tokens = argumentCalled(program, "tokens");
  if (!tokens || axesOf(tokens).size() != 2)
    return program.emitError("the last position needs an input 'tokens' over batch and positions");
  auto type = cast<RankedTensorType>(tokens.getType());
  LastPosition(program, axesOf(tokens)[1], type.getDimSize(1)).run();
  return success();
}

} // namespace weft
