//===- Interpret.cpp - Functions, kernels and the choice of the op ---------===//
#include "dialects/Weft/Interpret/Frame.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

Array::Array(Type type, double fill) {
  llvm::append_range(shape, interp::shapeOf(type));
  data.assign(interp::product(shape), fill);
}

namespace interp {

/// The evaluate function of the op's class, from a list of all that there are.
template <typename... Ops> static LogicalResult dispatch(Operation *op, Frame &frame) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<Ops...>([&](auto typed) { return evaluate(typed, frame); })
      .Default([](Operation *other) -> LogicalResult {
        return other->emitError() << "no meaning in the interpreter: " << other->getName().getStringRef();
      });
}

static LogicalResult evaluateAny(Operation *op, Frame &frame) {
  return dispatch<ConstantOp, IntegersOp, UnaryOp, UnaryGradOp, BinaryOp, SumToOp, PartialSumOp, DropoutOp,
                  LayerNormOp, LayerNormGradOp, RmsNormOp, RmsNormGradOp, SoftmaxOp, SoftmaxGradOp, RopeOp,
                  ContractOp, ReshapeOp, ConvertOp, GatherOp, GatherGradOp, PositionOp, DocumentOp, AttendOp,
                  AttendGradQueryOp, AttendGradKeyValueOp, HeadStatisticsOp, PatternStatisticsOp, CacheUpdateOp, CrossEntropyOp,
                  CrossEntropyGradOp, LossHeadOp, LossHeadGradOp, NormOp, ClipScaleOp, AdamWOp, PolarOp,
                  AcceptOp, GetOp, SetOp, GetFlatOp, SetFlatOp, FusedOp, LaunchOp, TakeOp, PutOp, MixOp,
                  MixGradValueOp, MixGradPatternOp, MixTableOp, MixScaleOp, MixProductOp, MixDenseOp,
                  MixDenseGradValueOp>(op, frame);
}

static LogicalResult checkResultTypes(Operation *op) {
  for (Type type : op->getResultTypes()) {
    auto tensor = llvm::dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return op->emitError() << "the interpreter needs static sizes, found " << type;
  }
  return success();
}

static SmallVector<Array> copyOf(ValueRange values, const Frame &frame) {
  SmallVector<Array> arrays;
  for (Value value : values)
    arrays.push_back(frame[value]);
  return arrays;
}

FailureOr<SmallVector<Array>> runBlock(Block &block, ArrayRef<Array> inputs, const States &states,
                                       std::vector<std::pair<std::string, Array>> &assigned) {
  Operation *owner = block.getParentOp();
  if (inputs.size() != block.getNumArguments())
    return owner->emitError() << "expected " << block.getNumArguments() << " inputs, found " << inputs.size();
  Frame frame(states);
  for (auto [argument, input] : llvm::zip(block.getArguments(), inputs)) {
    auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getShape() != ArrayRef<int64_t>(input.shape))
      return owner->emitError() << "input " << argument.getArgNumber() << ": expected " << argument.getType()
                                << ", found another shape";
    frame.bind(argument, input);
  }
  llvm::DenseMap<Value, unsigned> uses; // uses to come, so that a value goes after its last
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>()) {
      assigned.insert(assigned.end(), std::make_move_iterator(frame.assigned.begin()),
                      std::make_move_iterator(frame.assigned.end()));
      return copyOf(op.getOperands(), frame);
    }
    if (failed(checkResultTypes(&op)) || failed(evaluateAny(&op, frame)))
      return failure();
    for (Value operand : op.getOperands()) {
      auto [left, fresh] = uses.try_emplace(operand, 0);
      if (fresh)
        left->second = std::distance(operand.use_begin(), operand.use_end());
      if (--left->second == 0)
        frame.release(operand);
    }
  }
  return owner->emitError() << "the block has no terminator";
}

LogicalResult evaluate(FusedOp op, Frame &frame) {
  auto results =
      runBlock(op.getBody().front(), copyOf(op.getOperands(), frame), frame.states, frame.assigned);
  if (failed(results))
    return failure();
  for (auto [result, array] : llvm::zip(op.getResults(), *results))
    frame.bind(result, std::move(array));
  return success();
}

LogicalResult evaluate(LaunchOp op, Frame &frame) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(op, op.getKernelAttr());
  if (!kernel)
    return op.emitError() << "no kernel is called @" << op.getKernel();
  auto results =
      runBlock(kernel.getBody().front(), copyOf(op.getOperands(), frame), frame.states, frame.assigned);
  if (failed(results))
    return failure();
  for (auto [result, array] : llvm::zip(op.getResults(), *results))
    frame.bind(result, std::move(array));
  return success();
}

} // namespace interp

FailureOr<SmallVector<Array>> interpret(FunctionOpInterface function, ArrayRef<Array> inputs,
                                        States &states) {
  Region &body = function.getFunctionBody();
  if (!body.hasOneBlock())
    return function->emitError() << "the interpreter needs a body of one block";
  std::vector<std::pair<std::string, Array>> assigned;
  auto results = interp::runBlock(body.front(), inputs, states, assigned);
  if (failed(results))
    return failure();
  for (auto &[name, array] : assigned)
    states.insert_or_assign(std::move(name), std::move(array));
  return results;
}

} // namespace weft
