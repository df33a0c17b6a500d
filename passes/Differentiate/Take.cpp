//===- Take.cpp - Taking slices before they are computed -------------------===//
#include "passes/Differentiate/Take.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

ArrayAttr Slices::axesAttr() const {
  return ArrayAttr::get(axis.getContext(), SmallVector<Attribute>(axes.begin(), axes.end()));
}

Slices Slices::along(RankedTensorType type) const {
  Slices part;
  part.axis = axis;
  SmallVector<bool> has;
  for (auto [name, size] : llvm::zip(axes, sizes)) {
    has.push_back(axisIndex(type, name) >= 0);
    if (has.back()) {
      part.axes.push_back(name);
      part.sizes.push_back(size);
    }
  }
  for (int64_t index : indices) {
    int64_t place = 0, stride = 1;
    for (size_t n = axes.size(); n-- > 0; index /= sizes[n])
      if (has[n]) {
        place += index % sizes[n] * stride;
        stride *= sizes[n];
      }
    part.indices.push_back(place);
  }
  return part;
}

bool Slices::fit(RankedTensorType type) const {
  int64_t last = -1;
  for (StringAttr name : axes) {
    int64_t at = axisIndex(type, name);
    if (at >= 0 && last >= 0 && at != last + 1)
      return false;
    last = at >= 0 ? at : last;
  }
  return llvm::is_contained(axes, axis) || axisIndex(type, axis) < 0;
}

bool Slices::areAll() const {
  if (axes.size() != 1 || axes[0] != axis || static_cast<int64_t>(indices.size()) != sizes[0])
    return false;
  return llvm::all_of(llvm::enumerate(indices),
                      [](auto place) { return static_cast<int64_t>(place.index()) == place.value(); });
}

RankedTensorType Slices::of(RankedTensorType type) const {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> shape;
  bool done = false;
  for (auto [name, size] : llvm::zip(axesOf(type), type.getShape())) {
    bool taken = llvm::is_contained(axes, name);
    if (taken && std::exchange(done, true))
      continue;
    names.push_back(taken ? axis : name);
    shape.push_back(taken ? static_cast<int64_t>(indices.size()) : size);
  }
  return namedTensor(names, shape, type.getElementType());
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool lacks(Value value, const Slices &slices) {
  return llvm::none_of(slices.axes, [&](StringAttr name) { return axisIndex(value.getType(), name) >= 0; });
}

/// Whether the last axis of `x`, over which `op` works, is none of the slices'.
static bool keepsRows(Value x, const Slices &slices) {
  return !llvm::is_contained(slices.axes, axesOf(x).back());
}

bool worksBySlices(Operation *op, const Slices &slices) {
  bool can = TypeSwitch<Operation *, bool>(op)
                 .Case<UnaryOp, BinaryOp, ContractOp, ConstantOp, SumToOp>([](Operation *) { return true; })
                 .Case<RmsNormOp, LayerNormOp, SoftmaxOp, RopeOp>(
                     [&](auto row) { return keepsRows(row.getX(), slices); })
                 .Default([](Operation *) { return false; });
  return can && llvm::all_of(op->getOperands(), [&](Value operand) { return slices.fit(typeOf(operand)); });
}

Value takeHere(OpBuilder &builder, Value value, const Slices &whole) {
  Slices slices = whole.along(typeOf(value));
  return TakeOp::create(builder, value.getLoc(), value, slices.axesAttr(), slices.axis,
                        builder.getDenseI64ArrayAttr(slices.indices));
}

Value takeOf(Value value, const Slices &slices) {
  if (lacks(value, slices) || slices.areAll())
    return value;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Operation *op = value.getDefiningOp();
  if (!op || isa<GetOp>(op))
    return takeHere(builder, value, slices);
  if (!worksBySlices(op, slices)) {
    op->emitRemark() << "slices of heads are taken from the result of " << op->getName()
                     << ", which is computed whole: it does not work slice by slice";
    return takeHere(builder, value, slices);
  }
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, takeOf(operand, slices));
  builder.setInsertionPointAfter(op);
  Operation *clone = builder.clone(*op, mapping);
  clone->getResult(0).setType(slices.of(typeOf(value)));
  return clone->getResult(0);
}

} // namespace weft
