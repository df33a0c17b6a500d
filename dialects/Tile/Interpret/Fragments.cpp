//===- Fragments.cpp - Fragments to and from memory -----------------------===//

#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace mlir;

namespace weft::tile {

absl::Status Cta::performMemory(Warpgroup &w, Operation *op) {
  if (auto tile = dyn_cast<LoadTileOp>(op))
    return issueTile(w, tile);
  if (auto bulk = dyn_cast<LoadBulkOp>(op))
    return issueBulk(w, bulk);
  if (auto cols = dyn_cast<CopyColsOp>(op))
    return issueCols(w, cols);
  if (auto copy = dyn_cast<CopyAsyncOp>(op))
    return issueAsync(w, copy);
  if (isa<CopyCommitOp>(op))
    return ++w.copyGroups, absl::OkStatus();
  if (auto wait = dyn_cast<CopyWaitOp>(op))
    return waitCopies(w, wait);
  if (auto load = dyn_cast<LoadFragOp>(op))
    return loadFrag(w, load);
  if (auto store = dyn_cast<StoreFragOp>(op))
    return storeFrag(w, store);
  if (auto load = dyn_cast<LoadRowsOp>(op))
    return loadLine(w, op, load.getType().getRows(), kQuad);
  if (auto load = dyn_cast<LoadColsOp>(op))
    return loadLine(w, op, load.getType().getColumns(), 1);
  if (auto store = dyn_cast<StoreRowsOp>(op))
    return storeRows(w, store);
  if (auto load = dyn_cast<LoadOp>(op)) {
    Value &result = at(w, load.getResult());
    return readGlobal(op, at(w, load.getGlobal()).index, integer(w, load.getOffset()), result.number,
                      &result.integer);
  }
  if (auto store = dyn_cast<StoreOp>(op)) {
    const Value &value = at(w, store.getValue());
    return writeGlobal(op, at(w, store.getGlobal()).index, integer(w, store.getOffset()), value.number,
                       value.integer);
  }
  return performShared(w, op);
}

namespace {
/// Rows [first, end) of `count` that a limit leaves.
struct Rows {
  int64_t first, end;
  Rows(int64_t count, int64_t limit, bool tail)
      : first(tail ? std::clamp<int64_t>(limit, 0, count) : 0), end(tail ? count : std::min(count, limit)) {}
};
} // namespace

/// Threads move two elements at once, or eight: where rows have to start.
static int64_t stepOf(bool wide) { return wide ? 8 : 2; }
static bool isAligned(int64_t offset, int64_t stride, bool wide) {
  return ((offset | stride) & (stepOf(wide) - 1)) == 0;
}

absl::Status Cta::loadFrag(Warpgroup &w, LoadFragOp op) {
  int64_t offset = integer(w, op.getOffset()), stride = integer(w, op.getStride()),
          rows = op.getType().getRows(), columns = op.getType().getColumns();
  if (!isAligned(offset, stride, op.getWide()))
    return fault(kMisaligned, op,
                 absl::StrCat("offset ", offset, " and stride ", stride, " have to be multiples of ",
                              stepOf(op.getWide())));
  auto result = std::make_shared<Registers>();
  result->numbers.assign(static_cast<size_t>(rows * columns), 0.0f);
  for (int64_t row = 0; row < std::min(rows, integer(w, op.getLimit())); ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (absl::Status status =
              readGlobal(op, at(w, op.getGlobal()).index, offset + row * stride + column,
                         result->numbers[static_cast<size_t>(row * columns + column)], nullptr);
          !status.ok())
        return status;
  give(w, op.getResult(), std::move(result));
  return absl::OkStatus();
}

absl::Status Cta::storeFrag(Warpgroup &w, StoreFragOp op) {
  absl::StatusOr<RegistersRef> frag = settled(w, op, op.getFrag());
  if (!frag.ok())
    return frag.status();
  int64_t offset = integer(w, op.getOffset()), stride = integer(w, op.getStride());
  int64_t rows = op.getFrag().getType().getRows(), columns = op.getFrag().getType().getColumns();
  if (!isAligned(offset, stride, op.getWide()))
    return fault(kMisaligned, op,
                 absl::StrCat("offset ", offset, " and stride ", stride, " have to be multiples of ",
                              stepOf(op.getWide())));
  Rows stored(rows, integer(w, op.getLimit()), op.getTail());
  for (int64_t row = stored.first; row < stored.end; ++row)
    for (int64_t column = 0; column < columns; ++column)
      if (absl::Status status = writeGlobal(op, at(w, op.getGlobal()).index, offset + row * stride + column,
                                            (*frag)->numbers[static_cast<size_t>(row * columns + column)], 0);
          !status.ok())
        return status;
  return absl::OkStatus();
}

/// tile.load_rows and tile.load_cols: each value `lanes` times.
absl::Status Cta::loadLine(Warpgroup &w, Operation *op, int64_t count, int64_t lanes) {
  int64_t offset = integer(w, op->getOperand(1)), stride = integer(w, op->getOperand(2)),
          limit = integer(w, op->getOperand(3));
  auto result = std::make_shared<Registers>();
  bool integers = elementOf(op->getResult(0).getType()).isInteger(32);
  if (integers)
    result->integers.assign(static_cast<size_t>(count * lanes), 0);
  else
    result->numbers.assign(static_cast<size_t>(count * lanes), 0.0f);
  Rows loaded(count, limit, op->hasAttr("tail"));
  for (int64_t i = loaded.first; i < loaded.end; ++i) {
    float number = 0;
    int64_t value = 0;
    if (absl::Status status =
            readGlobal(op, at(w, op->getOperand(0)).index, offset + i * stride, number, &value);
        !status.ok())
      return status;
    for (int64_t lane = 0; lane < lanes; ++lane)
      if (integers)
        result->integers[static_cast<size_t>(i * lanes + lane)] = value;
      else
        result->numbers[static_cast<size_t>(i * lanes + lane)] = number;
  }
  give(w, op->getResult(0), std::move(result));
  return absl::OkStatus();
}

absl::Status Cta::storeRows(Warpgroup &w, StoreRowsOp op) {
  absl::StatusOr<RegistersRef> rows = settled(w, op, op.getRows());
  if (!rows.ok())
    return rows.status();
  int64_t offset = integer(w, op.getOffset()), stride = integer(w, op.getStride());
  bool integers = !(*rows)->integers.empty();
  Rows stored(FragType::kFragRows, integer(w, op.getLimit()), op.getTail());
  for (int64_t row = stored.first; row < stored.end; ++row) {
    auto first = static_cast<size_t>(row * kQuad);
    for (size_t lane = first + 1; lane < first + kQuad && schedule.judge && !integers; ++lane)
      if (float a = (*rows)->numbers[first], b = (*rows)->numbers[lane]; a != b && (a == a || b == b))
        return fault(kPartialRows, op,
                     absl::StrCat("row ", row, " differs between the threads of its quad, ", a, " and ", b,
                                  ": tile.quad first"));
    if (absl::Status status =
            writeGlobal(op, at(w, op.getGlobal()).index, offset + row * stride,
                        integers ? 0 : (*rows)->numbers[first], integers ? (*rows)->integers[first] : 0);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Cta::performShared(Warpgroup &w, Operation *op) {
  if (auto write = dyn_cast<WriteFragOp>(op)) {
    absl::StatusOr<RegistersRef> frag = settled(w, op, write.getFrag());
    if (!frag.ok())
      return frag.status();
    const TileRef tile = at(w, write.getTile()).tile;
    if (absl::Status status = judgeWrite(w, op, tile, /*byCopy=*/false); !status.ok())
      return status;
    writeTile(tile, (*frag)->numbers);
    return noteWrite(w, tile, Writer::Plain, sources.plain(w.index), w.now);
  }
  if (!isa<ReadFragOp, ReadColsOp>(op))
    return absl::UnimplementedError(
        absl::StrCat("the tile interpreter gives '", op->getName().getStringRef().str(), "' no meaning"));
  const TileRef tile = at(w, op->getOperand(0)).tile;
  if (absl::Status status = judgeRead(w, op, tile, /*byProduct=*/false, 0); !status.ok())
    return status;
  auto result = std::make_shared<Registers>();
  readTile(tile, result->numbers);
  give(w, op->getResult(0), std::move(result));
  return absl::OkStatus();
}

} // namespace weft::tile
