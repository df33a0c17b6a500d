//===- EmitFragments.cpp - Elements, rows and casts of fragments ----------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace weft::tile {

Value KernelEmitter::rowOf(int64_t h) { return add(add(shift(warp, -4), group), i32(8 * h)); }

Value KernelEmitter::columnOf(int64_t j, int64_t e) { return add(shift(quadLane, -1), i32(8 * j + e)); }

Value KernelEmitter::pack(Value low, Value high) {
  return assembly("cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,f,f", {low, high}, {builder.getI32Type()},
                  /*effects=*/false)
      .front();
}

Value KernelEmitter::widen(Value pair, bool high) {
  Value bits = high ? arith::AndIOp::create(builder, loc, pair, i32(-65536)) : shift(pair, -16);
  return arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits);
}

LogicalResult KernelEmitter::emit(MapOp op) {
  Type shape = op.getResultTypes().front();
  for (Type type : llvm::concat<const Type>(op.getInputs().getTypes(), op.getResultTypes()))
    if (elementOf(type).isBF16())
      return op.emitOpError() << "works on f32 and i32 here, but got " << type;
  bool rows = isa<RowsType>(shape), cols = isa<ColsType>(shape);
  int64_t blocks =
      rows ? 1 : (cols ? cast<ColsType>(shape).getColumns() : cast<FragType>(shape).getColumns()) / 8;
  Block &body = op.getBody().front();
  SmallVector<Values> results(op.getNumResults());
  // Made anew here, as constants from the first on: kept from before a loop, the
  // numbers of all columns would take a register each.
  Value column;
  if (op.getCoordinates() && !rows)
    column = assembly("mov.u32 $0, $1;", "=r,r", {columnOf(0, 0)}, {builder.getI32Type()}).front();
  for (int64_t j = 0; j < blocks; ++j)
    for (int64_t h = 0; h < (cols ? 1 : 2); ++h)
      for (int64_t e = 0; e < (rows ? 1 : 2); ++e) {
        for (auto [input, argument] : llvm::zip(op.getInputs(), body.getArguments())) {
          const Values parts = get(input);
          size_t at = isa<FragType>(input.getType())   ? 4 * j + 2 * h + e
                      : isa<RowsType>(input.getType()) ? h
                      : isa<ColsType>(input.getType()) ? 2 * j + e
                                                       : 0;
          set(argument, {parts[at]});
        }
        if (op.getCoordinates()) {
          size_t first = op.getInputs().size();
          set(body.getArgument(first), {cols ? i32(0) : rowOf(h)});
          set(body.getArgument(first + 1), {rows ? i32(0) : add(column, i32(8 * j + e))});
        }
        for (Operation &inner : body.without_terminator())
          if (failed(emitOp(&inner)))
            return failure();
        for (auto [value, parts] : llvm::zip_equal(body.getTerminator()->getOperands(), results))
          parts.push_back(one(value));
      }
  for (auto [result, parts] : llvm::zip_equal(op.getResults(), results))
    set(result, std::move(parts));
  return success();
}

void KernelEmitter::emit(Exp2Op op) {
  set(op, assembly("ex2.approx.ftz.f32 $0, $1;", "=f,f", {one(op.getX())}, {builder.getF32Type()},
                   /*effects=*/false));
}

LogicalResult KernelEmitter::emit(CallOp op) {
  auto type = LLVM::LLVMFunctionType::get(op.getType(), SmallVector<Type>(op.getOperandTypes()));
  Operation *known = module.lookupSymbol(op.getCallee());
  auto function = dyn_cast_or_null<LLVM::LLVMFuncOp>(known);
  if (known && (!function || !function.isExternal() || function.getFunctionType() != type))
    return op.emitOpError() << "calls @" << op.getCallee() << " as " << type
                            << ", but that name is already taken: "
                            << "expected one type for each function and no kernel of its name";
  if (!function) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    function = LLVM::LLVMFuncOp::create(builder, loc, op.getCallee(), type);
  }
  set(op, Values(LLVM::CallOp::create(builder, loc, function, expand(op.getOperands())).getResults()));
  return success();
}

Value KernelEmitter::fold(Fold kind, Value a, Value b) {
  if (kind == Fold::Add) // with a product that may contract too, one instruction
    return arith::AddFOp::create(builder, loc, a, b, arith::FastMathFlags::contract);
  return arith::MaxNumFOp::create(builder, loc, a, b);
}

Value KernelEmitter::quad(Fold kind, Value value) {
  for (int64_t distance : {1, 2}) {
    Value other = NVVM::ShflOp::create(builder, loc, value.getType(), i32(-1), value, i32(distance), i32(31),
                                       NVVM::ShflKind::bfly, UnitAttr());
    value = fold(kind, value, other);
  }
  return value;
}

void KernelEmitter::emit(ReduceOp op) {
  const Values &parts = get(op.getFrag());
  Values rows;
  for (int64_t h = 0; h < 2; ++h) {
    Value all;
    for (int64_t j = 0; j < op.getFrag().getType().getColumns() / 8; ++j)
      for (int64_t e = 0; e < 2; ++e) {
        Value part = parts[4 * j + 2 * h + e];
        all = all ? fold(op.getFold(), all, part) : part;
      }
    rows.push_back(op.getPartial() ? all : quad(op.getFold(), all));
  }
  set(op, std::move(rows));
}

void KernelEmitter::emit(QuadOp op) {
  Values rows;
  for (Value part : get(op.getRows()))
    rows.push_back(quad(op.getFold(), part));
  set(op, std::move(rows));
}

void KernelEmitter::emit(CastOp op) {
  const Values parts = get(op.getFrag());
  Values cast;
  if (op.getType().getElement().isF32())
    for (Value pair : parts)
      cast.append({widen(pair, false), widen(pair, true)});
  else
    for (size_t i = 0; i < parts.size(); i += 2)
      cast.push_back(pack(parts[i], parts[i + 1]));
  set(op, std::move(cast));
}

void KernelEmitter::emit(ColumnsOp op) {
  const Values parts = get(op.getFrag());
  // Two registers a thread for each 8 columns of pairs, four of f32.
  const size_t eight = op.getType().getElement().isBF16() ? 2 : 4;
  size_t first = op.getFirst() / 8 * eight, count = op.getType().getColumns() / 8 * eight;
  set(op, Values(ArrayRef<Value>(parts).slice(first, count)));
}

void KernelEmitter::emit(ZeroOp op) {
  Values parts;
  for (Type type : convert(op.getType()))
    parts.push_back(type.isF32() ? f32(0) : i32(0));
  set(op, std::move(parts));
}

void KernelEmitter::emit(SplatOp op) { set(op, Values(convert(op.getType()).size(), one(op.getValue()))); }

} // namespace weft::tile
