//===- StubDriver.h - What the stub's halves share --------------*- C++ -*-===//
#pragma once

#include "runtime/cuda/Abi.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace weft::rt::cuda {

struct StubKernel {
  std::string name;
  std::vector<size_t> parameters; // bytes of each
  int mostThreads = 512;
};

struct StubModule {
  std::map<std::string, std::unique_ptr<StubKernel>> kernels;
};

using StubWork = std::function<Result()>;

/// Nodes, each with those that it waits for (numbers of earlier ones).
struct StubGraph {
  std::vector<StubWork> nodes;
  std::vector<std::vector<size_t>> waits;
  std::vector<FillNode> fills; // width 0: the node is none
  std::vector<bool> gone;      // destroyed
  std::vector<GraphNode> last; // while it is captured: what the next node waits for

  void add(StubWork work, const FillNode &fill);
  /// The latest node that may run, again and again: a wait that is missing shows.
  std::vector<size_t> order() const;
};

struct Stub {
  std::recursive_mutex mutex;
  int devices = 1;
  uint64_t memory = uint64_t(1) << 30, used = 0;
  std::map<std::string, int> calls;
  std::map<std::string, std::pair<int, Result>> rules; // calls left, result
  std::string log;
  std::map<uintptr_t, size_t> blocks, pinned;
  std::vector<StubWork> queue;
  StubGraph captured;
  StubGraph *made = nullptr;              // the latest graph: what its nodes belong to
  uint64_t submitted = 0, done = 0;       // items ever put on the stream; that ran
  std::map<uintptr_t, uint64_t> recorded; // of an event: items before it
  uintptr_t events = 0;                   // ever made
  double milliseconds = 0;                // that products took so far
  std::map<uintptr_t, double> reached;    // of an event: that time
  bool capturing = false;
  Result sticky = kSuccess;
  int live = 0;

  /// Counts a call; what it must return before it does anything.
  Result enter(const char *symbol, bool allowedInCapture = true);
  Result submit(StubWork work, const FillNode &fill = {});
  Result drain();
  /// Runs what was put on the stream before item `end`.
  Result drainUntil(uint64_t end);
  /// Whether [address, address + bytes) lies in one block.
  bool owns(DevicePointer address, uint64_t bytes) const;
};

Stub &stub();

/// Holds the lock; `result` says whether to go on.
struct Call {
  explicit Call(const char *symbol, bool allowedInCapture = true)
      : lock(stub().mutex), result(stub().enter(symbol, allowedInCapture)) {}
  std::unique_lock<std::recursive_mutex> lock;
  Result result;
};

#define WEFT_ENTER(...)                                                                                      \
  Call call(__VA_ARGS__);                                                                                    \
  if (call.result != kSuccess)                                                                               \
  return call.result

template <typename T> T handleOf(uintptr_t number) { return reinterpret_cast<T>(number); }

/// Of a node in its graph's lists.
size_t numberOf(GraphNode node);

/// ` 0x1f00`, for the log.
std::string hex(DevicePointer address);

} // namespace weft::rt::cuda
