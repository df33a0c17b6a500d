//===- ExecutedWork.cpp - What attention kernels really do ----------------===//
#include "runtime/control/ExecutedWork.h"

#include <algorithm>

namespace weft::rt {

ExecutedPairs &ExecutedPairs::operator+=(const ExecutedPairs &other) {
  forward += other.forward;
  gradQuery += other.gradQuery;
  gradKeyValue += other.gradKeyValue;
  return *this;
}

/// Rows of a tile of attention over `positions`.
static int64_t tileOf(int64_t positions) {
  return std::min(kAttendTile, (positions + kAttendLanes - 1) / kAttendLanes * kAttendLanes);
}

namespace {

/// Ranges of tiles on a GPU: AttendQueryRows::keysOf, KeyValue::boundsOf.
class TileRanges {
public:
  TileRanges(std::span<const int32_t> docStart, int64_t window)
      : docStart(docStart), positions(static_cast<int64_t>(docStart.size())),
        window(std::min(window, positions)) {}

  /// Pairs of all queries with whole blocks of `block` keys, or (halves) what is left of them.
  int64_t ofQueries(int64_t block, bool halves) const {
    int64_t keys = 0;
    for (int64_t query = 0; query < positions; query += kAttendTile) {
      const int64_t first = std::max({query - window + 1, startOf(query), int64_t{0}});
      const int64_t last = lastOf(query, kAttendTile), blocks = last / block - first / block + 1;
      const bool endsEarly = halves && blocks > 1 && last % block < block / 2;
      const bool beginsLate = halves && blocks > 1 + endsEarly && first % block >= block / 2;
      keys += blocks * block - (int64_t{endsEarly} + int64_t{beginsLate}) * block / 2;
    }
    return keys * kAttendTile;
  }
  /// Pairs of all keys with whole blocks of `block` queries; documents end the
  /// range of `rows` keys together.
  int64_t ofKeys(int64_t block, int64_t rows) const {
    int64_t blocks = 0;
    for (int64_t key = 0; key < positions; key += kAttendTile) {
      const int64_t reached = std::min(lastOf(key, kAttendTile) + window, positions);
      const int64_t documents = documentsEnd(lastOf(key / rows * rows, rows), block);
      blocks += std::max<int64_t>(std::min((reached + block - 1) / block, documents) - key / block, 0);
    }
    return blocks * kAttendTile * block;
  }

private:
  int64_t startOf(int64_t place) const { return docStart[static_cast<size_t>(place)]; }
  int64_t lastOf(int64_t place, int64_t rows) const { return std::min(place + rows, positions) - 1; }
  /// Blocks up to the last whose first query's document holds a key up to `lastKey`.
  int64_t documentsEnd(int64_t lastKey, int64_t block) const {
    int64_t end = (positions + block - 1) / block;
    if (startOf(positions - 1) > lastKey)
      while (end > 1 && startOf((end - 1) * block) > lastKey)
        --end;
    return end;
  }

  std::span<const int32_t> docStart;
  int64_t positions, window;
};

} // namespace

ExecutedPairs executedPairs(std::span<const int32_t> docStart, int64_t window, const AttendTiles &tiles) {
  if (tiles.forwardBlock > 0) {
    const TileRanges ranges(docStart, window);
    return {ranges.ofQueries(tiles.forwardBlock, tiles.forwardHalves),
            ranges.ofQueries(tiles.queryBlock, /*halves=*/false),
            ranges.ofKeys(tiles.keyValueBlock, tiles.keyValueRows)};
  }
  const auto positions = static_cast<int64_t>(docStart.size());
  const int64_t tile = tileOf(positions);
  auto startOf = [&](int64_t place) { return int64_t{docStart[static_cast<size_t>(place)]}; };
  ExecutedPairs pairs;
  for (int64_t place = 0; place < positions; place += tile) {
    const int64_t count = std::min(tile, positions - place), last = place + count - 1;
    // Queries: their first sees the furthest back.
    const int64_t from = std::max({place - window + 1, startOf(place), int64_t{0}});
    pairs.forward += tile * (place + count - from);
    // Keys: up to the last query whose window reaches them; blocks of queries
    // whose first stands in a later document are passed over.
    const int64_t end = std::min(last + window, positions);
    for (int64_t query = place; query < end; query += kAttendTile)
      if (startOf(query) <= last)
        pairs.gradKeyValue += tile * std::min(end - query, kAttendTile);
  }
  pairs.gradQuery = pairs.forward;
  return pairs;
}

ExecutedPairs executedPairs(std::span<const int32_t> docStart, int64_t positions,
                            std::span<const int32_t> windows, const AttendTiles &tiles) {
  ExecutedPairs pairs;
  for (size_t row = 0; row < docStart.size(); row += static_cast<size_t>(positions))
    for (int32_t window : windows)
      pairs += executedPairs(docStart.subspan(row, static_cast<size_t>(positions)), window, tiles);
  return pairs;
}

ExecutedFlops executedFlops(const ExecutedPairs &pairs, int64_t channel, int64_t valueChannel) {
  auto products = [](int64_t number, int64_t width) {
    return 2 * static_cast<double>(number) * static_cast<double>(width);
  };
  return {products(pairs.forward, channel + valueChannel),
          products(pairs.gradQuery, 2 * channel + valueChannel) +
              products(pairs.gradKeyValue, 2 * channel + 2 * valueChannel)};
}

} // namespace weft::rt
