//===- Product.cpp - Products that cuBLASLt has no name for ---------------===//
//
// A thread an element of the result. These are small: gates, odd orders of axes.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/RowProgram.h"

using namespace mlir;

namespace weft {

constexpr int64_t kThreads = 256;

/// Where element `index` of `axes` (row-major) lies in a tensor of axes `there`.
static Value offsetOf(Emitter &e, Value index, ArrayRef<Axis> axes, ArrayRef<Axis> there) {
  Value offset = e.number(0);
  for (const Axis &axis : axes) {
    int64_t step = strideOf(there, axis.name);
    if (step == 0)
      continue;
    Value at = e.remi(e.divi(index, strideOf(axes, axis.name)), axis.size);
    offset = e.addi(offset, e.muli(at, step));
  }
  return offset;
}

MaybeKind productKind(const BareKernel &, ContractOp op) {
  BlockKind kind;
  int64_t count = cast<RankedTensorType>(op.getType()).getNumElements();
  kind.threads = kThreads;
  kind.items = (count + kThreads - 1) / kThreads;
  kind.build = [op, count](Block &block) mutable {
    Emitter &e = block.e;
    Axes a = allAxes(op.getA().getType()), b = allAxes(op.getB().getType()), c = allAxes(op.getType());
    Axes summed;
    for (const Axis &axis : a)
      if (!llvm::is_contained(c, axis))
        summed.push_back(axis);
    block.items([&](Value item) {
      Value index = e.addi(e.muli(item, kThreads), block.thread);
      e.when(e.compare(arith::CmpIPredicate::slt, index, e.number(count)), [&] {
        Value atA = e.at(block.argument(op.getA()), offsetOf(e, index, c, a));
        Value atB = e.at(block.argument(op.getB()), offsetOf(e, index, c, b));
        Value start =
            op.getInit() ? e.load(e.f32, block.argument(op.getInit()), index) : e.constant(e.f32, 0);
        Value sum = e.loop(e.number(0), e.number(countOf(summed)), 1, {start},
                           [&](Value k, ValueRange carried) -> SmallVector<Value> {
                             Value x = e.load(e.f32, atA, offsetOf(e, k, summed, a));
                             Value y = e.load(e.f32, atB, offsetOf(e, k, summed, b));
                             return {e.fma(x, y, carried[0])};
                           })[0];
        e.store(sum, block.result(0), index);
      });
    });
    return success();
  };
  return kind;
}

} // namespace weft
