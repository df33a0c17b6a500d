//===- Items.cpp - Numbers of items, and cells ----------------------------===//

#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

#include <bit>

using namespace mlir;

namespace weft::tile {

/// How many items a CTA gets is drawn, on average its share of those that are left; the last takes them all.
absl::Status Cta::nextItem(Warpgroup &w, NextItemOp op) {
  auto items = static_cast<int64_t>(kernel.getItems());
  if (told && schedule.judge)
    return fault(kItemsLeft, op,
                 "the CTA has been told that nothing is left, and asks again: the counter of the next launch "
                 "would not start from 0");
  int64_t left = items - deal.next, share = left / deal.ctas;
  bool more = left > 0 && (deal.ctas == 1 || draw(static_cast<uint64_t>(share) + 1) != 0);
  told |= !more;
  at(w, op.getResult()).integer = more ? deal.next++ : items + schedule.ctas - deal.ctas;
  return absl::OkStatus();
}

absl::StatusOr<TileRef> Cta::cellOf(Warpgroup &w, Operation *op, mlir::Value cells, mlir::Value index) {
  TileRef cell = at(w, cells).tile;
  cell.stage = integer(w, index);
  if (cell.stage < 0 || cell.stage >= rings[cell.ring].stages)
    return fault(kOutOfTile, op, absl::StrCat("cell ", cell.stage, " of ", rings[cell.ring].stages));
  return cell;
}

absl::Status Cta::writeCell(Warpgroup &w, WriteOp op) {
  absl::StatusOr<TileRef> cell = cellOf(w, op, op.getCells(), op.getIndex());
  if (!cell.ok())
    return cell.status();
  if (absl::Status status = judgeWrite(w, op, *cell, /*byCopy=*/false); !status.ok())
    return status;
  writeTile(*cell, std::bit_cast<float>(static_cast<int32_t>(integer(w, op.getValue()))));
  w.clock[sources.thread(w.index)] = ++w.threadWrites;
  return noteWrite(w, *cell, Writer::Thread, sources.thread(w.index), w.threadWrites);
}

absl::Status Cta::readCell(Warpgroup &w, ReadOp op) {
  absl::StatusOr<TileRef> cell = cellOf(w, op, op.getCells(), op.getIndex());
  if (!cell.ok())
    return cell.status();
  if (absl::Status status = judgeRead(w, op, *cell, /*byProduct=*/false, 0); !status.ok())
    return status;
  std::vector<float> bits;
  readTile(*cell, bits);
  at(w, op.getResult()).integer = std::bit_cast<int32_t>(bits.front());
  return absl::OkStatus();
}

} // namespace weft::tile
