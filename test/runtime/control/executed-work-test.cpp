//===- executed-work-test.cpp - Executed pairs, counted one by one --------===//
//
// That the kernels touch these very pairs is shown in
// test/passes/Codegen/attention-test.cpp; here are figures made by hand and by
// loops over single pairs.
//
//===----------------------------------------------------------------------===//
#include "runtime/control/ExecutedWork.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

constexpr int32_t kFull = std::numeric_limits<int32_t>::max();

std::vector<int32_t> whole(int64_t positions) {
  return std::vector<int32_t>(static_cast<size_t>(positions), 0);
}

/// Pairs of tiles 64 x 64 that hold a pair which window and causality allow:
/// the unit of methods.md's executed ratios.
int64_t tilesOf(int64_t positions, int64_t window) {
  int64_t tiles = 0;
  for (int64_t q = 0; q < positions; q += 64)
    for (int64_t k = 0; k <= q; k += 64)
      tiles += k + 63 > q - window; // its last key against the first query
  return tiles;
}

// T = 128 in two blocks: the first sees 64 keys, the second 128.
TEST(ExecutedWork, byHand) {
  ExecutedPairs full = executedPairs(whole(128), kFull);
  EXPECT_EQ(full.forward, 64 * 64 + 64 * 128);
  EXPECT_EQ(full.gradQuery, full.forward);
  EXPECT_EQ(full.gradKeyValue, full.forward);
  // Window 1: each block against its own 64 keys, of which one a query is allowed.
  ExecutedPairs narrow = executedPairs(whole(128), 1);
  EXPECT_EQ(narrow.forward, 2 * 64 * 64);
  EXPECT_EQ(narrow.gradKeyValue, 2 * 64 * 64);
  // Five places are one tile of 16 lanes.
  EXPECT_EQ(executedPairs(whole(5), kFull).forward, 16 * 5);
}

// Catches: a range off by one key, a window counted from the last query.
TEST(ExecutedWork, windowReachesBackFromTheFirstQuery) {
  for (int64_t window : {1, 2, 63, 64, 65, 200}) {
    int64_t expected = 0;
    for (int64_t place = 0; place < 320; place += 64)
      for (int64_t key = 0; key < place + 64; ++key)
        expected += 64 * static_cast<int64_t>(key > place - window);
    EXPECT_EQ(executedPairs(whole(320), window).forward, expected) << window;
  }
}

// Catches: documents that don't end the range, a skipped block that is counted.
TEST(ExecutedWork, documents) {
  std::vector<int32_t> starts = whole(192);
  for (size_t i = 100; i < 192; ++i)
    starts[i] = 100;
  ExecutedPairs pairs = executedPairs(starts, kFull);
  EXPECT_EQ(pairs.forward, 64 * (64 + 128 + 92));
  // Keys 0..63 are read by blocks 0 and 64 (its first query is of document 0), not 128.
  EXPECT_EQ(pairs.gradKeyValue, 64 * (128 + 128 + 64));
}

// Within the unit of whole tiles: never more, and full attention exactly.
TEST(ExecutedWork, withinTiles) {
  EXPECT_EQ(executedPairs(whole(4096), kFull).forward, tilesOf(4096, 4096) * 64 * 64);
  for (int64_t window : {256, 512, 1024}) {
    int64_t bound = tilesOf(4096, window) * 64 * 64;
    EXPECT_LE(executedPairs(whole(4096), window).forward, bound);
    EXPECT_GT(executedPairs(whole(4096), window).forward, bound - 64 * 64 * 64);
  }
}

/// Of 64 rows against blocks of `block`, those with a pair that is allowed.
int64_t tilesOf(const std::vector<int32_t> &starts, int64_t window, int64_t block, bool keysInRows) {
  const auto positions = static_cast<int64_t>(starts.size());
  int64_t tiles = 0;
  for (int64_t row = 0; row < positions; row += 64)
    for (int64_t from = 0; from < positions; from += block) {
      bool some = false;
      for (int64_t i = row; i < std::min(row + 64, positions); ++i)
        for (int64_t j = from; j < std::min(from + block, positions); ++j) {
          const int64_t query = keysInRows ? j : i, key = keysInRows ? i : j;
          some |= key <= query && key > query - window && key >= starts[static_cast<size_t>(query)];
        }
      tiles += some;
    }
  return tiles;
}

// On a GPU: ranges of 64 rows, whole blocks. Catches: a block too many or too few at
// either end, rows of a CTA that share a range, queries of a document that is over.
TEST(ExecutedWork, tiles) {
  std::vector<int32_t> two = whole(500);
  for (size_t i = 256; i < 500; ++i)
    two[i] = 256;
  for (const std::vector<int32_t> &starts : {whole(500), two})
    for (int64_t window : {1, 2, 64, 65, 200, 500})
      for (const AttendTiles &tiles : {AttendTiles{128, 128, 64, 128}, AttendTiles{128, 64, 32, 128}}) {
        const ExecutedPairs pairs = executedPairs(starts, window, tiles);
        auto expected = [&](int64_t block, bool keysInRows) {
          return 64 * block * tilesOf(starts, window, block, keysInRows);
        };
        EXPECT_EQ(pairs.forward, expected(tiles.forwardBlock, false)) << window;
        EXPECT_EQ(pairs.gradQuery, expected(tiles.queryBlock, false)) << window;
        EXPECT_EQ(pairs.gradKeyValue, expected(tiles.keyValueBlock, true)) << window;
      }
}

// Rows 128 n and on see the lower half of their last block, rows 128 n + 64 and on all of it; a window of
// 128 ends in the upper half of the block before for these and at its first key for those.
TEST(ExecutedWork, halves) {
  const AttendTiles tiles{128, 128, 64, 128, true};
  auto keys = [&](int64_t positions, int64_t window) {
    return executedPairs(whole(positions), window, tiles).forward / 64;
  };
  EXPECT_EQ(keys(64, kFull), 128); // an only block is whole
  EXPECT_EQ(keys(256, kFull), 128 + 128 + 192 + 256);
  EXPECT_EQ(keys(512, 128), 128 + 128 + 6 * 192);
  // Keys 65 to 191 for rows 128 to 191: the first half of two, then the second whole.
  EXPECT_EQ(keys(192, 64), 128 + 128 + 192);
  EXPECT_EQ(executedPairs(whole(512), 128, tiles).gradQuery,
            executedPairs(whole(512), 128, {128, 128, 64, 128}).gradQuery);
}

TEST(ExecutedWork, sumsRowsAndHeads) {
  std::vector<int32_t> starts(2 * 128, 0), windows{1, kFull, 70};
  ExecutedPairs sum = executedPairs(starts, 128, windows), once;
  for (int32_t window : windows)
    once += executedPairs(whole(128), window);
  EXPECT_EQ(sum.forward, 2 * once.forward);
  EXPECT_EQ(sum.gradKeyValue, 2 * once.gradKeyValue);
}

// Ten pairs, channels 3 and 2: 2 x 10 x 5; 2 x 10 x 8 and 2 x 10 x 10.
TEST(ExecutedWork, flops) {
  ExecutedFlops flops = executedFlops({10, 10, 10}, 3, 2);
  EXPECT_EQ(flops.forward, 100);
  EXPECT_EQ(flops.backward, 160 + 200);
}

} // namespace
} // namespace weft::rt
