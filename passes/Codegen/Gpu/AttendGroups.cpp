//===- AttendGroups.cpp - How many rows an item of attention has ----------===//
//
// A launch with few items takes as long as its longest one, which is the shorter the
// fewer rows share a multiprocessor. A launch with many items takes as long as all
// their blocks do on all multiprocessors, and the blocks of 64 rows take the less time
// the more rows share a multiprocessor: one warpgroup's products run under another's
// exponentials. Both are counted in what an H200 takes, and for whole windows: windows
// and documents are known to the kernel alone.
//
//===----------------------------------------------------------------------===//
#include "passes/Codegen/Gpu/AttendKernel.h"

namespace weft {
namespace {

constexpr int64_t kMultiprocessors = 132; // of an H200

/// Nanoseconds of a streamed block with so many warpgroups.
struct BlockCost {
  int64_t groups;
  int64_t alone;  // of a whole item, where a launch waits for its longest
  int64_t shared; // of 64 rows, where all multiprocessors are busy
};

// 64 channels (2026-12-01, `weft kernels FILE --time 30 --form groups=N`, one row): T=2048 with 12 heads, T=4096 with
// 6 and with 9 took 26.4, 50.4, 50.4 us with three warpgroups and 23.1, 42.4, 53.2 with two, T=4096 with 12 heads 57.7
// with three. Less about 2.4 and 3.8 us a launch that is 24.0 us for 16 blocks, 48.0 for 32 of the longest item, and
// 19.3 and 38.6; for 96 blocks of 64 rows a multiprocessor 55.3 with three, for 72 49.4 with two.
constexpr BlockCost kForward64[] = {{3, 1500, 576}, {2, 1206, 685}};
constexpr BlockCost kForward128[] = {{2, 1, 1}};
constexpr BlockCost kGradient[] = {{2, 1, 1}};

llvm::ArrayRef<BlockCost> costsOf(const AttendProblem &p) {
  if (p.pass != AttendPass::Forward)
    return kGradient;
  return p.channel == 64 ? llvm::ArrayRef(kForward64) : llvm::ArrayRef(kForward128);
}

/// Blocks that the tile from row `first` on goes through, of queries that are the last of all keys.
int64_t blocksOf(const AttendProblem &p, int64_t block, int64_t first, int64_t rows) {
  if (p.pass == AttendPass::KeyValue)
    return ((p.queries + block - 1) / block - first / block) * (p.heads / p.kvHeads);
  int64_t last = std::min(first + rows, p.queries) - 1 + p.keys - p.queries;
  return std::max<int64_t>(last, 0) / block + 1;
}

} // namespace

int64_t groupsFor(const AttendProblem &p, int64_t block) {
  llvm::ArrayRef<BlockCost> costs = costsOf(p);
  const int64_t places = p.pass == AttendPass::KeyValue ? p.keys : p.queries;
  int64_t best = costs.front().groups, least = std::numeric_limits<int64_t>::max();
  auto tiles = [&](int64_t rows, auto f) {
    for (int64_t first = 0; first < places; first += rows)
      f(blocksOf(p, block, first, rows));
  };
  int64_t all = 0; // of 64 rows
  tiles(AttendKernel::kRows, [&](int64_t blocks) { all += p.batch * p.itemHeads() * blocks; });
  for (const BlockCost &cost : costs) {
    int64_t longest = 0;
    tiles(cost.groups * AttendKernel::kRows, [&](int64_t blocks) { longest = std::max(longest, blocks); });
    const int64_t time = std::max(longest * cost.alone, all * cost.shared / kMultiprocessors);
    if (time < least)
      best = cost.groups, least = time;
  }
  return best;
}

} // namespace weft
