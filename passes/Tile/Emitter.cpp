//===- Emitter.cpp - A kernel's function, control flow and scalars --------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft::tile {

/// Bytes and alignment of a tensor map (CUtensorMap of the CUDA driver).
static constexpr int64_t kMapBytes = 128, kMapAlignment = 64;

KernelEmitter::KernelEmitter(KernelOp kernel, const GpuTarget &target, ModuleOp module)
    : kernel(kernel), target(target), module(module), builder(module.getBodyRegion()), loc(kernel.getLoc()) {}

LogicalResult KernelEmitter::emit() {
  LLVM::LLVMFuncOp function = emitFunction();
  builder.setInsertionPointToStart(&function.getBody().front());
  emitIds();
  emitShared();
  if (failed(emitBlock(kernel.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return success();
}

LLVM::LLVMFuncOp KernelEmitter::emitFunction() {
  MLIRContext *context = builder.getContext();
  Type global = LLVM::LLVMPointerType::get(context, 1), map = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> types;
  for (BlockArgument argument : kernel.getBody().getArguments())
    types.push_back(isa<MapType>(argument.getType()) ? map : global);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  auto function = LLVM::LLVMFuncOp::create(builder, loc, kernel.getSymName(), type);
  function->setAttr("nvvm.kernel", builder.getUnitAttr());
  function->setAttr("nvvm.reqntid",
                    builder.getDenseI32ArrayAttr({static_cast<int32_t>(kernel.getThreads())}));
  // ptxas honours setmaxnreg only where it knows how many CTAs share a multiprocessor.
  if (!kernel.getBody().front().getOps<SpecializeOp>().empty())
    function->setAttr("nvvm.minctasm", builder.getI32IntegerAttr(1));
  auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), kMapBytes);
  Block *entry = function.addEntryBlock(builder);
  for (auto [i, argument] : llvm::enumerate(kernel.getBody().getArguments())) {
    set(argument, {entry->getArgument(i)});
    if (!isa<MapType>(argument.getType()))
      continue;
    function.setArgAttr(i, "llvm.byval", TypeAttr::get(bytes));
    function.setArgAttr(i, "llvm.align", builder.getI64IntegerAttr(kMapAlignment));
    function.setArgAttr(i, "nvvm.grid_constant", builder.getUnitAttr());
  }
  return function;
}

void KernelEmitter::emitIds() {
  Type type = builder.getI32Type();
  Value id = NVVM::ThreadIdXOp::create(builder, loc, type);
  auto low = [&](Value value, int64_t mask) -> Value {
    return arith::AndIOp::create(builder, loc, value, i32(mask));
  };
  thread = low(id, 127);
  lane = low(id, 31);
  warp = shift(thread, 5);
  group = shift(lane, 2);
  quadLane = low(lane, 3);
  // Taken from lane 0, so that ptxas knows it is the same in a warp and that
  // branches on it do not part threads.
  warpgroup = NVVM::ShflOp::create(builder, loc, type, i32(-1), shift(id, 7), i32(0), i32(31),
                                   NVVM::ShflKind::idx, UnitAttr());
}

void KernelEmitter::emitShared() {
  constexpr llvm::StringLiteral kName = "weft_shared";
  MLIRContext *context = builder.getContext();
  if (!module.lookupSymbol(kName)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(builder.getI8Type(), 0), false,
                           LLVM::Linkage::External, kName, Attribute(), KernelOp::kSharedAlignment, 3);
  }
  Value pointer = LLVM::AddressOfOp::create(builder, loc, LLVM::LLVMPointerType::get(context, 3), kName);
  Value base = LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), pointer);
  // The order and alignment of KernelOp::sharedBytes.
  int64_t offset = 0;
  for (Operation &op : kernel.getBody().front()) {
    int64_t bytes = 0;
    if (auto alloc = dyn_cast<AllocOp>(op))
      bytes = alloc.getType().ringBytes();
    else if (auto barriers = dyn_cast<AllocBarriersOp>(op))
      bytes = barriers.getType().getCount() * 8;
    else if (auto cells = dyn_cast<AllocCellsOp>(op))
      bytes = cells.getType().getCount() * 4;
    else
      continue;
    set(op.getResult(0), {add(base, i32(offset))});
    offset += llvm::alignTo(bytes, KernelOp::kSharedAlignment);
  }
}

LogicalResult KernelEmitter::emitBlock(Block &block) {
  size_t before = renamed.size();
  for (Operation &op : block)
    if (failed(emitOp(&op)))
      return failure();
  while (renamed.size() > before) {
    auto [value, parts] = renamed.pop_back_val();
    values[value] = std::move(parts);
  }
  return success();
}

LogicalResult KernelEmitter::emitOp(Operation *op) {
  loc = op->getLoc();
  if (isa<TileDialect>(op->getDialect()))
    return emitTileOp(op);
  if (isa<scf::SCFDialect>(op->getDialect()))
    return emitControl(op);
  return emitScalar(op);
}

/// What only sm_90 has: memory barriers with bytes, tensor copies, wgmma, setmaxnreg.
static bool needsHopper(Operation *op) {
  return isa<InitBarrierOp, FenceInitOp, ExpectOp, ArriveOp, WaitOp, FenceAsyncOp, LoadTileOp, LoadBulkOp,
             CopyColsOp, ProductOp, FenceProductsOp, CommitProductsOp, WaitProductsOp, SpecializeOp>(op);
}

LogicalResult KernelEmitter::emitTileOp(Operation *op) {
  if (needsHopper(op) && target.chip != "sm_90a")
    return op->emitOpError() << "needs sm_90a, but the target is " << target.chip
                             << ": use copy_async and product_sync there";
  auto fine = [&](auto typed) {
    emit(typed);
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ReturnOp, EndOp, AllocOp, AllocBarriersOp, AllocCellsOp>(
          [](auto) { return success(); }) // emitShared, callers
      .Case<ElectOp, SpecializeOp, MapOp, CallOp, ProductOp>([&](auto typed) { return emit(typed); })
      .Case([&](CtaOp cta) {
        set(cta, {NVVM::BlockIdXOp::create(builder, loc, builder.getI32Type())});
        return success();
      })
      .Case([&](GridSizeOp size) {
        set(size, {NVVM::GridDimXOp::create(builder, loc, builder.getI32Type())});
        return success();
      })
      .Case([&](WarpgroupOp own) {
        set(own, {warpgroup});
        return success();
      })
      .Case<InitBarrierOp, FenceInitOp, ExpectOp, ArriveOp, WaitOp, SyncOp, SyncArriveOp, FenceAsyncOp>(fine)
      .Case<StageOp, SliceOp, PanelOp, HankelOp, LoadTileOp, LoadBulkOp, CopyColsOp, CopyAsyncOp,
            CopyCommitOp, CopyWaitOp>(fine)
      .Case<ReadFragOp, WriteFragOp, ReadColsOp>(fine)
      .Case<NextItemOp, WriteOp, ReadOp>(fine)
      .Case<StoreFragOp, LoadFragOp, StoreRowsOp, LoadRowsOp, LoadColsOp, StoreOp, LoadOp>(fine)
      .Case<FenceProductsOp, CommitProductsOp, WaitProductsOp, ProductSyncOp>(fine)
      .Case<Exp2Op, ReduceOp, QuadOp, CastOp, ColumnsOp, ZeroOp, SplatOp>(fine)
      .Default([](Operation *other) { return other->emitOpError() << "has no form in PTX yet"; });
}

//===----------------------------------------------------------------------===//
// Control flow and scalars
//===----------------------------------------------------------------------===//

/// The same op with every value expanded: iteration arguments of loops, results of branches.
LogicalResult KernelEmitter::emitControl(Operation *op) {
  OperationState state(loc, op->getName());
  state.addOperands(expand(op->getOperands()));
  for (Type type : op->getResultTypes())
    state.addTypes(convert(type));
  state.addAttributes(op->getAttrDictionary().getValue());
  for (size_t i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation *copy = builder.create(state);
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    Block &body = to.emplaceBlock();
    for (BlockArgument argument : from.getArguments()) {
      Values parts;
      for (Type type : convert(argument.getType()))
        parts.push_back(body.addArgument(type, loc));
      set(argument, std::move(parts));
    }
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&body);
    if (failed(emitBlock(from.front())))
      return failure();
  }
  size_t next = 0;
  for (Value result : op->getResults()) {
    size_t count = convert(result.getType()).size();
    set(result, Values(copy->getResults().slice(next, count)));
    next += count;
  }
  return success();
}

/// arith as it stands; of math what the GPU has, exponentials and logarithms from those of base 2.
LogicalResult KernelEmitter::emitScalar(Operation *op) {
  auto scaled = [&](Value x, double factor) -> Value {
    return arith::MulFOp::create(builder, loc, x, f32(factor));
  };
  auto approximate = [&](StringRef instruction, Value x) -> Value {
    return assembly((instruction + " $0, $1;").str(), "=f,f", {x}, {builder.getF32Type()}, /*effects=*/false)
        .front();
  };
  constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
  bool single = op->getNumResults() == 1 && op->getResult(0).getType().isF32();
  if (single && isa<math::Exp2Op, math::ExpOp>(op)) {
    Value x = one(op->getOperand(0));
    set(op->getResult(0), {approximate("ex2.approx.f32", isa<math::ExpOp>(op) ? scaled(x, kLog2E) : x)});
    return success();
  }
  if (single && isa<math::Log2Op, math::LogOp>(op)) {
    Value y = approximate("lg2.approx.f32", one(op->getOperand(0)));
    set(op->getResult(0), {isa<math::LogOp>(op) ? scaled(y, kLn2) : y});
    return success();
  }
  bool known = isa<arith::ArithDialect>(op->getDialect()) ||
               isa<math::SqrtOp, math::RsqrtOp, math::AbsFOp, math::FmaOp, math::FloorOp, math::AbsIOp,
                   math::CopySignOp>(op);
  if (!known)
    return op->emitError()
           << "tile kernels hold tile, scf, arith and some of math (exp, exp2, log, log2, sqrt, rsqrt, absf, "
              "absi, fma, floor, copysign), but here is "
           << op->getName();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, one(operand));
  Operation *copy = builder.clone(*op, mapping);
  for (auto [from, to] : llvm::zip_equal(op->getResults(), copy->getResults()))
    set(from, {to});
  return success();
}

LogicalResult KernelEmitter::emitIf(Value condition, Block &body) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  return emitBlock(body);
}

void KernelEmitter::rejoin() { assembly("bar.warp.sync -1;", "", {}, {}); }

LogicalResult KernelEmitter::emit(ElectOp op) {
  Location at = loc;
  Value mine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, thread, i32(0));
  if (op.getCta()) {
    Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, warpgroup, i32(0));
    mine = arith::AndIOp::create(builder, loc, mine, first);
  }
  if (failed(emitIf(mine, op.getBody().front())))
    return failure();
  loc = at;
  rejoin();
  return success();
}

LogicalResult KernelEmitter::emit(SpecializeOp op) {
  // What a thread has at entry, where ptxas shares the registers out evenly.
  int64_t registers = 65536 / static_cast<int64_t>(kernel.getThreads()) / 8 * 8;
  Value produces = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, warpgroup, i32(0));
  auto branch = scf::IfOp::create(builder, loc, produces, /*withElseRegion=*/true);
  auto role = [&](uint64_t wanted, scf::YieldOp end, Region &region) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(end);
    std::string change = static_cast<int64_t>(wanted) > registers ? "inc" : "dec";
    assembly("setmaxnreg." + change + ".sync.aligned.u32 " + std::to_string(wanted) + ";", "", {}, {});
    return emitBlock(region.front());
  };
  if (failed(role(op.getProducerRegisters(), branch.thenYield(), op.getProducer())))
    return failure();
  return role(op.getConsumerRegisters(), branch.elseYield(), op.getConsumers());
}

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

void KernelEmitter::set(Value value, Values parts) { values[value] = std::move(parts); }

SmallVector<Type> KernelEmitter::convert(Type type) {
  Type word = builder.getI32Type();
  return TypeSwitch<Type, SmallVector<Type>>(type)
      .Case([&](FragType frag) {
        bool packed = frag.getElement().isBF16();
        return SmallVector<Type>(frag.getColumns() / (packed ? 4 : 2), packed ? word : frag.getElement());
      })
      .Case([](RowsType rows) { return SmallVector<Type>(2, rows.getElement()); })
      .Case([](ColsType cols) { return SmallVector<Type>(cols.getColumns() / 4, cols.getElement()); })
      .Case<SmemType, BarriersType, CellsType>([&](auto) { return SmallVector<Type>{word}; })
      .Default([](Type scalar) { return SmallVector<Type>{scalar}; });
}

KernelEmitter::Values KernelEmitter::expand(ValueRange range) {
  Values parts;
  for (Value value : range)
    llvm::append_range(parts, get(value));
  return parts;
}

KernelEmitter::Values KernelEmitter::assembly(StringRef text, StringRef constraints, ValueRange operands,
                                              ArrayRef<Type> results, bool effects) {
  MLIRContext *context = builder.getContext();
  std::string full = constraints.str();
  if (effects)
    full += full.empty() ? "~{memory}" : ",~{memory}";
  SmallVector<Type> type;
  if (results.size() == 1)
    type.push_back(results.front());
  else if (results.size() > 1)
    type.push_back(LLVM::LLVMStructType::getLiteral(context, results));
  auto op =
      LLVM::InlineAsmOp::create(builder, loc, type, operands, text, full, effects, /*is_align_stack=*/false,
                                LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  if (results.size() <= 1)
    return Values(op->getResults());
  Values parts;
  for (size_t i = 0; i < results.size(); ++i)
    parts.push_back(LLVM::ExtractValueOp::create(builder, loc, op.getRes(), i));
  return parts;
}

Value KernelEmitter::i32(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); }
Value KernelEmitter::i64(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }
Value KernelEmitter::f32(double value) {
  return arith::ConstantFloatOp::create(builder, loc, builder.getF32Type(),
                                        llvm::APFloat(static_cast<float>(value)));
}
Value KernelEmitter::add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
Value KernelEmitter::mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
Value KernelEmitter::shift(Value a, int64_t right) {
  if (right >= 0)
    return arith::ShRUIOp::create(builder, loc, a, i32(right));
  return arith::ShLIOp::create(builder, loc, a, i32(-right));
}
Value KernelEmitter::wide(Value value) {
  return arith::ExtSIOp::create(builder, loc, builder.getI64Type(), value);
}
Value KernelEmitter::less(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}

} // namespace weft::tile
