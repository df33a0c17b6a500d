//===- Tiles.cpp - Parts of rings and their elements ----------------------===//

#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

#include <limits>

using namespace mlir;

namespace weft::tile {

absl::Status Cta::performTileRef(Warpgroup &w, Operation *op) {
  TileRef tile = at(w, op->getOperand(0)).tile;
  if (auto stage = dyn_cast<StageOp>(op)) {
    tile.stage = integer(w, stage.getIndex());
    if (tile.stage < 0 || tile.stage >= rings[tile.ring].stages)
      return fault(kOutOfTile, op, absl::StrCat("stage ", tile.stage, " of ", rings[tile.ring].stages));
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    int64_t row = integer(w, slice.getRow()), rows = slice.getType().getRows();
    if (row < 0 || row + rows > tile.rows || row % 8 != 0)
      return fault(kOutOfTile, op,
                   absl::StrCat("rows ", row, " to ", row + rows, " of a tile of ", tile.rows,
                                "; a slice starts at a multiple of 8"));
    tile.row += row;
    tile.rows = rows;
  } else if (auto hankel = dyn_cast<HankelOp>(op)) {
    SmemType type = hankel.getType();
    int64_t row = integer(w, hankel.getRow()),
            rows = type.getRows() + (type.getPanels() - 1) * type.getPitch();
    if (row < 0 || row + rows > tile.rows || row % type.getPitch() != 0)
      return fault(kOutOfTile, op,
                   absl::StrCat("rows ", row, " to ", row + rows, " of blocks of ", tile.rows,
                                "; it starts at a multiple of ", type.getPitch()));
    tile.row += row;
    tile.rows = type.getRows();
    tile.panels = type.getPanels();
    tile.pitch = type.getPitch();
  } else {
    tile.panel += static_cast<int64_t>(cast<PanelOp>(op).getPanel());
    tile.panels = 1;
  }
  at(w, op->getResult(0)).tile = tile;
  return absl::OkStatus();
}

void Cta::readTile(const TileRef &tile, std::vector<float> &rowMajor) const {
  const Ring &ring = rings[tile.ring];
  const auto width = static_cast<size_t>(ring.width);
  const size_t columns = width * static_cast<size_t>(tile.panels);
  rowMajor.resize(columns * static_cast<size_t>(tile.rows));
  for (int64_t panel = 0; panel < tile.panels; ++panel)
    for (int64_t row = 0; row < tile.rows; ++row)
      std::copy_n(ring.data.data() + ring.rowIndex(tile, panel, row) * width, width,
                  rowMajor.data() + static_cast<size_t>(row) * columns + static_cast<size_t>(panel) * width);
}

void Cta::readTransposed(const TileRef &tile, std::vector<float> &columnMajor) const {
  const Ring &ring = rings[tile.ring];
  const auto width = static_cast<size_t>(ring.width), rows = static_cast<size_t>(tile.rows);
  columnMajor.resize(rows * width * static_cast<size_t>(tile.panels));
  for (int64_t panel = 0; panel < tile.panels; ++panel)
    for (size_t row = 0; row < rows; ++row) {
      const float *from = ring.data.data() + ring.rowIndex(tile, panel, static_cast<int64_t>(row)) * width;
      float *to = columnMajor.data() + static_cast<size_t>(panel) * width * rows + row;
      for (size_t column = 0; column < width; ++column)
        to[column * rows] = from[column];
    }
}

void Cta::writeTile(const TileRef &tile, llvm::ArrayRef<float> rowMajor) {
  Ring &ring = rings[tile.ring];
  const auto width = static_cast<size_t>(ring.width);
  const size_t columns = width * static_cast<size_t>(tile.panels);
  for (int64_t panel = 0; panel < tile.panels; ++panel)
    for (int64_t row = 0; row < tile.rows; ++row)
      std::copy_n(rowMajor.data() + static_cast<size_t>(row) * columns + static_cast<size_t>(panel) * width,
                  width, ring.data.data() + ring.rowIndex(tile, panel, row) * width);
}

void Cta::poison(const TileRef &tile) {
  Ring &ring = rings[tile.ring];
  const auto width = static_cast<size_t>(ring.width);
  for (int64_t panel = 0; panel < tile.panels; ++panel)
    for (int64_t row = 0; row < tile.rows; ++row)
      std::fill_n(ring.data.data() + ring.rowIndex(tile, panel, row) * width, width,
                  std::numeric_limits<float>::quiet_NaN());
}

} // namespace weft::tile
