//===- EmitShared.cpp - Tiles in shared memory ----------------------------===//
//
// Swizzle: of a byte offset inside a panel, bits 4.. are xored with bits 7.., as
// many as the swizzle has 16-byte units (PTX ISA, "Swizzling Modes"). Parts of
// tiles start at multiples of 8 rows, where that pattern starts anew.
//
//===----------------------------------------------------------------------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft::tile {

static int64_t rowBytes(SmemType type) { return type.panelColumns() * type.elementBytes(); }
static int64_t panelBytes(SmemType type) { return type.getPitch() * rowBytes(type); }

//===----------------------------------------------------------------------===//
// Parts of rings
//===----------------------------------------------------------------------===//

void KernelEmitter::emit(StageOp op) {
  set(op, {add(one(op.getRing()), mul(one(op.getIndex()), i32(op.getRing().getType().stageBytes())))});
}

void KernelEmitter::emit(SliceOp op) {
  set(op, {add(one(op.getTile()), mul(one(op.getRow()), i32(rowBytes(op.getTile().getType()))))});
}

void KernelEmitter::emit(PanelOp op) {
  int64_t bytes = static_cast<int64_t>(op.getPanel()) * panelBytes(op.getTile().getType());
  set(op, {add(one(op.getTile()), i32(bytes))});
}

void KernelEmitter::emit(HankelOp op) {
  set(op, {add(one(op.getBlocks()), mul(one(op.getRow()), i32(rowBytes(op.getBlocks().getType()))))});
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void KernelEmitter::emit(LoadTileOp op) {
  size_t count = op.getCoordinates().size();
  std::string coordinates, constraints = "r,l,r";
  for (size_t i = 0; i < count; ++i) {
    coordinates += (i ? ", $" : "$") + std::to_string(3 + i);
    constraints += ",r";
  }
  std::string text = "cp.async.bulk.tensor." + std::to_string(count) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {" + coordinates +
                     "}], [$2];";
  Values operands = {one(op.getTile()), one(op.getMap()), barrierAddress(op.getBarriers(), op.getIndex())};
  llvm::append_range(operands, expand(op.getCoordinates()));
  assembly(text, constraints, operands, {});
}

void KernelEmitter::emit(LoadBulkOp op) {
  Value from = elementAddress(op.getGlobal(), one(op.getOffset()));
  assembly("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
           "r,l,r,r",
           {one(op.getTile()), from, i32(op.getTile().getType().tileBytes()),
            barrierAddress(op.getBarriers(), op.getIndex())},
           {});
}

void KernelEmitter::emit(CopyColsOp op) {
  Value from = stridedAddress(op.getGlobal(), one(op.getOffset()), thread, one(op.getStride()));
  Value to = add(one(op.getTile()), shift(thread, -2));
  // With no bytes of the source nothing is read and zeros are written.
  Value bytes = arith::SelectOp::create(builder, loc, less(thread, one(op.getLimit())), i32(4), i32(0));
  Value mine = arith::ExtUIOp::create(builder, loc, builder.getI32Type(),
                                      less(thread, i32(op.getTile().getType().getColumns())));
  assembly("{ .reg .pred mine; setp.ne.s32 mine, $3, 0;\n\t"
           "@mine cp.async.ca.shared.global [$0], [$1], 4, $2; }",
           "r,l,r,r", {to, from, bytes, mine}, {});
  assembly("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r",
           {barrierAddress(op.getBarriers(), op.getIndex())}, {});
}

void KernelEmitter::emit(CopyAsyncOp op) {
  SmemType type = op.getTile().getType();
  int64_t units = type.getColumns() * type.elementBytes() / 16, all = units * type.getRows();
  auto divide = [&](Value a, int64_t b) -> Value { return arith::DivUIOp::create(builder, loc, a, i32(b)); };
  auto copy = [&](int64_t first) {
    Value number = add(thread, i32(first)), row = divide(number, units);
    Value unit = arith::RemUIOp::create(builder, loc, number, i32(units));
    Value from = stridedAddress(op.getGlobal(), one(op.getOffset()), row, one(op.getStride()));
    Value bytes = wide(shift(unit, -4));
    from = LLVM::GEPOp::create(builder, loc, from.getType(), builder.getI8Type(), from,
                               ArrayRef<LLVM::GEPArg>{bytes});
    // Fewer bytes than 16 are followed by zeros; with none, nothing is read.
    Value size = arith::SelectOp::create(builder, loc, less(row, one(op.getLimit())), i32(16), i32(0));
    assembly("cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r",
             {unitAddress(op.getTile(), row, unit), from, size}, {});
  };
  constexpr int64_t kThreads = KernelOp::kWarpgroupThreads;
  int64_t first = 0;
  for (; first + kThreads <= all; first += kThreads)
    copy(first);
  if (first == all)
    return;
  auto rest = scf::IfOp::create(builder, loc, less(thread, i32(all - first)), /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(rest.thenYield());
    copy(first);
  }
  rejoin();
}

void KernelEmitter::emit(CopyCommitOp) { assembly("cp.async.commit_group;", "", {}, {}); }

void KernelEmitter::emit(CopyWaitOp op) {
  assembly("cp.async.wait_group " + std::to_string(op.getPending()) + ";", "", {}, {});
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

Value KernelEmitter::unitAddress(TypedValue<SmemType> tile, Value row, Value unit) {
  SmemType type = tile.getType();
  int64_t bytes = rowBytes(type), units = bytes / 16;
  Value address = add(one(tile), mul(row, i32(bytes)));
  if (type.getPanels() > 1) {
    Value panel = arith::DivUIOp::create(builder, loc, unit, i32(units));
    unit = arith::RemUIOp::create(builder, loc, unit, i32(units));
    address = add(address, mul(panel, i32(panelBytes(type))));
  }
  if (int64_t swizzle = type.getSwizzle()) {
    Value phase = arith::AndIOp::create(builder, loc, shift(mul(row, i32(bytes)), 7), i32(swizzle / 16 - 1));
    unit = arith::XOrIOp::create(builder, loc, unit, phase);
  }
  return add(address, shift(unit, -4));
}

Value KernelEmitter::matrixAddress(TypedValue<SmemType> tile, Value row, int64_t column, bool secondBelow) {
  auto low = [&](Value value, int64_t mask) -> Value {
    return arith::AndIOp::create(builder, loc, value, i32(mask));
  };
  Value odd = low(shift(lane, 3), 1), upper = shift(lane, 4);
  Value down = secondBelow ? odd : upper, right = secondBelow ? upper : odd;
  row = add(add(row, low(lane, 7)), shift(down, -3));
  return unitAddress(tile, row, add(right, i32(column / 8)));
}

KernelEmitter::Values KernelEmitter::loadMatrices(Value address, bool transposed) {
  std::string text = std::string("ldmatrix.sync.aligned.m8n8.x4") + (transposed ? ".trans" : "") +
                     ".shared.b16 {$0, $1, $2, $3}, [$4];";
  SmallVector<Type> words(4, builder.getI32Type());
  return assembly(text, "=r,=r,=r,=r,r", {address}, words);
}

void KernelEmitter::emit(ReadFragOp op) {
  Values parts;
  for (int64_t column = 0; column < op.getType().getColumns(); column += 16)
    llvm::append_range(parts,
                       loadMatrices(matrixAddress(op.getTile(), shift(warp, -4), column, true), false));
  set(op, std::move(parts));
}

void KernelEmitter::emit(WriteFragOp op) {
  const Values &parts = get(op.getFrag());
  int64_t columns = op.getFrag().getType().getColumns();
  if (target.chip == "sm_90a") { // stmatrix
    for (int64_t column = 0; column < columns; column += 16) {
      Values operands = {matrixAddress(op.getTile(), shift(warp, -4), column, true)};
      operands.append(parts.begin() + column / 4, parts.begin() + column / 4 + 4);
      assembly("stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r", operands, {});
    }
    return;
  }
  for (int64_t j = 0; j < columns / 8; ++j)
    for (int64_t h = 0; h < 2; ++h) {
      Value address = add(unitAddress(op.getTile(), rowOf(h), i32(j)), shift(quadLane, -2));
      assembly("st.shared.b32 [$0], $1;", "r,r", {address, parts[2 * j + h]}, {});
    }
}

void KernelEmitter::emit(ReadColsOp op) {
  Values parts;
  SmallVector<Type> pair(2, builder.getF32Type());
  // One address; what differs from it stands in the instruction.
  Value first = add(one(op.getTile()), shift(columnOf(0, 0), -2));
  for (int64_t j = 0; j < op.getType().getColumns() / 8; ++j) {
    std::string text = "ld.shared.v2.f32 {$0, $1}, [$2+" + std::to_string(32 * j) + "];";
    llvm::append_range(parts, assembly(text, "=f,=f,r", {first}, pair));
  }
  set(op, std::move(parts));
}

} // namespace weft::tile
