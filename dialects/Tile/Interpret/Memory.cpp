//===- Memory.cpp - Copies, loads and stores ------------------------------===//

#include "dialects/Tile/Interpret/Arithmetic.h"
#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace mlir;

namespace weft::tile {

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

static absl::string_view nameOf(Element element) {
  return element == Element::Bf16 ? "bf16" : element == Element::F32 ? "f32" : "i32";
}

/// Gives `number`, or `integer` where elements are i32.
absl::Status Cta::readGlobal(Operation *op, size_t parameter, int64_t at, float &number, int64_t *integer) {
  const Buffer &buffer = *arguments.globals[parameter];
  if (at < 0 || at >= static_cast<int64_t>(buffer.size()))
    return fault(kOutOfBounds, op,
                 absl::StrCat("reads element ", at, " of global ", parameter, ", which has ", buffer.size(),
                              " (", nameOf(buffer.element), ")"));
  if (buffer.element == Element::I32)
    *integer = buffer.integers[static_cast<size_t>(at)];
  else
    number = buffer.values[static_cast<size_t>(at)];
  return absl::OkStatus();
}

absl::Status Cta::writeGlobal(Operation *op, size_t parameter, int64_t at, float number, int64_t integer) {
  Buffer &buffer = *arguments.globals[parameter];
  if (at < 0 || at >= static_cast<int64_t>(buffer.size()))
    return fault(kOutOfBounds, op,
                 absl::StrCat("writes element ", at, " of global ", parameter, ", which has ", buffer.size(),
                              " (", nameOf(buffer.element), ")"));
  auto place = static_cast<size_t>(at);
  int32_t &writer = writers[parameter][place];
  auto self = static_cast<int32_t>(this->number + 1);
  if (schedule.judge && writer != 0 && writer != self)
    return fault(kWrittenTwice, op,
                 absl::StrCat("element ", at, " of global ", parameter, " was written by CTA ", writer - 1,
                              ": the last one wins, and which that is depends on the launch"));
  writer = self;
  if (buffer.element == Element::I32)
    buffer.integers[place] = static_cast<int32_t>(integer);
  else
    buffer.values[place] = buffer.element == Element::Bf16 ? roundToBf16(number) : number;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Copies into shared memory
//===----------------------------------------------------------------------===//

absl::Status Cta::issueTile(Warpgroup &w, LoadTileOp op) {
  const TileRef &tile = at(w, op.getTile()).tile;
  SmemType type = op.getTile().getType();
  PendingCopy copy{op, tile, {}, at(w, op.getMap()).index, 0, 0};
  const TensorMap &map = arguments.maps[copy.parameter];
  int64_t elements = 1;
  for (int64_t size : map.box)
    elements *= size;
  if (elements != type.getRows() * type.getColumns() || map.box[0] != type.getColumns() ||
      map.swizzle != type.getSwizzle() ||
      !(map.buffer->element == Element::Bf16) == type.getElement().isBF16() ||
      op.getCoordinates().size() != map.dims.size())
    return fault(kOutOfTile, op,
                 absl::StrCat("the box of map ", copy.parameter, " has ", elements, " elements, ", map.box[0],
                              " in a row, swizzle ", map.swizzle, " and ", map.dims.size(),
                              " coordinates; the tile has ", type.getRows(), " x ", type.getColumns(),
                              ", swizzle ", type.getSwizzle()));
  for (mlir::Value coordinate : op.getCoordinates())
    copy.coordinates.push_back(integer(w, coordinate));
  // The device's rules, seen on an H200: an illegal instruction, a misaligned address.
  if (copy.coordinates[0] * type.elementBytes() % 16 != 0)
    return fault(kMisaligned, op,
                 absl::StrCat("the box starts at element ", copy.coordinates[0],
                              " of the innermost dimension, which is no multiple of 16 bytes"));
  const Ring &ring = rings[tile.ring];
  auto start = static_cast<int64_t>(ring.rowIndex(tile, 0, 0)) * ring.width * type.elementBytes();
  if (start % 128 != 0)
    return fault(kMisaligned, op, absl::StrCat("byte ", start, " of its ring is no multiple of 128"));
  absl::StatusOr<size_t> barrier = barrierOf(w, op, op.getBarriers(), op.getIndex());
  if (!barrier.ok())
    return barrier.status();
  copy.barrier = *barrier;
  return issueOnto(w, std::move(copy));
}

absl::Status Cta::issueBulk(Warpgroup &w, LoadBulkOp op) {
  PendingCopy copy{op, at(w, op.getTile()).tile, {integer(w, op.getOffset())}, at(w, op.getGlobal()).index, 0,
                   0};
  int64_t bytes = op.getTile().getType().elementBytes();
  if (copy.coordinates[0] * bytes % 16 != 0)
    return fault(kMisaligned, op,
                 absl::StrCat("element ", copy.coordinates[0], " does not start at a multiple of 16 bytes"));
  absl::StatusOr<size_t> barrier = barrierOf(w, op, op.getBarriers(), op.getIndex());
  if (!barrier.ok())
    return barrier.status();
  copy.barrier = *barrier;
  return issueOnto(w, std::move(copy));
}

absl::Status Cta::issueCols(Warpgroup &w, CopyColsOp op) {
  PendingCopy copy{op, at(w, op.getTile()).tile, {}, at(w, op.getGlobal()).index, 0, 0};
  for (mlir::Value value : {op.getOffset(), op.getStride(), op.getLimit()})
    copy.coordinates.push_back(integer(w, value));
  absl::StatusOr<size_t> barrier = barrierOf(w, op, op.getBarriers(), op.getIndex());
  if (!barrier.ok())
    return barrier.status();
  copy.barrier = *barrier;
  return issueOnto(w, std::move(copy));
}

/// A copy onto a barrier is under way: what was there is lost.
absl::Status Cta::issueOnto(Warpgroup &w, PendingCopy copy) {
  bool byCopy = !isa<CopyColsOp>(copy.op); // which sees memory as plain writes do
  if (absl::Status status = judgeWrite(w, copy.op, copy.tile, byCopy); !status.ok())
    return status;
  poison(copy.tile);
  absl::Status status =
      noteWrite(w, copy.tile, Writer::Copy, sources.phases(copy.barrier), barriers[copy.barrier].phases + 1);
  copies.push_back(std::move(copy));
  return status.ok() && schedule.effects == Effects::Early ? land(copies.size() - 1) : status;
}

/// The box's elements, and 0 outside of the tensor.
void Cta::readBox(const PendingCopy &copy, std::vector<float> &data) const {
  const TensorMap &map = arguments.maps[copy.parameter];
  size_t rank = map.dims.size();
  std::vector<int64_t> place(rank, 0);
  int64_t first = copy.coordinates[0];
  int64_t from = std::clamp<int64_t>(-first, 0, map.box[0]),
          to = std::clamp(map.dims[0] - first, from, map.box[0]);
  for (float *line = data.data(); line != data.data() + data.size(); line += map.box[0]) {
    int64_t offset = map.offset + first;
    bool inside = true;
    for (size_t d = 1; d < rank; ++d) {
      int64_t coordinate = copy.coordinates[d] + place[d];
      inside &= coordinate >= 0 && coordinate < map.dims[d];
      offset += coordinate * map.strides[d - 1];
    }
    std::fill_n(line, map.box[0], 0.0f);
    if (inside)
      std::copy_n(map.buffer->values.data() + (offset + from), to - from, line + from);
    for (size_t d = 1; d < rank && ++place[d] == map.box[d]; ++d)
      place[d] = 0;
  }
}

/// Each thread's element, and 0 from the limit on; each thread arrives.
absl::Status Cta::landCols(const PendingCopy &copy, std::vector<float> &data) {
  MemoryBarrier &barrier = barriers[copy.barrier];
  int64_t offset = copy.coordinates[0], stride = copy.coordinates[1];
  auto count = std::min(copy.coordinates[2], static_cast<int64_t>(data.size()));
  for (int64_t i = 0; i < count; ++i)
    if (absl::Status status =
            readGlobal(copy.op, copy.parameter, offset + i * stride, data[static_cast<size_t>(i)], nullptr);
        !status.ok())
      return status;
  if (CopyColsOp::kArrivals > barrier.pending)
    return fault(kWrongParity, copy.op,
                 absl::StrCat(CopyColsOp::kArrivals, " arrivals at barrier ", copy.barrier,
                              ", which lacks only ", barrier.pending, " of ", barrier.count));
  barrier.pending -= CopyColsOp::kArrivals;
  return absl::OkStatus();
}

absl::Status Cta::land(size_t which) {
  PendingCopy copy = std::move(copies[which]);
  copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(which));
  const Ring &ring = rings[copy.tile.ring];
  std::vector<float> data(static_cast<size_t>(copy.tile.rows * copy.tile.panels * ring.width));
  int64_t bytes = 0;
  if (auto tile = dyn_cast<LoadTileOp>(copy.op)) {
    readBox(copy, data);
    bytes = tile.getTile().getType().tileBytes();
  } else if (isa<CopyColsOp>(copy.op)) {
    if (absl::Status status = landCols(copy, data); !status.ok())
      return status;
  } else {
    for (size_t i = 0; i < data.size(); ++i)
      if (absl::Status status = readGlobal(copy.op, copy.parameter,
                                           copy.coordinates[0] + static_cast<int64_t>(i), data[i], nullptr);
          !status.ok())
        return status;
    bytes = cast<LoadBulkOp>(copy.op).getTile().getType().tileBytes();
  }
  writeTile(copy.tile, data);
  markLanded(copy.tile);
  MemoryBarrier &barrier = barriers[copy.barrier];
  barrier.bytes -= bytes;
  return tryEnd(copy.op, barrier);
}

absl::Status Cta::issueAsync(Warpgroup &w, CopyAsyncOp op) {
  PendingCopy copy{op, at(w, op.getTile()).tile, {}, at(w, op.getGlobal()).index, 0, w.copyGroups + 1};
  for (mlir::Value value : {op.getOffset(), op.getStride(), op.getLimit()})
    copy.coordinates.push_back(integer(w, value));
  int64_t bytes = op.getTile().getType().elementBytes();
  if (copy.coordinates[0] * bytes % 16 != 0 || copy.coordinates[1] * bytes % 16 != 0)
    return fault(kMisaligned, op,
                 absl::StrCat("rows from element ", copy.coordinates[0], ", stride ", copy.coordinates[1],
                              ", do not start at multiples of 16 bytes"));
  if (absl::Status status = judgeWrite(w, op, copy.tile, /*byCopy=*/false); !status.ok())
    return status;
  poison(copy.tile);
  absl::Status status = noteWrite(w, copy.tile, Writer::CopyAsync, sources.copies(w.index), copy.group);
  w.copies.push_back(std::move(copy));
  return status.ok() && schedule.effects == Effects::Early ? applyCopies(w, w.copyGroups + 1) : status;
}

/// Copies of groups up to `group` write shared memory; they stay listed until a wait ends them.
absl::Status Cta::applyCopies(Warpgroup &w, int64_t group) {
  for (PendingCopy &copy : w.copies) {
    if (copy.group > group || copy.coordinates.empty())
      continue;
    int64_t offset = copy.coordinates[0], stride = copy.coordinates[1], limit = copy.coordinates[2];
    copy.coordinates.clear();
    int64_t columns = rings[copy.tile.ring].width * copy.tile.panels;
    std::vector<float> data(static_cast<size_t>(copy.tile.rows * columns), 0.0f);
    for (int64_t row = 0; row < std::min(limit, copy.tile.rows); ++row)
      for (int64_t column = 0; column < columns; ++column)
        if (absl::Status status = readGlobal(copy.op, copy.parameter, offset + row * stride + column,
                                             data[static_cast<size_t>(row * columns + column)], nullptr);
            !status.ok())
          return status;
    writeTile(copy.tile, data);
  }
  return absl::OkStatus();
}

absl::Status Cta::waitCopies(Warpgroup &w, CopyWaitOp op) {
  int64_t ended = w.copyGroups - static_cast<int64_t>(op.getPending());
  if (absl::Status status = applyCopies(w, ended); !status.ok())
    return status;
  llvm::erase_if(w.copies, [&](const PendingCopy &copy) { return copy.group <= ended; });
  w.copiesEnded = std::max(w.copiesEnded, ended);
  return absl::OkStatus();
}

} // namespace weft::tile
