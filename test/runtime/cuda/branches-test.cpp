//===- branches-test.cpp - Which calls wait for which ---------------------===//
#include "runtime/cuda/Branches.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::rt::cuda {
namespace {

/// after[i][j]: call i runs behind call j, by any road of waits.
std::vector<std::vector<bool>> closure(const std::vector<std::vector<uint32_t>> &waits) {
  std::vector<std::vector<bool>> after(waits.size(), std::vector<bool>(waits.size()));
  for (size_t i = 0; i < waits.size(); ++i)
    for (uint32_t j : waits[i]) {
      after[i][j] = true;
      for (size_t k = 0; k < j; ++k)
        if (after[j][k])
          after[i][k] = true;
    }
  return after;
}

bool share(const BranchCall &a, const BranchCall &b) {
  for (const Access &x : a.accesses)
    for (const Access &y : b.accesses) {
      bool apart = x.end <= y.begin || y.end <= x.begin || x.begin == x.end || y.begin == y.end;
      if (!apart && (x.written || y.written))
        return true;
    }
  return false;
}

/// Random calls on a short memory: every pair that shares bytes is in the list's order.
/// Catches an order by reads alone, one by equal starts, and a branch that the chain joins
/// only once while a later call beside it still shares memory.
TEST(Branches, OrdersWhateverSharesMemory) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<BranchCall> calls(1 + random() % 30);
    const uint64_t memory = 4 + random() % 60;
    for (BranchCall &call : calls) {
      call.beside = random() % 3 == 0;
      for (uint64_t n = random() % 4; n > 0; --n) {
        const uint64_t begin = random() % memory;
        call.accesses.push_back({begin, begin + random() % 4, random() % 3 == 0});
      }
    }
    const std::vector<std::vector<uint32_t>> list = waits(calls);
    const std::vector<std::vector<bool>> after = closure(list);
    for (size_t i = 0; i < calls.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        if (share(calls[i], calls[j]) || (!calls[i].beside && !calls[j].beside)) {
          EXPECT_TRUE(after[i][j]) << "round " << round << ": " << i << " behind " << j;
        }
      }
    for (size_t i = 0; i < calls.size(); ++i)
      EXPECT_TRUE(std::all_of(list[i].begin(), list[i].end(), [&](uint32_t j) { return j < i; }));
  }
}

/// x -> projections (1: read by 4, 2: read by 3) -> attention (3) beside the pattern (4) -> their sum (5).
/// Catches waiting for the call before.
TEST(Branches, APatternStandsBesideAttention) {
  auto reads = [](DevicePointer at) { return Access{at, at + 10, false}; };
  auto writes = [](DevicePointer at) { return Access{at, at + 10, true}; };
  std::vector<BranchCall> calls = {{{writes(0)}},
                                   {{reads(0), writes(10)}},
                                   {{reads(0), writes(20)}},
                                   {{reads(20), writes(30)}},
                                   {{reads(10), writes(40)}, true},
                                   {{reads(30), reads(40), writes(0)}}};
  using List = std::vector<uint32_t>;
  EXPECT_EQ(waits(calls), (std::vector<List>{{}, {0}, {1}, {2}, {1}, {3, 4}}));
}

} // namespace
} // namespace weft::rt::cuda
