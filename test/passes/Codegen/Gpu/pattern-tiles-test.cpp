//===- pattern-tiles-test.cpp - Products of fixed patterns on tiles -------===//
#include "passes/Tile/Lower.h"
#include "passes/Tile/Ptxas.h"
#include "test/passes/Codegen/Gpu/PatternHarness.h"

#include <iostream>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

using tile::Effects;
constexpr Effects kEffects[] = {Effects::Late, Effects::Early, Effects::Random};

void check(const PatternCase &c) {
  SCOPED_TRACE((c.back ? "back, length " : "length ") + std::to_string(c.length) + ", channel " +
               std::to_string(c.channel) + ", window " + std::to_string(c.window(0)) + ", " +
               std::to_string(c.starts[0].size()) + " documents");
  PatternHarness harness(c);
  absl::Status status = harness.run({1, Effects::Late, 3});
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(harness.difference(), "");
}

/// Both directions, tiles of 256 and of 128 rows.
void checkBoth(PatternCase c) {
  for (int64_t parts : {4, 2})
    for (bool back : {false, true}) {
      c.parts = parts, c.back = back;
      check(c);
    }
}

// Ends of blocks, of parts and of tiles. Catches: a block too few or too many, rows
// that are stored past the end, tables that are too short.
TEST(PatternTiles, lengths) {
  for (int64_t length : {1, 2, 31, 63, 64, 65, 127, 128, 129, 191, 193, 255, 256, 257, 321, 513, 600}) {
    PatternCase c;
    c.length = length;
    checkBoth(c);
  }
}

// Catches: blocks that a window still reaches left out.
TEST(PatternTiles, windows) {
  for (int32_t window : {1, 2, 3, 63, 64, 65, 66, 128, 129, 300, 519, 520, 5200}) {
    PatternCase c;
    c.length = 520;
    c.windows = {window};
    checkBoth(c);
  }
}

// Documents of one token and of uneven lengths, that start inside blocks, parts and
// tiles, whole rows of them. Catches: a tile that reads the document before or after,
// numbers of rows counted from the row's start, a document's tile left out.
TEST(PatternTiles, documents) {
  const std::vector<std::vector<int32_t>> kRows[] = {
      {{0, 1}, {0, 256}, {0, 255}},
      {{0, 5, 6, 7, 300}, {0}, {0, 100, 200, 264, 265, 599}},
      {{0, 257, 258, 512, 513}, {0, 64, 128, 192, 256}, {0, 598}},
      {{0, 300, 301, 302, 560, 570}, {0, 3, 9, 11, 300}, {0, 299}},
  };
  for (const auto &rows : kRows) {
    PatternCase c;
    c.batch = 3;
    c.length = 600;
    c.heads = c.results = 2;
    c.windows = {INT32_MAX, 70};
    c.starts = rows;
    checkBoth(c);
  }
}

// First places that end before, in and behind the window, in a part and at the end of a
// tile; documents that begin in a part. Catches: pairs that both ranges see counted twice,
// first places of the row and not of the document, blocks of either range left out, rows of
// a tile with `back` that are no first places.
TEST(PatternTiles, firstPlaces) {
  for (int64_t length : {64, 65, 200, 385, 600}) {
    PatternCase c;
    c.length = length;
    c.heads = c.results = 5;
    c.windows = {1, 64, 65, 130, INT32_MAX};
    c.firstPlaces = {64, 128, 0, 320, 64};
    checkBoth(c);
  }
  PatternCase c;
  c.batch = 3;
  c.length = 600;
  c.heads = c.results = 3;
  c.windows = {2, 70, 129};
  c.firstPlaces = {128, 64, 256};
  c.starts = {{0, 5, 6, 300}, {0, 257, 258, 512}, {0, 64, 128, 299}};
  checkBoth(c);
  c.lse = true;
  check(c);
}

// Catches: sums of two heads with one's scale, or rows of one kept for another's first places.
TEST(PatternTiles, groupsWithFirstPlaces) {
  PatternCase c;
  c.back = true;
  c.batch = 2;
  c.length = 400;
  c.channel = 128;
  c.heads = 4;
  c.results = 3;
  c.places = 450;
  c.kvOf = {2, 0, 2, 2};
  c.windows = {INT32_MAX, 20, 100, 1};
  c.firstPlaces = {0, 64, 192, 128};
  c.starts = {{0, 111}, {0}};
  c.f32 = true;
  check(c);
  c.parts = 2;
  check(c);
}

// Catches: channels of the second panel in the first's place; a head's table, scale
// or window read for another's; patterns of more places than there are.
TEST(PatternTiles, wideHeads) {
  PatternCase c;
  c.batch = 2;
  c.length = 270;
  c.places = 333;
  c.heads = c.results = 3;
  c.channel = 128;
  c.windows = {INT32_MAX, 40, 200};
  c.starts = {{0, 90}, {0}};
  checkBoth(c);
  c.f32 = true;
  checkBoth(c);
}

// Catches: log-sums from the table's end.
TEST(PatternTiles, logSums) {
  PatternCase c;
  c.batch = 2;
  c.length = 300;
  c.heads = c.results = 2;
  c.lse = true;
  c.starts = {{0, 70, 290}, {0}};
  check(c);
  c.parts = 2;
  check(c);
}

// Heads that share a value head, one that nobody reads, scales far apart. Catches: sums
// of two heads with one's scale, a value head left as it was.
TEST(PatternTiles, groups) {
  PatternCase c;
  c.back = true;
  c.batch = 2;
  c.length = 280;
  c.heads = 4;
  c.results = 3;
  c.kvOf = {2, 0, 2, 2};
  c.windows = {INT32_MAX, 20, 100, INT32_MAX};
  c.starts = {{0, 111}, {0}};
  check(c);
  c.parts = 2;
  check(c);
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

PatternCase small(bool back) {
  PatternCase c;
  c.back = back;
  c.batch = 2;
  c.length = 330;
  c.windows = {200};
  c.starts = {{0, 40, 301}, {0}};
  if (back)
    c.heads = 2, c.kvOf = {0, 0};
  return c;
}

TEST(PatternTiles, everyOrderGivesTheSameBits) {
  constexpr uint64_t kSchedules = 50; // of each
  for (int kind : {0, 1, 2, 3}) {
    PatternCase c = small(kind % 2 != 0);
    if (kind > 1)
      c.windows = {40}, c.firstPlaces.assign(static_cast<size_t>(c.heads), 64), c.parts = 2;
    PatternHarness harness(c);
    std::vector<float> first;
    for (uint64_t seed = 0; seed < kSchedules; ++seed) {
      absl::Status status = harness.run({seed, kEffects[seed % 3], 1 + static_cast<int64_t>(seed % 3)});
      ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.ToString();
      if (seed == 0)
        first = harness.results();
      ASSERT_EQ(harness.results(), first) << "seed " << seed;
    }
    EXPECT_EQ(harness.difference(), "");
  }
}

struct Fault {
  const char *name;
  void (*plant)(tile::KernelOp);
};

bool isElected(mlir::Operation *op) { return op->getParentOfType<tile::ElectOp>() != nullptr; }

template <class Op> void takeOut(tile::KernelOp kernel, bool (*which)(mlir::Operation *)) {
  kernel.walk([&](Op op) {
    if (which(op))
      op->erase();
  });
}

const Fault kFaults[] = {
    {"tiles are read before they have come",
     [](tile::KernelOp kernel) { takeOut<tile::WaitOp>(kernel, [](auto *op) { return !isElected(op); }); }},
    {"tiles are filled before they have been read",
     [](tile::KernelOp kernel) { takeOut<tile::WaitOp>(kernel, isElected); }},
    {"tiles are never given back",
     [](tile::KernelOp kernel) { takeOut<tile::ArriveOp>(kernel, [](auto *) { return true; }); }},
    {"one warpgroup gives tiles back for all",
     [](tile::KernelOp kernel) {
       kernel.walk([](tile::InitBarrierOp op) {
         if (op.getCount() > 1)
           op.setCount(tile::ArriveOp::kWarps);
       });
     }},
    {"products are read before they are done",
     [](tile::KernelOp kernel) {
       kernel.walk([](tile::WaitProductsOp op) { op.setPending(op.getPending() + 1); });
     }},
    {"registers are not fenced",
     [](tile::KernelOp kernel) { takeOut<tile::FenceProductsOp>(kernel, [](auto *) { return true; }); }},
    {"fewer bytes are expected than come",
     [](tile::KernelOp kernel) { kernel.walk([](tile::ExpectOp op) { op.setBytes(op.getBytes() - 16); }); }},
    {"rows of others are stored",
     [](tile::KernelOp kernel) { kernel.walk([](tile::StoreFragOp op) { op.setTail(!op.getTail()); }); }},
};

TEST(PatternTiles, plantedFaultsAreFound) {
  constexpr uint64_t kTries = 9;
  for (bool back : {false, true})
    for (const Fault &fault : kFaults) {
      PatternHarness harness(small(back));
      fault.plant(harness.tile.kernel());
      bool found = false;
      for (uint64_t seed = 0; seed < kTries && !found; ++seed)
        found = !harness.run({seed, kEffects[seed % 3], 1}).ok() || !harness.difference().empty();
      EXPECT_TRUE(found) << fault.name << (back ? ", back" : "");
    }
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

TEST(PatternTiles, assembly) {
  if (!findPtxas().ok())
    GTEST_SKIP() << "unsupported: " << findPtxas().status().message();
  for (int64_t channel : {64, 128})
    for (bool back : {false, true})
      for (int kind : {0, 1, 2, 3}) {
        const bool grouped = kind % 2 != 0;
        PatternCase c;
        c.back = back;
        c.batch = 2, c.length = 4096, c.heads = c.results = 3, c.channel = channel;
        if (kind > 1)
          c.firstPlaces = {64, 0, 128}, c.windows = {300};
        c.parts = kind % 2 ? 4 : 2;
        if (grouped && back)
          c.kvOf = {0, 0, 0}, c.results = 1;
        c.lse = grouped && !back;
        std::string name = "channel " + std::to_string(channel) + (back ? ", back" : "") +
                           (grouped ? back ? ", grouped" : ", log-sums" : "") +
                           (kind > 1 ? ", first places" : "");
        PatternHarness harness(c);
        auto module = lowerTileToLLVM(harness.tile.kernel(), {});
        ASSERT_TRUE(succeeded(module)) << name;
        auto ptx = translateToPtx(**module, {});
        ASSERT_TRUE(succeeded(ptx)) << name;
        auto report = assemble(*ptx, "sm_90a");
        ASSERT_TRUE(report.ok()) << name << ": " << report.status().ToString();
        absl::Status good = checkReport(*report, name);
        EXPECT_TRUE(good.ok()) << good.ToString();
        EXPECT_EQ(report->spillStoreBytes + report->spillLoadBytes, 0) << name;
        std::cout << name << ": " << report->registers << " registers, spills " << report->spillStoreBytes
                  << " and " << report->spillLoadBytes << " bytes\n";
      }
}

} // namespace
} // namespace weft::test
