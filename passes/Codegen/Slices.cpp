//===- Slices.cpp - Take and put ------------------------------------------===//
//
// An item is a piece of one outer row; which slices there are is in the code.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Builders.h"

using namespace mlir;

namespace weft {
namespace {

/// A tensor as [outer, places, inner] around the axes that are taken from.
struct SliceShape {
  int64_t outer = 1, places = 1, inner = 1, pieces = 1;

  SliceShape(Value whole, ArrayAttr axes) {
    constexpr int64_t kPiece = 4096;
    auto type = cast<RankedTensorType>(whole.getType());
    int64_t first = axes.empty() ? 0 : axisIndex(type, cast<StringAttr>(axes[0]));
    auto count = std::max<int64_t>(static_cast<int64_t>(axes.size()), 1);
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      (axis < first ? outer : axis < first + count ? places : inner) *= type.getDimSize(axis);
    pieces = (inner + kPiece - 1) / kPiece;
  }
  int64_t items() const { return outer * pieces; }
};

/// Calls `body(outer row, first, last)` for the part of inner that each item is.
void overItems(KernelBody &body, const SliceShape &shape, function_ref<void(Value, Value, Value)> visit) {
  Emitter &e = body.e;
  e.loop(body.begin, body.end, 1, [&](Value item) {
    auto [from, to] = e.range(e.remi(item, shape.pieces), shape.inner, shape.pieces);
    visit(e.divi(item, shape.pieces), from, to);
  });
}

} // namespace

KernelKind takeKind(TakeOp op) {
  SliceShape shape(op.getX(), op.getAxes());
  auto build = [op, shape](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    ArrayRef<int64_t> indices = op.getIndices();
    auto count = static_cast<int64_t>(indices.size());
    overItems(body, shape, [&](Value outer, Value from, Value to) {
      Value x = e.at(body.argument(op.getX()), e.muli(outer, shape.places * shape.inner));
      Value y = e.at(body.result(0), e.muli(outer, count * shape.inner));
      for (auto [place, index] : llvm::enumerate(indices)) {
        Value source = e.at(x, e.number(index * shape.inner));
        Value target = e.at(y, e.number(static_cast<int64_t>(place) * shape.inner));
        e.strips(from, to, [&](Value i, const Lanes &lanes) {
          e.storeLanes(e.loadLanes(source, i, lanes), target, i, lanes);
        });
      }
    });
    return success();
  };
  return {[shape] { return shape.items(); }, build};
}

KernelKind putKind(PutOp op) {
  SliceShape shape(op.getResult(), op.getAxes());
  auto build = [op, shape](KernelBody &body) mutable -> LogicalResult {
    Emitter &e = body.e;
    ArrayRef<int64_t> indices = op.getIndices();
    auto count = static_cast<int64_t>(indices.size());
    overItems(body, shape, [&](Value outer, Value from, Value to) {
      Value y = e.at(body.argument(op.getY()), e.muli(outer, count * shape.inner));
      Value result = e.at(body.result(0), e.muli(outer, shape.places * shape.inner));
      for (int64_t place = 0; place < shape.places; ++place) {
        Value target = e.at(result, e.number(place * shape.inner));
        e.strips(from, to, [&](Value i, const Lanes &lanes) {
          Value sum;
          for (auto [part, index] : llvm::enumerate(indices)) {
            if (index != place)
              continue;
            Value slice = e.at(y, e.number(static_cast<int64_t>(part) * shape.inner));
            Value value = e.loadLanes(slice, i, lanes);
            sum = sum ? e.add(sum, value) : value;
          }
          e.storeLanes(sum ? sum : e.constant(e.floats, 0), target, i, lanes);
        });
      }
    });
    return success();
  };
  return {[shape] { return shape.items(); }, build};
}

} // namespace weft
