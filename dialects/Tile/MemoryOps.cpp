//===- MemoryOps.cpp - Rules of shared tiles, copies, loads and stores ----===//

#include "dialects/Tile/Constraints.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft::tile;

//===----------------------------------------------------------------------===//
// Parts of rings
//===----------------------------------------------------------------------===//

static LogicalResult verifyPart(Operation *op, Type expected, Type got) {
  if (expected == got)
    return success();
  return op->emitOpError() << "expects a result of type " << expected << ", but got " << got;
}

void StageOp::build(OpBuilder &builder, OperationState &state, Value ring, Value index) {
  build(builder, state, cast<SmemType>(ring.getType()).oneStage(), ring, index);
}

LogicalResult StageOp::verify() { return verifyPart(*this, getRing().getType().oneStage(), getType()); } // C1

void SliceOp::build(OpBuilder &builder, OperationState &state, Value tile, Value row, int64_t rows) {
  build(builder, state, cast<SmemType>(tile.getType()).withRows(rows), tile, row);
}

LogicalResult SliceOp::verify() {
  SmemType tile = getTile().getType();
  int64_t rows = getType().getRows();
  if (rows % 8 != 0 || rows > tile.getRows()) // C2
    return emitOpError() << "expects a multiple of 8 rows, at most " << tile.getRows() << ", but got "
                         << rows;
  if (tile.getStages() != 1)
    return emitOpError() << "expects one stage, but got " << tile << ": take a stage of it first";
  return verifyPart(*this, tile.withRows(rows), getType()); // C1
}

void PanelOp::build(OpBuilder &builder, OperationState &state, Value tile, int64_t panel) {
  build(builder, state, cast<SmemType>(tile.getType()).onePanel(), tile, static_cast<uint64_t>(panel));
}

LogicalResult PanelOp::verify() {
  SmemType tile = getTile().getType();
  if (getPanel() >= static_cast<uint64_t>(tile.getPanels())) // C1
    return emitOpError() << "expects a panel below " << tile.getPanels() << ", but got "
                         << static_cast<int64_t>(getPanel());
  if (tile.getStages() != 1)
    return emitOpError() << "expects one stage, but got " << tile << ": take a stage of it first";
  return verifyPart(*this, tile.onePanel(), getType()); // C2
}

static constexpr int64_t kBlock = 8; // rows and columns of a block of tile.hankel

void HankelOp::build(OpBuilder &builder, OperationState &state, Value blocks, Value row, int64_t columns) {
  auto type =
      SmemType::get(builder.getContext(), 1, FragType::kFragRows, columns,
                    cast<SmemType>(blocks.getType()).getElement(), /*swizzle=*/0, columns / kBlock, kBlock);
  build(builder, state, type, blocks, row);
}

LogicalResult HankelOp::verify() {
  SmemType blocks = getBlocks().getType(), result = getType();
  if (!isTile(blocks) || blocks.getPanels() != 1 || blocks.getColumns() != kBlock ||
      blocks.getSwizzle() != 0) // C1
    return emitOpError() << "expects one stage of bf16 in rows of " << kBlock << " without swizzle, but got "
                         << blocks;
  int64_t columns = result.getColumns(), rows = FragType::kFragRows + columns - kBlock;
  if (columns % kBlock != 0 ||
      result != SmemType::get(getContext(), 1, FragType::kFragRows, columns, blocks.getElement(), 0,
                              columns / kBlock, kBlock) ||
      rows > blocks.getRows()) // C2
    return emitOpError() << "expects a result of " << FragType::kFragRows << " rows in panels of " << kBlock
                         << " columns, pitch " << kBlock << ", from at least " << rows << " rows, but got "
                         << result << " of " << blocks;
  return success();
}

LogicalResult WriteOp::verify() { return verifyOneThread(*this); } // C1

//===----------------------------------------------------------------------===//
// Copies into shared memory
//===----------------------------------------------------------------------===//

/// Bytes at whose multiples a tensor copy starts along the innermost dimension, as in
/// global memory all copies do. The PTX ISA does not say so of tensor copies; on an
/// H200 others end in CUDA_ERROR_ILLEGAL_INSTRUCTION.
static constexpr int64_t kCopyUnit = 16;

LogicalResult LoadTileOp::verify() {
  if (failed(verifyOneThread(*this))) // C1
    return failure();
  SmemType tile = getTile().getType();
  if (tile.getStages() != 1 || tile.getPanels() != 1 || tile.getRows() > 256 || tile.getColumns() > 256) // C2
    return emitOpError() << "expects one panel of one stage, at most 256 by 256, but got " << tile;
  size_t count = getCoordinates().size();
  if (count < 1 || count > 5) // C3
    return emitOpError() << "expects 1 to 5 coordinates, but got " << count;
  APInt first;
  if (matchPattern(getCoordinates().front(), m_ConstantInt(&first)) &&
      first.getSExtValue() * tile.elementBytes() % kCopyUnit != 0) // C4: the device faults
    return emitOpError() << "expects a first coordinate at a multiple of " << kCopyUnit << " bytes, but got "
                         << first.getSExtValue() << " for " << tile.getElement();
  return success();
}

LogicalResult LoadBulkOp::verify() {
  if (failed(verifyOneThread(*this))) // C1
    return failure();
  SmemType tile = getTile().getType();
  if (tile.getStages() != 1 || tile.getPanels() != 1 || tile.getSwizzle() != 0 ||
      tile.getElement() != getGlobal().getType().getElement()) // C2
    return emitOpError() << "expects one panel of " << getGlobal().getType().getElement()
                         << " without swizzle, but got " << tile;
  if (tile.tileBytes() % 16 != 0) // C3
    return emitOpError() << "expects a multiple of 16 bytes, but got " << tile.tileBytes();
  return success();
}

LogicalResult CopyColsOp::verify() {
  SmemType tile = getTile().getType();
  if (!isPlainRow(tile) || !tile.getElement().isF32() || tile.getColumns() > kArrivals) // C1
    return emitOpError() << "expects one row of at most " << kArrivals << " f32 without swizzle, but got "
                         << tile;
  if (!getGlobal().getType().getElement().isF32()) // C2
    return emitOpError() << "expects elements of f32, but got " << getGlobal().getType();
  return success();
}

LogicalResult CopyAsyncOp::verify() {
  SmemType tile = getTile().getType();
  if (tile.getStages() != 1 || tile.getElement() != getGlobal().getType().getElement()) // C1
    return emitOpError() << "expects one stage of " << getGlobal().getType().getElement() << ", but got "
                         << tile;
  if (tile.panelColumns() * tile.elementBytes() % 16 != 0) // C2
    return emitOpError() << "expects a panel's row of a multiple of 16 bytes, but got "
                         << tile.panelColumns() * tile.elementBytes();
  return success();
}

LogicalResult CopyWaitOp::verify() {
  auto pending = static_cast<int64_t>(getPending());
  if (pending < 0) // C1
    return emitOpError() << "expects a number of groups from 0 on, but got " << pending;
  return success();
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Values of `value` lie in elements of `global`: the same type, or bf16 for f32.
static LogicalResult verifyElements(Operation *op, Type value, GlobalType global) {
  if (convertible(value, global.getElement()))
    return success();
  return op->emitOpError() << "expects elements of " << value << (value.isF32() ? " or bf16" : "")
                           << ", but got " << global;
}

static LogicalResult verifyFragElements(Operation *op, FragType frag, GlobalType global, bool wide) {
  constexpr int64_t kWide = 32;                              // a quad's 16 bytes each
  if (failed(verifyElements(op, frag.getElement(), global))) // C1
    return failure();
  if (wide && (!global.getElement().isBF16() || frag.getColumns() % kWide != 0)) // C2
    return op->emitOpError() << "expects elements of bf16 and a multiple of " << kWide
                             << " columns with 'wide', but got " << global << " and " << frag;
  return success();
}

LogicalResult StoreFragOp::verify() {
  return verifyFragElements(*this, getFrag().getType(), getGlobal().getType(), getWide());
}

LogicalResult LoadFragOp::verify() {
  return verifyFragElements(*this, getType(), getGlobal().getType(), getWide());
}

LogicalResult StoreRowsOp::verify() {
  return verifyElements(*this, elementOf(getRows().getType()), getGlobal().getType()); // C1
}

LogicalResult LoadRowsOp::verify() {
  return verifyElements(*this, elementOf(getType()), getGlobal().getType()); // C1
}

LogicalResult LoadColsOp::verify() {
  return verifyElements(*this, elementOf(getType()), getGlobal().getType()); // C1
}

LogicalResult LoadOp::verify() { return verifyElements(*this, getType(), getGlobal().getType()); } // C1

LogicalResult StoreOp::verify() {
  return verifyElements(*this, getValue().getType(), getGlobal().getType()); // C1
}

//===----------------------------------------------------------------------===//
// Fragments and shared memory
//===----------------------------------------------------------------------===//

static LogicalResult verifyFragTile(Operation *op, FragType frag, SmemType tile) {
  if (!isTile(tile) || !frag.getElement().isBF16()) // C1
    return op->emitOpError() << "expects a fragment and one stage of bf16, but got " << frag << " and "
                             << tile;
  if (frag.getRows() != tile.getRows() || frag.getColumns() != tile.getColumns()) // C2
    return op->emitOpError() << "expects a tile of " << frag.getRows() << " x " << frag.getColumns()
                             << ", but got " << tile;
  return success();
}

LogicalResult ReadFragOp::verify() { return verifyFragTile(*this, getType(), getTile().getType()); }

LogicalResult WriteFragOp::verify() {
  return verifyFragTile(*this, getFrag().getType(), getTile().getType());
}

LogicalResult ReadColsOp::verify() {
  SmemType tile = getTile().getType();
  if (!isPlainRow(tile) || !tile.getElement().isF32() || !elementOf(getType()).isF32()) // C1
    return emitOpError() << "expects one row of f32 without swizzle, but got " << tile << " for "
                         << getType();
  if (tile.getColumns() != getType().getColumns()) // C2
    return emitOpError() << "expects as many elements as columns, " << getType().getColumns() << ", but got "
                         << tile;
  return success();
}
