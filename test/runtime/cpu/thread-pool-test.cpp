#include "runtime/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using Chunks = std::set<std::pair<int64_t, int64_t>>;

Chunks chunksOf(ThreadPool &pool, int64_t grid) {
  Chunks chunks;
  std::mutex mutex;
  pool.run(grid, [&](int64_t begin, int64_t end, int worker) {
    std::lock_guard lock(mutex);
    EXPECT_GE(worker, 0);
    EXPECT_LT(worker, pool.workers());
    EXPECT_TRUE(chunks.emplace(begin, end).second);
  });
  return chunks;
}

// Catches a chunk size taken from the number of workers, and a lost or double item.
TEST(ThreadPool, ChunksDependOnTheGridAlone) {
  for (int64_t grid : {0, 1, 2, 63, 64, 65, 127, 128, 129, 1000, 12345}) {
    Chunks expected;
    int64_t items = (grid + 63) / 64;
    for (int64_t begin = 0; begin < grid; begin += items)
      expected.emplace(begin, std::min(begin + items, grid));
    for (int threads : {1, 2, 3, 8}) {
      ThreadPool pool(threads);
      EXPECT_EQ(pool.workers(), threads);
      EXPECT_EQ(chunksOf(pool, grid), expected) << grid << " on " << threads;
    }
  }
}

TEST(ThreadPool, HugeGridsDoNotOverflow) {
  ThreadPool pool(2);
  EXPECT_EQ(chunksOf(pool, INT64_MAX - 100).size(), 64u);
}

// Catches a worker that wakes late and takes a chunk of a job that is over.
TEST(ThreadPool, ManyShortJobsDoEachItemOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> counts(64);
  for (int round = 1; round <= 20000; ++round) {
    int64_t grid = 1 + round % 64;
    std::vector<int> own(64, 0); // gone after the round
    pool.run(grid, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        ++own[static_cast<size_t>(i)];
        counts[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
      }
    });
    ASSERT_EQ(std::count(own.begin(), own.end(), 1), grid);
  }
  EXPECT_EQ(counts[0].load(), 20000);
}

// Catches workers that spin without end.
TEST(ThreadPool, IdleWorkersSleep) {
  ThreadPool pool(4);
  pool.run(64, [](int64_t, int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, 0.05);
  EXPECT_EQ(chunksOf(pool, 100).size(), 50u); // and wake
}

} // namespace
} // namespace weft::rt
