//===- EmitGlobal.cpp - Fragments and scalars in global memory ------------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft::tile {

static int64_t bytesOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }

Value KernelEmitter::elementAddress(TypedValue<GlobalType> global, Value offset) {
  Value pointer = one(global), bytes = mul(offset, i64(bytesOf(global.getType().getElement())));
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value KernelEmitter::stridedAddress(TypedValue<GlobalType> global, Value offset, Value index, Value stride) {
  return elementAddress(global, add(offset, mul(wide(index), stride)));
}

Value KernelEmitter::advance(Value pointer, int64_t bytes) {
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value KernelEmitter::asElement(Value value, Type element) {
  if (value.getType() == element)
    return value;
  return arith::TruncFOp::create(builder, loc, element, value);
}

Value KernelEmitter::inRows(Value row, Value limit, bool tail) {
  auto predicate = tail ? arith::CmpIPredicate::sge : arith::CmpIPredicate::slt;
  return arith::CmpIOp::create(builder, loc, predicate, row, limit);
}

//===----------------------------------------------------------------------===//
// Fragments: a pair of columns at a time
//===----------------------------------------------------------------------===//

void KernelEmitter::emit(StoreFragOp op) {
  const Values parts = get(op.getFrag());
  FragType type = op.getFrag().getType();
  bool packed = type.getElement().isBF16(), narrow = op.getGlobal().getType().getElement().isBF16();
  auto pairType = VectorType::get({2}, builder.getF32Type());
  for (int64_t h = 0; h < 2; ++h) {
    Value row = rowOf(h);
    auto branch = scf::IfOp::create(builder, loc, inRows(row, one(op.getLimit()), op.getTail()),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    Value offset = add(one(op.getOffset()), wide(columnOf(0, 0)));
    Value base = stridedAddress(op.getGlobal(), offset, row, one(op.getStride()));
    for (int64_t j = 0; j < type.getColumns() / 8; ++j) {
      Value pair;
      if (packed) {
        pair = parts[2 * j + h];
      } else if (narrow) {
        pair = pack(parts[4 * j + 2 * h], parts[4 * j + 2 * h + 1]);
      } else {
        pair = LLVM::PoisonOp::create(builder, loc, pairType);
        for (int64_t e = 0; e < 2; ++e)
          pair = LLVM::InsertElementOp::create(builder, loc, pair, parts[4 * j + 2 * h + e], i32(e));
      }
      LLVM::StoreOp::create(builder, loc, pair, advance(base, 8 * j * (narrow ? 2 : 4)), narrow ? 4 : 8);
    }
  }
  rejoin();
}

void KernelEmitter::emit(LoadFragOp op) {
  FragType type = op.getType();
  bool packed = type.getElement().isBF16(), narrow = op.getGlobal().getType().getElement().isBF16();
  int64_t blocks = type.getColumns() / 8;
  Type word = builder.getI32Type(), single = builder.getF32Type();
  // Words of bf16 leave the branch as they are: widening them there would wait for
  // each half's loads before the next are asked for.
  SmallVector<Type> types(narrow ? blocks : 2 * blocks, narrow ? word : single);
  Values halves[2];
  for (int64_t h = 0; h < 2; ++h) {
    Value row = rowOf(h);
    auto branch =
        scf::IfOp::create(builder, loc, types, less(row, one(op.getLimit())), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, Values(types.size(), narrow ? i32(0) : f32(0)));
    builder.setInsertionPointToStart(branch.thenBlock());
    Value offset = add(one(op.getOffset()), wide(columnOf(0, 0)));
    Value base = stridedAddress(op.getGlobal(), offset, row, one(op.getStride()));
    Values parts;
    for (int64_t j = 0; j < blocks; ++j) {
      Value address = advance(base, 8 * j * (narrow ? 2 : 4));
      if (narrow) {
        parts.push_back(LLVM::LoadOp::create(builder, loc, word, address, 4));
        continue;
      }
      Value pair = LLVM::LoadOp::create(builder, loc, VectorType::get({2}, single), address, 8);
      for (int64_t e = 0; e < 2; ++e)
        parts.push_back(LLVM::ExtractElementOp::create(builder, loc, pair, i32(e)));
    }
    scf::YieldOp::create(builder, loc, parts);
    halves[h] = Values(branch.getResults());
  }
  rejoin();
  Values parts;
  for (int64_t j = 0; j < blocks; ++j)
    for (const Values &half : halves) {
      if (!narrow)
        parts.append(half.begin() + 2 * j, half.begin() + 2 * j + 2);
      else if (packed)
        parts.push_back(half[j]);
      else
        parts.append({widen(half[j], false), widen(half[j], true)});
    }
  set(op, std::move(parts));
}

//===----------------------------------------------------------------------===//
// Rows, columns, scalars
//===----------------------------------------------------------------------===//

Value KernelEmitter::loadIf(Value condition, Value address, Type element, Type result) {
  bool narrow = element.isBF16();
  Value flag = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), condition);
  Type type = narrow ? builder.getI32Type() : result;
  std::string move =
      narrow ? "{ .reg .pred in; .reg .b16 bits, none; setp.ne.s32 in, $2, 0; mov.b16 none, 0;\n\t"
               "mov.b16 bits, none; @in ld.global.b16 bits, [$1]; mov.b32 $0, {none, bits}; }"
             : "{ .reg .pred in; setp.ne.s32 in, $2, 0; mov.b32 $0, 0; @in ld.global.b32 $0, [$1]; }";
  Value loaded = assembly(move, type.isF32() ? "=f,l,r" : "=r,l,r", {address, flag}, {type}).front();
  if (!narrow)
    return loaded;
  return arith::BitcastOp::create(builder, loc, result, loaded);
}

void KernelEmitter::emit(StoreRowsOp op) {
  const Values parts = get(op.getRows());
  Value first = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, quadLane, i32(0));
  for (int64_t h = 0; h < 2; ++h) {
    Value mine =
        arith::AndIOp::create(builder, loc, first, inRows(rowOf(h), one(op.getLimit()), op.getTail()));
    auto branch = scf::IfOp::create(builder, loc, mine, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    Value address = stridedAddress(op.getGlobal(), one(op.getOffset()), rowOf(h), one(op.getStride()));
    LLVM::StoreOp::create(builder, loc, asElement(parts[h], op.getGlobal().getType().getElement()), address);
  }
  rejoin();
}

void KernelEmitter::emit(LoadRowsOp op) {
  Values parts;
  Type element = op.getGlobal().getType().getElement();
  for (int64_t h = 0; h < 2; ++h) {
    Value address = stridedAddress(op.getGlobal(), one(op.getOffset()), rowOf(h), one(op.getStride()));
    parts.push_back(loadIf(inRows(rowOf(h), one(op.getLimit()), op.getTail()), address, element,
                           op.getType().getElement()));
  }
  set(op, std::move(parts));
}

void KernelEmitter::emit(LoadColsOp op) {
  Values parts;
  Type element = op.getGlobal().getType().getElement();
  // Counted from the thread's first column: what differs from it to the others are constants.
  Value column = columnOf(0, 0), room = arith::SubIOp::create(builder, loc, one(op.getLimit()), column);
  Value first = stridedAddress(op.getGlobal(), one(op.getOffset()), column, one(op.getStride()));
  Value step = mul(one(op.getStride()), i64(bytesOf(element)));
  for (int64_t j = 0; j < op.getType().getColumns() / 8; ++j)
    for (int64_t e = 0; e < 2; ++e) {
      int64_t further = 8 * j + e;
      Value bytes = mul(step, i64(further));
      Value address = LLVM::GEPOp::create(builder, loc, first.getType(), builder.getI8Type(), first,
                                          ArrayRef<LLVM::GEPArg>{bytes});
      parts.push_back(loadIf(less(i32(further), room), address, element, op.getType().getElement()));
    }
  set(op, std::move(parts));
}

void KernelEmitter::emit(LoadOp op) {
  Type element = op.getGlobal().getType().getElement();
  Value loaded =
      LLVM::LoadOp::create(builder, loc, element, elementAddress(op.getGlobal(), one(op.getOffset())));
  if (element != op.getType())
    loaded = arith::ExtFOp::create(builder, loc, op.getType(), loaded);
  set(op, {loaded});
}

void KernelEmitter::emit(StoreOp op) {
  auto store = [&] {
    Value address = elementAddress(op.getGlobal(), one(op.getOffset()));
    LLVM::StoreOp::create(builder, loc, asElement(one(op.getValue()), op.getGlobal().getType().getElement()),
                          address);
  };
  if (op->getParentOfType<ElectOp>())
    return store();
  Value mine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, thread, i32(0));
  auto branch = scf::IfOp::create(builder, loc, mine, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    store();
  }
  rejoin();
}

} // namespace weft::tile
