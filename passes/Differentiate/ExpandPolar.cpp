//===- ExpandPolar.cpp - Newton-Schulz as products ------------------------===//
#include "dialects/Weft/Gradients.h"
#include "passes/Differentiate/Passes.h"
#include "passes/Differentiate/Programs.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_EXPANDPOLAR
#include "passes/Differentiate/Passes.h.inc"

namespace {

/// Builds the steps of one polar op, of all its matrices at once. The square s of y
/// has the shorter side of y twice; a product needs names that differ, so sides are
/// renamed.
class Expander {
public:
  explicit Expander(PolarOp op)
      : op(op), builder(op), loc(op.getLoc()), type(op.getX().getType()),
        many(static_cast<size_t>(type.getRank()) - 2), wide(type.getShape()[many] <= type.getShape().back()) {
    side = axesOf(type)[many + (wide ? 0 : 1)];
    for (auto [index, name] : llvm::enumerate(others))
      name = builder.getStringAttr(side.getValue() + (index ? ".b" : ".a"));
  }

  Value run() {
    // One number a matrix.
    RankedTensorType numbers = ofEach({}, {});
    Value squares = binary(builder, loc, BinaryFn::Mul, op.getX(), op.getX());
    Value norm = UnaryOp::create(builder, loc, numbers, UnaryFn::Sqrt,
                                 SumToOp::create(builder, loc, numbers, squares, Value()));
    Value floor = constantOf(builder, loc, numbers, PolarOp::kFloor);
    Value y =
        binary(builder, loc, BinaryFn::Div, op.getX(), binary(builder, loc, BinaryFn::Add, norm, floor));
    for (int64_t step = 0; step < static_cast<int64_t>(op.getIterations()); ++step)
      y = iterate(y);
    return y;
  }

private:
  /// `value` with its side called `from` called `to`.
  Value renamed(Value value, StringAttr from, StringAttr to) {
    RankedTensorType old = tensorType(value);
    SmallVector<StringAttr> names(axesOf(old));
    for (StringAttr &name : names)
      name = name == from ? to : name;
    return ReshapeOp::create(builder, loc, namedTensor(names, old.getShape(), old.getElementType()), value);
  }

  /// A tensor of `names` and `sizes` for each matrix.
  RankedTensorType ofEach(ArrayRef<StringAttr> names, ArrayRef<int64_t> sizes) {
    SmallVector<StringAttr> axes(axesOf(type).take_front(many));
    SmallVector<int64_t> shape(type.getShape().take_front(many));
    axes.append(names.begin(), names.end());
    shape.append(sizes.begin(), sizes.end());
    return namedTensor(axes, shape, type.getElementType());
  }

  RankedTensorType square(StringAttr rows, StringAttr columns) {
    int64_t size = std::min(type.getShape()[many], type.getShape().back());
    return ofEach({rows, columns}, {size, size});
  }

  Value product(RankedTensorType result, Value a, Value b, Value init = {}) {
    return ContractOp::create(builder, loc, result, a, b, init);
  }

  /// a y + (b s + c s s) y with s = y y^T, or y (...) with s = y^T y where y is tall.
  Value iterate(Value y) {
    auto [a, b, c] = PolarOp::kCoefficients;
    Value twin = renamed(y, side, others[0]);
    Value s = product(square(side, others[0]), y, twin); // [side, a]
    Value again = ReshapeOp::create(builder, loc, square(others[0], others[1]), s);
    auto weightsType = square(side, others[1]);
    Value start = ReshapeOp::create(builder, loc, weightsType, scaled(builder, loc, s, b));
    Value weights = product(weightsType, scaled(builder, loc, s, c), again, start); // [side, b]
    Value other = renamed(y, side, others[1]);
    Value before = scaled(builder, loc, y, a);
    return wide ? product(type, weights, other, before) : product(type, other, weights, before);
  }

  PolarOp op;
  OpBuilder builder;
  Location loc;
  RankedTensorType type;
  size_t many; // axes that count matrices
  bool wide;
  StringAttr side, others[2];
};

struct ExpandPolar : impl::ExpandPolarBase<ExpandPolar> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      for (PolarOp op : llvm::make_early_inc_range(bodyOf(function).getOps<PolarOp>())) {
        op.getY().replaceAllUsesWith(Expander(op).run());
        op.erase();
      }
    }
  }
};

} // namespace
} // namespace weft
