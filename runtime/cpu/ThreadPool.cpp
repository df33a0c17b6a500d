//===- ThreadPool.cpp -----------------------------------------------------===//
#include "runtime/cpu/ThreadPool.h"

#include <algorithm>
#include <system_error>

#include <immintrin.h>

namespace weft::rt {
namespace {

constexpr int64_t kMostChunks = 64;
constexpr int kFieldBits = 8; // a chunk's number, and the number of chunks
constexpr uint64_t kFieldMask = (uint64_t(1) << kFieldBits) - 1;
static_assert(kMostChunks <= static_cast<int64_t>(kFieldMask));

/// Turns of waiting before a thread sleeps: about 50 microseconds, the time
/// between two parallel calls of a step being shorter.
constexpr int kSpins = 2000;

uint64_t nextOf(uint64_t ticket) { return ticket >> kFieldBits & kFieldMask; }
uint64_t chunksOf(uint64_t ticket) { return ticket & kFieldMask; }

} // namespace

int64_t chunkItems(int64_t grid) { return grid / kMostChunks + (grid % kMostChunks != 0); }

ThreadPool::ThreadPool(int count) {
  for (int worker = 1; worker < count; ++worker) {
    try {
      threads.emplace_back([this, worker] { work(worker); });
    } catch (const std::system_error &) {
      return; // the system allows no more threads: work with those there are
    }
  }
}

ThreadPool::~ThreadPool() {
  stopping.store(true, std::memory_order_release);
  published.fetch_add(1, std::memory_order_release);
  published.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void ThreadPool::doChunk(const Job &job, int64_t chunk, int worker) {
  int64_t begin = chunk * job.items;
  (*job.body)(begin, begin + std::min(job.items, job.grid - begin), worker);
}

bool ThreadPool::takeChunk(int worker) {
  uint64_t seen = ticket.load(std::memory_order_acquire);
  do {
    if (nextOf(seen) >= chunksOf(seen))
      return false;
  } while (!ticket.compare_exchange_weak(seen, seen + (uint64_t(1) << kFieldBits), std::memory_order_acquire,
                                         std::memory_order_acquire));
  doChunk(job, static_cast<int64_t>(nextOf(seen)), worker);
  // The job may be over, and gone, after this line.
  if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 == chunksOf(seen))
    finished.notify_one();
  return true;
}

void ThreadPool::work(int worker) {
  while (true) {
    uint32_t before = published.load(std::memory_order_acquire);
    if (stopping.load(std::memory_order_acquire))
      return;
    while (takeChunk(worker)) {
    }
    int spins = 0;
    while (spins < kSpins && published.load(std::memory_order_acquire) == before) {
      _mm_pause();
      ++spins;
    }
    if (spins == kSpins)
      published.wait(before, std::memory_order_acquire);
  }
}

void ThreadPool::run(int64_t grid, Body body) {
  if (grid <= 0)
    return;
  int64_t items = chunkItems(grid), chunks = grid / items + (grid % items != 0);
  job = {&body, grid, items};
  if (threads.empty() || chunks == 1) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      doChunk(job, chunk, 0);
    return;
  }
  finished.store(0, std::memory_order_relaxed);
  uint64_t number = (ticket.load(std::memory_order_relaxed) >> (2 * kFieldBits)) + 1;
  ticket.store(number << (2 * kFieldBits) | static_cast<uint64_t>(chunks), std::memory_order_release);
  published.fetch_add(1, std::memory_order_release);
  published.notify_all();
  while (takeChunk(0)) {
  }
  auto total = static_cast<uint32_t>(chunks);
  for (int spins = 0; spins < kSpins && finished.load(std::memory_order_acquire) != total; ++spins)
    _mm_pause();
  for (uint32_t seen; (seen = finished.load(std::memory_order_acquire)) != total;)
    finished.wait(seen, std::memory_order_acquire);
}

} // namespace weft::rt
