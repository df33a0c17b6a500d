//===- EmitGlobal.cpp - Fragments and scalars in global memory ------------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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

/// By swaps over a distance of one thread, then of two: of two registers a thread gives the
/// one that is the other's.
void KernelEmitter::exchange(MutableArrayRef<Value> four) {
  for (int64_t distance : {1, 2}) {
    Value upper = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        arith::AndIOp::create(builder, loc, quadLane, i32(distance)), i32(0));
    for (int64_t low : {0, distance == 1 ? 2 : 1}) {
      Value &first = four[low], &second = four[low + distance];
      Value given = arith::SelectOp::create(builder, loc, upper, first, second);
      Value taken = NVVM::ShflOp::create(builder, loc, given.getType(), i32(-1), given, i32(distance),
                                         i32(31), NVVM::ShflKind::bfly, UnitAttr());
      first = arith::SelectOp::create(builder, loc, upper, taken, first);
      second = arith::SelectOp::create(builder, loc, upper, second, taken);
    }
  }
}

/// Bytes from one 32 columns of bf16 to the next, of which a thread of a quad moves a quarter.
static constexpr int64_t kWideBytes = 64, kWideAlignment = 16;

/// Where a thread's first 16 bytes of a row are. Made anew where it is used: kept from before a
/// loop, the places of all rows of all tensors would take more registers than they are worth.
Value KernelEmitter::wideAddress(TypedValue<GlobalType> global, Value offset, Value row, Value stride) {
  Value own = assembly("mov.u32 $0, $1;", "=r,r", {row}, {builder.getI32Type()}).front();
  return stridedAddress(global, add(offset, wide(shift(quadLane, -3))), own, stride);
}

void KernelEmitter::storeWide(StoreFragOp op) {
  const Values parts = get(op.getFrag());
  FragType type = op.getFrag().getType();
  auto word = VectorType::get({4}, builder.getI32Type());
  for (int64_t h = 0; h < 2; ++h) {
    Values words;
    for (int64_t first = 0; first < type.getColumns() / 8; first += 4) {
      Values four;
      for (int64_t j = first; j < first + 4; ++j)
        four.push_back(type.getElement().isBF16() ? parts[2 * j + h]
                                                  : pack(parts[4 * j + 2 * h], parts[4 * j + 2 * h + 1]));
      exchange(four);
      Value all = LLVM::PoisonOp::create(builder, loc, word);
      for (int64_t i = 0; i < 4; ++i)
        all = LLVM::InsertElementOp::create(builder, loc, all, four[i], i32(i));
      words.push_back(all);
    }
    Value row = rowOf(h);
    auto branch = scf::IfOp::create(builder, loc, inRows(row, one(op.getLimit()), op.getTail()),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(branch.thenYield());
    Value base = wideAddress(op.getGlobal(), one(op.getOffset()), row, one(op.getStride()));
    for (auto [number, all] : llvm::enumerate(words))
      LLVM::StoreOp::create(builder, loc, all, advance(base, kWideBytes * static_cast<int64_t>(number)),
                            kWideAlignment);
  }
  rejoin();
}

void KernelEmitter::loadWide(LoadFragOp op) {
  FragType type = op.getType();
  auto word = VectorType::get({4}, builder.getI32Type());
  int64_t count = type.getColumns() / 32;
  Values halves[2];
  for (int64_t h = 0; h < 2; ++h) {
    Value row = rowOf(h), none = LLVM::ZeroOp::create(builder, loc, word);
    auto branch =
        scf::IfOp::create(builder, loc, SmallVector<Type>(count, word), less(row, one(op.getLimit())),
                          /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, Values(count, none));
    builder.setInsertionPointToStart(branch.thenBlock());
    Value base = wideAddress(op.getGlobal(), one(op.getOffset()), row, one(op.getStride()));
    Values words;
    for (int64_t number = 0; number < count; ++number)
      words.push_back(
          LLVM::LoadOp::create(builder, loc, word, advance(base, kWideBytes * number), kWideAlignment));
    scf::YieldOp::create(builder, loc, words);
    halves[h] = Values(branch.getResults());
  }
  rejoin();
  Values pairs(2 * type.getColumns() / 8);
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t number = 0; number < count; ++number) {
      Values four;
      for (int64_t i = 0; i < 4; ++i)
        four.push_back(LLVM::ExtractElementOp::create(builder, loc, halves[h][number], i32(i)));
      exchange(four);
      for (int64_t i = 0; i < 4; ++i)
        pairs[2 * (4 * number + i) + h] = four[i];
    }
  if (type.getElement().isBF16())
    return set(op, std::move(pairs));
  Values parts;
  for (Value pair : pairs)
    parts.append({widen(pair, false), widen(pair, true)});
  set(op, std::move(parts));
}

void KernelEmitter::emit(StoreFragOp op) {
  if (op.getWide())
    return storeWide(op);
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
  if (op.getWide())
    return loadWide(op);
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
