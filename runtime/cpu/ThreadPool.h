//===- ThreadPool.h - Ranges of work over fixed workers ---------*- C++ -*-===//
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace weft::rt {

/// Items of one chunk of [0, grid): ceil(grid / 64). It depends on the grid
/// alone, so that whatever a kernel does per chunk is equal for any number of
/// workers.
int64_t chunkItems(int64_t grid);

/// Fixed workers; the caller of run() is worker 0. Between runs workers spin for
/// some microseconds, then sleep. One run at a time, never from inside a body.
class ThreadPool {
public:
  /// body(begin, end, worker): does items [begin, end), 0 <= worker < workers().
  using Body = absl::FunctionRef<void(int64_t, int64_t, int)>;

  /// `threads` >= 1 workers; fewer when the system refuses more threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int workers() const { return static_cast<int>(threads.size()) + 1; }

  /// Does all chunks of [0, grid), in any order, and returns when they are done.
  void run(int64_t grid, Body body);

private:
  struct Job {
    const Body *body = nullptr;
    int64_t grid = 0, items = 0;
  };

  static void doChunk(const Job &job, int64_t chunk, int worker);
  void work(int worker);
  bool takeChunk(int worker);

  Job job;
  // What is left of the current job: [number of the job | next chunk | chunks].
  // A worker that wakes late finds no chunk, or takes one of a newer job, which
  // then can't end before it: it never touches a job that is over.
  std::atomic<uint64_t> ticket{0};
  std::atomic<uint32_t> finished{0}; // chunks of the current job
  std::atomic<uint32_t> published{0};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> threads;
};

} // namespace weft::rt
