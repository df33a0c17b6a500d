//===- EmitProducts.cpp - wgmma and mma.sync ------------------------------===//
//
// A matrix descriptor (PTX ISA, "Matrix Descriptor Format"): bits 0-13 address,
// 16-29 leading and 32-45 stride dimension offset, all in 16 bytes; 62-63 mode:
// 1, 2, 3 for a swizzle of 128, 64, 32 bytes and 0 for none. Below, "8 rows" are
// stored rows: of n (or m) when k is contiguous, of k when n is.
//   k contiguous, swizzled: stride = 8 rows; leading unused, k stays in a panel
//   n contiguous, swizzled: stride = 8 rows of k; leading = next panel of n
//   k contiguous, none:     stride = 8 rows of n; leading = next panel of 8 k
//   n contiguous, none:     stride = next panel of 8 n; leading = 8 rows of k
//
//===----------------------------------------------------------------------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft::tile {

static int64_t rowBytes(SmemType type) { return type.panelColumns() * type.elementBytes(); }
static int64_t panelBytes(SmemType type) { return type.getPitch() * rowBytes(type); }

/// Products read whole swizzle atoms: panels as wide as the swizzle, or 8 columns without one.
static bool hasDescriptor(SmemType type) { return type.getSwizzle() != 0 || type.panelColumns() == 8; }

/// Dimension offsets: leading, stride.
static std::pair<int64_t, int64_t> offsetsOf(SmemType type, bool transposed) {
  int64_t eightRows = 8 * rowBytes(type), panel = panelBytes(type);
  if (type.getSwizzle() != 0)
    return {transposed ? panel : 16, eightRows};
  return transposed ? std::pair(eightRows, panel) : std::pair(panel, eightRows);
}

static uint64_t field(int64_t bytes) { return static_cast<uint64_t>(bytes >> 4) & 0x3fff; }

Value KernelEmitter::descriptor(TypedValue<SmemType> tile, bool transposed) {
  // Made anew where it is used: kept from before a loop, the words of all its
  // products would take more registers than they are worth.
  Value start = assembly("bfe.u32 $0, $1, 4, 14;", "=r,r", {one(tile)}, {builder.getI32Type()}).front();
  auto leading = static_cast<int64_t>(field(offsetsOf(tile.getType(), transposed).first) << 16);
  return arith::OrIOp::create(builder, loc, start, i32(leading));
}

Value KernelEmitter::descriptorAt(Value first, SmemType type, bool transposed, int64_t step) {
  int64_t k = 16 * step, width = type.panelColumns(), swizzle = type.getSwizzle();
  int64_t bytes =
      transposed ? k * rowBytes(type) : k / width * panelBytes(type) + k % width * type.elementBytes();
  Value low = bytes == 0 ? first : add(first, i32(bytes >> 4));
  uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  uint64_t high = field(offsetsOf(type, transposed).second) << 32 | mode << 62;
  low = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), low);
  return arith::OrIOp::create(builder, loc, low, i64(static_cast<int64_t>(high)));
}

/// "{$3, $4}" for the operands from `first` on.
static std::string operandList(size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// "=f,=f" or, tied to the results, "0,1".
static std::string resultConstraints(ValueRange parts) {
  std::string text;
  for (Value part : parts)
    text += std::string(text.empty() ? "" : ",") + (part.getType().isF32() ? "=f" : "=r");
  return text;
}
static std::string tiedConstraints(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i)
    text += "," + std::to_string(i);
  return text;
}

KernelEmitter::Values KernelEmitter::tie(StringRef text, ValueRange parts) {
  SmallVector<Type> types(parts.getTypes());
  return assembly(text, resultConstraints(parts) + (parts.empty() ? "" : tiedConstraints(parts.size())),
                  parts, types);
}

/// Registers of the products that this fence is for, those up to the next fence or
/// wait, which something other than a product has written: each once.
static SetVector<Value> freshOperands(FenceProductsOp fence) {
  SetVector<Value> fresh;
  for (Operation *op = fence->getNextNode(); op && !isa<FenceProductsOp, WaitProductsOp>(op);
       op = op->getNextNode()) {
    auto product = dyn_cast<ProductOp>(op);
    if (!product)
      continue;
    for (Value operand : {product.getA(), Value(product.getInit())})
      if (operand && isa<FragType>(operand.getType()) && !operand.getDefiningOp<ProductOp>())
        fresh.insert(operand);
  }
  return fresh;
}

void KernelEmitter::emit(FenceProductsOp op) {
  // The fence orders writes of registers before it and products after it. LLVM
  // doesn't know that, and would write them in between; so they go through it.
  SmallVector<Value> through;
  for (Value operand : freshOperands(op))
    if (values.count(operand))
      through.push_back(operand);
  Values after = tie("wgmma.fence.sync.aligned;", expand(through));
  size_t next = 0;
  for (Value operand : through) {
    size_t count = get(operand).size();
    renamed.emplace_back(operand, get(operand));
    set(operand, Values(ArrayRef<Value>(after).slice(next, count)));
    next += count;
  }
}

LogicalResult KernelEmitter::emit(ProductOp op) {
  bool transposed = op.getTransB(), registers = isa<FragType>(op.getA().getType());
  SmemType typeB = op.getB().getType();
  if (!hasDescriptor(typeB) || (!registers && !hasDescriptor(cast<SmemType>(op.getA().getType()))))
    return op.emitOpError() << "reads tiles through a swizzle or in panels of 8 columns, but got "
                            << op.getA().getType() << " and " << typeB;
  int64_t columns = op.getType().getColumns();
  size_t count = columns / 2;
  int64_t steps = (transposed ? typeB.getRows() : typeB.getColumns()) / 16;
  Value firstB = descriptor(op.getB(), transposed), firstA;
  if (!registers)
    firstA = descriptor(cast<TypedValue<SmemType>>(op.getA()), false);
  Values sums;
  if (op.getInit())
    sums = get(op.getInit());
  else
    sums.assign(count, LLVM::PoisonOp::create(builder, loc, builder.getF32Type()));
  SmallVector<Type> types(count, builder.getF32Type());
  std::string a = registers ? operandList(count, 4) : "$" + std::to_string(count);
  std::string b = "$" + std::to_string(count + (registers ? 4 : 1));
  for (int64_t step = 0; step < steps; ++step) {
    // What the first product without init adds to is never read.
    const char *adds = step == 0 && !op.getInit() ? "0" : "1";
    std::string text = std::string("{ .reg .pred adds; setp.ne.b32 adds, ") + adds + ", 0;\n\t" +
                       "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32.bf16.bf16 " +
                       operandList(0, count) + ", " + a + ", " + b + ", adds, 1, 1, " +
                       (registers ? "" : "0, ") + (transposed ? "1" : "0") + "; }";
    Values operands;
    if (registers)
      operands.append(get(op.getA()).begin() + 4 * step, get(op.getA()).begin() + 4 * step + 4);
    else
      operands.push_back(descriptorAt(firstA, cast<SmemType>(op.getA().getType()), false, step));
    operands.push_back(descriptorAt(firstB, typeB, transposed, step));
    llvm::append_range(operands, sums);
    std::string constraints =
        resultConstraints(sums) + (registers ? ",r,r,r,r,l" : ",l,l") + tiedConstraints(count);
    sums = assembly(text, constraints, operands, types);
  }
  set(op, std::move(sums));
  return success();
}

void KernelEmitter::emit(CommitProductsOp) { assembly("wgmma.commit_group.sync.aligned;", "", {}, {}); }

void KernelEmitter::emit(WaitProductsOp op) {
  std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(op.getPending()) + ";";
  Values parts = tie(text, expand(op.getFrags()));
  size_t next = 0;
  for (auto [from, to] : llvm::zip_equal(op.getFrags(), op.getResults())) {
    size_t count = get(from).size();
    set(to, Values(ArrayRef<Value>(parts).slice(next, count)));
    next += count;
  }
}

void KernelEmitter::emit(ProductSyncOp op) {
  constexpr llvm::StringLiteral kText = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                                        "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};";
  const Values a = get(op.getA());
  int64_t columns = op.getType().getColumns(), steps = op.getA().getType().getColumns() / 16;
  bool transposed = op.getTransB();
  Values sums = op.getInit() ? get(op.getInit()) : Values(columns / 2, f32(0));
  SmallVector<Type> types(4, builder.getF32Type());
  for (int64_t n = 0; n < columns; n += 16)
    for (int64_t step = 0; step < steps; ++step) {
      // Parts in the order (k, n), (k + 8, n), (k, n + 8), (k + 8, n + 8).
      Value address = transposed ? matrixAddress(op.getB(), i32(16 * step), n, true)
                                 : matrixAddress(op.getB(), i32(n), 16 * step, false);
      Values b = loadMatrices(address, transposed);
      for (int64_t half = 0; half < 2; ++half) {
        Value *sum = sums.data() + n / 2 + 4 * half;
        Values operands(a.begin() + 4 * step, a.begin() + 4 * step + 4);
        operands.append({b[2 * half], b[2 * half + 1], sum[0], sum[1], sum[2], sum[3]});
        llvm::copy(assembly(kText, "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", operands, types, /*effects=*/false),
                   sum);
      }
    }
  set(op, std::move(sums));
}

} // namespace weft::tile
