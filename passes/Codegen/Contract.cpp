//===- Contract.cpp - Products --------------------------------------------===//
#include "passes/Codegen/Builders.h"
#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Gemms.h"
#include "passes/Codegen/RowProgram.h"

using namespace mlir;

namespace weft {
namespace {

Axes wideAxes(Value value) {
  Axes axes = allAxes(value.getType());
  llvm::erase_if(axes, [](const Axis &axis) { return axis.size == 1; });
  return axes;
}

/// Axes of size 1 aside, which tensors have which.
struct ProductAxes {
  Axes a, b, c;
  Axes batch, m, n, k; // in the order of a, of b for n

  ProductAxes(Value aValue, Value bValue, Value cValue)
      : a(wideAxes(aValue)), b(wideAxes(bValue)), c(wideAxes(cValue)) {
    for (const Axis &axis : a) {
      bool inB = llvm::is_contained(b, axis), inC = llvm::is_contained(c, axis);
      (inB && inC ? batch : inC ? m : k).push_back(axis);
    }
    for (const Axis &axis : b)
      if (!llvm::is_contained(a, axis))
        n.push_back(axis);
  }
};

/// Elements between neighbours of a group of axes that lie side by side in this order.
std::optional<int64_t> groupStride(ArrayRef<Axis> axes, ArrayRef<Axis> group) {
  if (group.empty())
    return 1;
  const auto *start = llvm::find(axes, group.front());
  if (axes.end() - start < static_cast<int64_t>(group.size()) ||
      !std::equal(group.begin(), group.end(), start))
    return std::nullopt;
  return strideOf(axes, group.back().name);
}

/// One operand as rows and columns. Null when neither has stride 1.
struct Matrix {
  int64_t leading = 0, batchStride = 0;
  bool transposed = false;
};

std::optional<Matrix> matrixOf(ArrayRef<Axis> axes, ArrayRef<Axis> batch, ArrayRef<Axis> rows,
                               ArrayRef<Axis> columns) {
  auto batchStride = groupStride(axes, batch), rowStride = groupStride(axes, rows),
       columnStride = groupStride(axes, columns);
  if (!batchStride || !rowStride || !columnStride)
    return std::nullopt;
  int64_t rowCount = countOf(rows), columnCount = countOf(columns);
  Matrix matrix;
  matrix.batchStride = batch.empty() ? 0 : *batchStride;
  if (columnCount == 1 || *columnStride == 1)
    matrix.leading = rowCount == 1 ? columnCount : *rowStride;
  else if (rowCount == 1 || *rowStride == 1) {
    matrix.transposed = true;
    matrix.leading = *columnStride;
  } else {
    return std::nullopt;
  }
  return matrix;
}

std::optional<rt::Gemm> productOf(const ProductAxes &axes, bool accumulate) {
  auto a = matrixOf(axes.a, axes.batch, axes.m, axes.k);
  auto b = matrixOf(axes.b, axes.batch, axes.k, axes.n);
  auto c = matrixOf(axes.c, axes.batch, axes.m, axes.n);
  if (!a || !b || !c || c->transposed)
    return std::nullopt;
  rt::Gemm gemm;
  gemm.m = countOf(axes.m);
  gemm.n = countOf(axes.n);
  gemm.k = countOf(axes.k);
  gemm.batch = countOf(axes.batch);
  gemm.lda = a->leading, gemm.ldb = b->leading, gemm.ldc = c->leading;
  gemm.strideA = a->batchStride, gemm.strideB = b->batchStride, gemm.strideC = c->batchStride;
  gemm.transA = a->transposed, gemm.transB = b->transposed;
  gemm.accumulate = accumulate;
  return gemm;
}

constexpr int64_t kRowsPerItem = 64;

int64_t rowBlocks(const rt::Gemm &gemm) { return (gemm.m + kRowsPerItem - 1) / kRowsPerItem; }

/// Calls table->sgemm on rows [first, first + rows) of one product.
void callSgemm(KernelBody &body, const rt::Gemm &gemm, Value a, Value b, Value c, Value rows) {
  Emitter &e = body.e;
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(e.b.getContext()),
      {e.i64, e.i64, e.i64, e.i64, e.i64, e.f32, e.ptr, e.i64, e.ptr, e.i64, e.f32, e.ptr, e.i64});
  Value function = LLVM::LoadOp::create(e.b, e.loc, e.ptr, body.table);
  LLVM::CallOp::create(e.b, e.loc, type,
                       ValueRange{function, e.number(gemm.transA), e.number(gemm.transB), rows,
                                  e.number(gemm.n), e.number(gemm.k), e.constant(e.f32, 1), a,
                                  e.number(gemm.lda), b, e.number(gemm.ldb),
                                  e.constant(e.f32, gemm.accumulate ? 1 : 0), c, e.number(gemm.ldc)});
}

/// The product with its sides exchanged: (A B)^T = B^T A^T.
LogicalResult buildExchanged(ContractOp op, const rt::Gemm &gemm, KernelBody &body) {
  Emitter &e = body.e;
  e.loop(body.begin, body.end, 1, [&](Value item) {
    Value batch = e.divi(item, rowBlocks(gemm));
    Value first = e.muli(e.remi(item, rowBlocks(gemm)), kRowsPerItem);
    Value rows = e.mini(e.subi(e.number(gemm.m), first), e.number(kRowsPerItem));
    auto start = [&](Value base, int64_t batchStride, int64_t rowStride) {
      return e.at(base, e.addi(e.muli(batch, batchStride), e.muli(first, rowStride)));
    };
    Value a = start(body.argument(op.getB()), gemm.strideA, gemm.transA ? 1 : gemm.lda);
    Value b = e.at(body.argument(op.getA()), e.muli(batch, gemm.strideB));
    Value c = start(body.result(0), gemm.strideC, gemm.ldc);
    if (op.getInit()) {
      Value init = start(body.argument(op.getInit()), gemm.strideC, gemm.ldc);
      e.when(LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, init, c), [&] {
        e.loop(e.number(0), rows, 1, [&](Value row) {
          Value offset = e.muli(row, gemm.ldc);
          e.strips(gemm.n, [&](Value i, const Lanes &lanes) {
            e.storeLanes(e.loadLanes(e.at(init, offset), i, lanes), e.at(c, offset), i, lanes);
          });
        });
      });
    }
    callSgemm(body, gemm, a, b, c, rows);
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Any other order of axes
//===----------------------------------------------------------------------===//

class LoopProduct {
public:
  LoopProduct(ContractOp op, KernelBody &body)
      : op(op), body(body), e(body.e), a(allAxes(op.getA().getType())), b(allAxes(op.getB().getType())),
        c(allAxes(op.getType())) {
    for (const Axis &axis : a)
      if (!llvm::is_contained(c, axis))
        summed.push_back(axis);
    if (!c.empty())
      last = c.back();
  }

  void run() {
    e.loop(body.begin, body.end, 1, [&](Value item) { line(item); });
  }

private:
  Value offsetOf(Value item, ArrayRef<Axis> axes) {
    Value offset = e.number(0);
    int64_t stride = 1;
    for (const Axis &axis : llvm::reverse(ArrayRef(c).drop_back(c.empty() ? 0 : 1))) {
      Value at = e.remi(e.divi(item, stride), axis.size);
      offset = e.addi(offset, e.muli(at, strideOf(axes, axis.name)));
      stride *= axis.size;
    }
    return offset;
  }

  Value along(Value base, ArrayRef<Axis> axes, Value i, const Lanes &lanes) {
    int64_t stride = last.name ? strideOf(axes, last.name) : 0;
    if (stride == 0)
      return e.splat(e.load(e.f32, base));
    return stride == 1 ? e.loadLanes(base, i, lanes) : e.gatherLanes(base, e.muli(i, stride), stride, lanes);
  }

  Value sum(ArrayRef<Axis> axes, Value atA, Value atB, Value start, Value i, const Lanes &lanes) {
    if (axes.empty())
      return e.fma(along(atA, a, i, lanes), along(atB, b, i, lanes), start);
    return e.loop(e.number(0), e.number(axes[0].size), 1, {start}, [&](Value k, ValueRange carried) {
      Value nextA = e.at(atA, e.muli(k, strideOf(a, axes[0].name)));
      Value nextB = e.at(atB, e.muli(k, strideOf(b, axes[0].name)));
      return SmallVector<Value>{sum(axes.drop_front(), nextA, nextB, carried[0], i, lanes)};
    })[0];
  }

  /// One line of the result: all axes but the last stand still.
  void line(Value item) {
    Value atA = e.at(body.argument(op.getA()), offsetOf(item, a));
    Value atB = e.at(body.argument(op.getB()), offsetOf(item, b));
    Value start = e.muli(item, last.size);
    Value to = e.at(body.result(0), start);
    e.strips(last.size, [&](Value i, const Lanes &lanes) {
      Value before = op.getInit() ? e.loadLanes(e.at(body.argument(op.getInit()), start), i, lanes)
                                  : e.constant(e.floats, 0);
      e.storeLanes(sum(summed, atA, atB, before, i, lanes), to, i, lanes);
    });
  }

  ContractOp op;
  KernelBody &body;
  Emitter &e;
  Axes a, b, c, summed;
  Axis last;
};

} // namespace

std::optional<rt::Gemm> gemmOf(ContractOp op) {
  // The runtime takes operands in the kernel's order.
  auto isArgument = [](Value value, unsigned number) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() == number;
  };
  if (!isArgument(op.getA(), 0) || !isArgument(op.getB(), 1))
    return std::nullopt;
  return productOf(ProductAxes(op.getA(), op.getB(), op.getResult()), static_cast<bool>(op.getInit()));
}

std::optional<rt::Gemm> gemmOf(KernelOp kernel) {
  Block &block = kernel.getBody().front();
  auto op = dyn_cast<ContractOp>(block.front());
  return op && llvm::hasNItems(block, 2) ? gemmOf(op) : std::nullopt;
}

KernelKind contractKind(ContractOp op) {
  auto exchanged =
      productOf(ProductAxes(op.getB(), op.getA(), op.getResult()), static_cast<bool>(op.getInit()));
  if (exchanged)
    return {[gemm = *exchanged] { return gemm.batch * rowBlocks(gemm); },
            [op, gemm = *exchanged](KernelBody &body) mutable { return buildExchanged(op, gemm, body); }};
  auto type = cast<RankedTensorType>(op.getType());
  int64_t lines = type.getRank() == 0 ? 1 : type.getNumElements() / type.getShape().back();
  return {[lines] { return lines; },
          [op](KernelBody &body) mutable -> LogicalResult {
            LoopProduct(op, body).run();
            return success();
          }};
}

} // namespace weft
