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

ExecutedPairs executedPairs(std::span<const int32_t> docStart, int64_t window) {
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
                            std::span<const int32_t> windows) {
  ExecutedPairs pairs;
  for (size_t row = 0; row < docStart.size(); row += static_cast<size_t>(positions))
    for (int32_t window : windows)
      pairs += executedPairs(docStart.subspan(row, static_cast<size_t>(positions)), window);
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
