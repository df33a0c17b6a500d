//===- Reduce.cpp - Sums of whole tensors ---------------------------------===//
#include "passes/Codegen/Builders.h"
#include "passes/Codegen/RowProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace weft {
namespace {

/// A sum over some axes: how its elements are found.
struct SumShape {
  Axes source, kept, summed; // in storage order of source, result, source
  bool lanesKept = false;    // the last axis of both is one: lanes run along it
  int64_t block = 1;         // elements of the last kept axis an item

  explicit SumShape(SumToOp op) : source(allAxes(op.getX().getType())), kept(allAxes(op.getType())) {
    for (const Axis &axis : source)
      if (!llvm::is_contained(kept, axis))
        summed.push_back(axis);
    lanesKept = !kept.empty() && kept.back() == source.back();
    constexpr int64_t kBlock = 512;
    if (lanesKept)
      block = std::min(kept.back().size, kBlock);
  }

  int64_t blocks() const { return lanesKept ? (kept.back().size + block - 1) / block : 1; }
  int64_t items() const { return (lanesKept ? countOf(kept) / kept.back().size : countOf(kept)) * blocks(); }
};

class SumEmitter {
public:
  SumEmitter(SumToOp op, KernelBody &body) : op(op), body(body), e(body.e), shape(op) {}
  void run();

private:
  /// Where element number `index` of `axes` lies in the source.
  Value sourceOffset(Value index, ArrayRef<Axis> axes);
  SmallVector<Value> foldSummed(ArrayRef<Axis> axes, Value offset, SmallVector<Value> sums,
                                function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void alongLanes(Value item);
  void toNumber(Value item);

  SumToOp op;
  KernelBody &body;
  Emitter &e;
  SumShape shape;
};

Value SumEmitter::sourceOffset(Value index, ArrayRef<Axis> axes) {
  Value offset = e.number(0);
  int64_t stride = 1;
  for (const Axis &axis : llvm::reverse(axes)) {
    Value at = e.remi(e.divi(index, stride), axis.size);
    offset = e.addi(offset, e.muli(at, strideOf(shape.source, axis.name)));
    stride *= axis.size;
  }
  return offset;
}

SmallVector<Value> SumEmitter::foldSummed(ArrayRef<Axis> axes, Value offset, SmallVector<Value> sums,
                                          function_ref<SmallVector<Value>(Value, ValueRange)> fold) {
  if (axes.empty())
    return fold(offset, sums);
  return e.loop(e.number(0), e.number(axes[0].size), 1, sums, [&](Value i, ValueRange carried) {
    Value inner = e.addi(offset, e.muli(i, strideOf(shape.source, axes[0].name)));
    return foldSummed(axes.drop_front(), inner, SmallVector<Value>(carried), fold);
  });
}

/// One block of the last kept axis, a vector of sums at a time.
void SumEmitter::alongLanes(Value item) {
  int64_t last = shape.kept.back().size;
  Value outer = e.divi(item, shape.blocks());
  Value from = e.muli(e.remi(item, shape.blocks()), shape.block);
  Value to = e.mini(e.addi(from, shape.block), e.number(last));
  Value source = e.at(body.argument(op.getX()), sourceOffset(outer, ArrayRef(shape.kept).drop_back()));
  Value target = e.at(body.result(0), e.muli(outer, last));
  Value init = op.getInit() ? e.at(body.argument(op.getInit()), e.muli(outer, last)) : Value();
  e.strips(from, to, [&](Value i, const Lanes &lanes) {
    Value start = init ? e.loadLanes(init, i, lanes) : e.constant(e.floats, 0);
    auto sums = foldSummed(shape.summed, i, {start}, [&](Value offset, ValueRange carried) {
      return SmallVector<Value>{e.add(carried[0], e.loadLanes(source, offset, lanes))};
    });
    e.storeLanes(sums[0], target, i, lanes);
  });
}

/// One number: lanes along the last axis of the source where it is summed.
void SumEmitter::toNumber(Value item) {
  Value source = e.at(body.argument(op.getX()), sourceOffset(item, shape.kept));
  bool lanes = !shape.summed.empty() && shape.summed.back() == shape.source.back();
  Value sum;
  if (lanes) {
    auto sums = foldSummed(ArrayRef(shape.summed).drop_back(), e.number(0), {e.constant(e.floats, 0)},
                           [&](Value offset, ValueRange carried) {
                             Value line = e.at(source, offset);
                             return e.strips(shape.summed.back().size, carried,
                                             [&](Value i, const Lanes &lanes, ValueRange inner) {
                                               Value part = e.loadLanes(line, i, lanes);
                                               return SmallVector<Value>{e.add(inner[0], part)};
                                             });
                           });
    sum = e.sumOf(sums[0]);
  } else {
    sum =
        foldSummed(shape.summed, e.number(0), {e.constant(e.f32, 0)}, [&](Value offset, ValueRange carried) {
          return SmallVector<Value>{e.add(carried[0], e.load(e.f32, source, offset))};
        })[0];
  }
  if (op.getInit())
    sum = e.add(e.load(e.f32, body.argument(op.getInit()), item), sum);
  e.store(sum, body.result(0), item);
}

void SumEmitter::run() {
  e.loop(body.begin, body.end, 1, [&](Value item) { shape.lanesKept ? alongLanes(item) : toNumber(item); });
}

} // namespace

KernelKind sumToKind(SumToOp op) {
  return {[op] { return SumShape(op).items(); },
          [op](KernelBody &body) mutable -> LogicalResult {
            SumEmitter(op, body).run();
            return success();
          }};
}

KernelKind normKind(NormOp op) {
  auto build = [op](KernelBody &body) mutable -> LogicalResult {
    // Several sums side by side: one would wait for its own additions.
    constexpr int64_t kSums = 4;
    Emitter &e = body.e;
    int64_t count = cast<RankedTensorType>(op.getX().getType()).getNumElements();
    Value x = body.argument(op.getX());
    auto doubles = VectorType::get({e.width}, e.b.getF64Type());
    auto squares = [&](Value sum, Value i, const Lanes &lanes) -> Value {
      Value wide = arith::ExtFOp::create(e.b, e.loc, doubles, e.loadLanes(x, i, lanes));
      return e.fma(wide, wide, sum);
    };
    int64_t step = kSums * e.width, whole = count - count % step;
    e.loop(body.begin, body.end, 1, [&](Value) {
      SmallVector<Value> sums(kSums, e.constant(doubles, 0));
      sums = e.loop(e.number(0), e.number(whole), step, sums, [&](Value i, ValueRange carried) {
        SmallVector<Value> next;
        for (int64_t k = 0; k < kSums; ++k)
          next.push_back(squares(carried[k], e.addi(i, k * e.width), {}));
        return next;
      });
      sums[0] = e.strips(count - whole, {sums[0]}, [&](Value i, const Lanes &lanes, ValueRange carried) {
        return SmallVector<Value>{squares(carried[0], e.addi(i, whole), lanes)};
      })[0];
      Value sum = e.sumOf(e.add(e.add(sums[0], sums[1]), e.add(sums[2], sums[3])));
      Value norm = arith::TruncFOp::create(e.b, e.loc, e.f32, e.sqrt(sum));
      if (op.getFactor())
        norm = e.mul(norm, e.load(e.f32, body.argument(op.getFactor())));
      e.store(norm, body.result(0));
    });
    return success();
  };
  return {[] { return int64_t{1}; }, build};
}

} // namespace weft
