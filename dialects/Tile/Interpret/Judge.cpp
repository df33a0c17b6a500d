//===- Judge.cpp - May this warpgroup touch these rows? -------------------===//
//
// Each row of shared memory knows its last write and the reads since. An access
// counts only on what its warpgroup's clock holds, whatever the order of this run
// was: a fault shows under most schedules, not only in the unlucky ones.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

using namespace mlir;

namespace weft::tile {

template <typename Fn> absl::Status Cta::eachRow(const TileRef &tile, Fn fn) {
  Ring &ring = rings[tile.ring];
  for (int64_t panel = 0; panel < tile.panels; ++panel)
    for (int64_t row = 0; row < tile.rows; ++row)
      if (absl::Status status = fn(ring.rows[ring.rowIndex(tile, panel, row)], tile.row + row); !status.ok())
        return status;
  return absl::OkStatus();
}

std::string Cta::where(const TileRef &tile, int64_t row) const {
  return absl::StrCat("row ", row, " of stage ", tile.stage, " of ring ", tile.ring);
}

/// `at`: the row's number in its tile. Products read what plain writes and cp.async left only behind a fence.
absl::Status Cta::judgeRow(const Warpgroup &w, Operation *op, const TileRef &tile, const RowState &row,
                           int64_t at, bool byProduct) const {
  auto says = [&](std::string_view name, std::string_view what) {
    return fault(name, op, absl::StrCat(where(tile, at), absl::string_view(what.data(), what.size())));
  };
  switch (row.writer) {
  case Writer::None:
    return says(kMissingWait, " was never written");
  case Writer::Copy:
    if (w.clock[row.source] < row.number)
      return says(kMissingWait, absl::StrCat(" comes by a copy that warpgroup ", w.index,
                                             " has not waited for: tile.wait for its barrier first"));
    if (!row.landed)
      return says(kBytesDiffer,
                  ": its barrier's phase ended before the copy did; expect the bytes of all copies");
    return absl::OkStatus();
  case Writer::Plain:
    if (w.clock[sources.plain(row.owner)] < row.number)
      return says(kMissingWait,
                  absl::StrCat(" was written by warpgroup ", row.owner, "; put tile.sync of both between"));
    if (byProduct && w.clock[sources.fenced(row.owner)] < row.number)
      return says(kMissingFence, absl::StrCat(" was written by warpgroup ", row.owner,
                                              " without tile.fence_async before the tile.sync"));
    return absl::OkStatus();
  case Writer::Thread:
    if (w.clock[row.source] < row.number)
      return says(kMissingWait, absl::StrCat(" was written by a thread of warpgroup ", row.owner,
                                             "; put its tile.arrive and a tile.wait between"));
    return absl::OkStatus();
  case Writer::CopyAsync:
    if (w.clock[sources.copies(row.owner)] < row.number)
      return says(kMissingWait, absl::StrCat(" comes by tile.copy_async of warpgroup ", row.owner,
                                             "; put tile.copy_wait and tile.sync between"));
    if (byProduct && w.clock[sources.shown(row.owner)] < row.number)
      return says(kMissingFence, " came by tile.copy_async without tile.fence_async before the tile.sync");
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

/// Judges and notes a read: by products of `group` (tile.product), or a plain one.
absl::Status Cta::judgeRead(Warpgroup &w, Operation *op, const TileRef &tile, bool byProduct, int64_t group) {
  if (!schedule.judge)
    return absl::OkStatus();
  return eachRow(tile, [&](RowState &row, int64_t at) {
    if (absl::Status status = judgeRow(w, op, tile, row, at, byProduct); !status.ok())
      return status;
    (byProduct ? row.products : row.plainReads)[w.index] = byProduct ? group : w.now;
    return absl::OkStatus();
  });
}

/// Nobody may still read or write the rows that `op` of `w` overwrites.
absl::Status Cta::judgeWrite(Warpgroup &w, Operation *op, const TileRef &tile, bool byCopy) {
  if (!schedule.judge)
    return absl::OkStatus();
  return eachRow(tile, [&](RowState &row, int64_t at) -> absl::Status {
    for (size_t reader = 0; reader < sources.warpgroups; ++reader) {
      bool products = w.clock[sources.products(reader)] < row.products[reader];
      if (products || w.clock[sources.plain(reader)] < row.plainReads[reader])
        return fault(kEarlyRelease, op,
                     absl::StrCat(where(tile, at), " may still be read by ", products ? "products of " : "",
                                  "warpgroup ", reader,
                                  "; it has to end its reads and arrive where warpgroup ", w.index,
                                  " waits"));
    }
    return row.writer == Writer::None ? absl::OkStatus() : judgeRow(w, op, tile, row, at, byCopy);
  });
}

void Cta::markLanded(const TileRef &tile) {
  (void)eachRow(tile, [](RowState &row, int64_t) {
    row.landed = true;
    return absl::OkStatus();
  });
}

absl::Status Cta::noteWrite(Warpgroup &w, const TileRef &tile, Writer writer, size_t source, int64_t number) {
  return eachRow(tile, [&](RowState &row, int64_t) {
    row.writer = writer;
    row.landed = writer != Writer::Copy;
    row.owner = w.index;
    row.source = source;
    row.number = number;
    std::fill(row.plainReads.begin(), row.plainReads.end(), 0);
    std::fill(row.products.begin(), row.products.end(), 0);
    return absl::OkStatus();
  });
}

} // namespace weft::tile
