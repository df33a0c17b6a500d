//===- faults-test.cpp - Each planted fault is found by its name ----------===//

#include "test/dialects/Tile/Interpret/Kernels.h"

#include "absl/strings/str_cat.h"

using namespace weft::tile;

namespace {

/// Runs `text` under seeds and effects; true when some run names the fault and none that ends well is wrong.
bool finds(std::string_view name, const std::string &text, int64_t ctas = 1) {
  Parsed parsed(text);
  if (!parsed.module)
    return false;
  bool found = false;
  for (Effects effects : {Effects::Late, Effects::Early, Effects::Random})
    for (uint64_t seed = 0; seed < 6; ++seed) {
      PipelineData data;
      Schedule schedule{seed, effects, ctas, true};
      absl::Status status = interpretTile(parsed.kernel, data.arguments(), schedule);
      found |= absl::StartsWith(status.message(), absl::string_view(name.data(), name.size()));
      if (status.ok()) {
        EXPECT_LT(data.distance(), 1e-3) << name << ": wrong, and nobody noticed";
      } else {
        EXPECT_NE(status.message().find(" at loc("), std::string::npos) << status.message();
      }
    }
  return found;
}

const std::string kWaitFull = "        tile.wait %full[%s] parity %p : !bars\n";
const std::string kArrive = "        tile.arrive %empty[%s] : !bars\n";
const std::string kWaitProducts = "        %next = tile.wait_products 0 (%under) : !acc -> !acc\n";

/// One item in two steps: each stage is filled once, so that nothing is released too early.
std::string shortened() {
  return with(with(kPipeline, "%c5 = arith.constant 5", "%c5 = arith.constant 2"), "%c3 = arith.constant 3",
              "%c3 = arith.constant 1");
}

TEST(TileFaults, ReadsBeforeTheCopyWasWaitedFor) {
  EXPECT_TRUE(finds(kMissingWait, with(kPipeline, kWaitFull, "")));
}

TEST(TileFaults, ReleasesAStageUnderItsProducts) {
  std::string text = with(with(kPipeline, kArrive, ""), kWaitProducts, kArrive + kWaitProducts);
  EXPECT_TRUE(finds(kEarlyRelease, text));
}

TEST(TileFaults, OverwritesWithoutWaitingForTheRelease) {
  EXPECT_TRUE(
      finds(kEarlyRelease, with(kPipeline, "          tile.wait %empty[%s] parity %p : !bars\n", "")));
}

TEST(TileFaults, NeverFlipsTheParity) {
  std::string text = kPipeline;
  size_t consumers = text.find("} consumers");
  std::string half = with(text.substr(consumers), "arith.xori %p, %s", "arith.xori %p, %c0");
  EXPECT_TRUE(finds(kWrongParity, text.substr(0, consumers) + half));
}

TEST(TileFaults, ArrivesMoreOftenThanCounted) {
  EXPECT_TRUE(finds(kWrongParity, with(kPipeline, "%empty[%c0] count 4", "%empty[%c0] count 3")));
}

TEST(TileFaults, LeavesOutAFence) {
  EXPECT_TRUE(finds(kMissingFence, with(kPipeline, "        tile.fence_products\n", "")));
  EXPECT_TRUE(finds(kMissingFence, with(kPipeline, "    tile.fence_init\n", "")));
}

TEST(TileFaults, UsesBarriersBeforeTheyHaveACount) {
  EXPECT_TRUE(finds(kMissingWait, with(kPipeline, "  tile.sync %c0 threads 256\n", "")));
}

TEST(TileFaults, NeverReleases) { EXPECT_TRUE(finds(kDeadlock, with(kPipeline, kArrive, ""))); }

TEST(TileFaults, GathersThreadsThatNeverCome) {
  std::string text = with(kPipeline, "tile.store_frag", "tile.sync %c1 threads 256\n      tile.store_frag");
  EXPECT_TRUE(finds(kDeadlock, text));
}

TEST(TileFaults, LeavesTheRing) {
  EXPECT_TRUE(finds(kOutOfTile, with(kPipeline, "%turn, %flip, %next", "%c3, %flip, %next")));
}

// Statically fine: what is under way goes round the loop.
TEST(TileFaults, UsesAResultUnderWay) {
  EXPECT_TRUE(finds(kInFlight, with(shortened(), "wait_products 0", "wait_products 1")));
}

TEST(TileFaults, ForgetsToCommit) {
  EXPECT_TRUE(finds(kInFlight, with(shortened(), "        tile.commit_products\n", "")));
}

TEST(TileFaults, LeavesAResultOutOfTheWait) {
  std::string text = with(kPipeline, kWaitProducts,
                          "        tile.wait_products 0\n"
                          "        %next = tile.wait_products 0 (%under) : !acc -> !acc\n");
  EXPECT_TRUE(finds(kInFlight, text));
}

// In one block the verifier sees it; here the copies stand in another.
TEST(TileFaults, ExpectsOtherBytesThanCome) {
  for (int bytes : {8192, 24576}) {
    std::string text = with(kPipeline, "bytes 16384 : !bars\n",
                            absl::StrCat("bytes ", bytes, " : !bars\n        }\n        tile.elect {\n"));
    EXPECT_TRUE(finds(kBytesDiffer, text)) << bytes;
  }
}

TEST(TileFaults, WritesOutsideOfABuffer) {
  EXPECT_TRUE(
      finds(kOutOfBounds, with(kPipeline, "%w4096 = arith.constant 4096", "%w4096 = arith.constant 4098")));
  EXPECT_TRUE(
      finds(kOutOfBounds, with(kPipeline, "%w4096 = arith.constant 4096", "%w4096 = arith.constant -2")));
}

TEST(TileFaults, WritesRowsAtOddElements) {
  EXPECT_TRUE(
      finds(kMisaligned, with(kPipeline, "%w4096 = arith.constant 4096", "%w4096 = arith.constant 4095")));
}

// Each CTA does all items.
TEST(TileFaults, WritesWhatAnotherCtaWrites) {
  EXPECT_TRUE(
      finds(kWrittenTwice, with(kPipeline, "%first = tile.cta", "%first = arith.constant 0 : i32"), 2));
}

TEST(TileFaults, EndsWhileACopyIsUnderWay) {
  std::string text = R"mlir(
    !tile = !tile.smem<1x64x64xbf16, swizzle 128>
    tile.kernel @end(%o: !tile.global<f32>, %a: !tile.map, %b: !tile.map) threads 128 shared 65536 items 1 {
      %c0 = arith.constant 0 : i32
      %t = tile.alloc : !tile
      %full = tile.barriers : !tile.barriers<1>
      tile.elect {
        tile.init_barrier %full[%c0] count 1 : !tile.barriers<1>
        tile.fence_init
        tile.expect %full[%c0] bytes 8192 : !tile.barriers<1>
        tile.load_tile %a[%c0, %c0] to %t barrier %full[%c0] : !tile, !tile.barriers<1>
      }
      tile.return
    })mlir";
  PipelineData data;
  Schedule schedule{0, Effects::Late, 1, true};
  absl::Status status = runPipeline(text, data, schedule);
  EXPECT_TRUE(absl::StartsWith(status.message(), "missing wait")) << status.message();
}

//===----------------------------------------------------------------------===//
// Numbers of items
//===----------------------------------------------------------------------===//

/// Runs `text`, made from kItems, under many schedules. Each ends well with the right numbers where `name` is
/// empty; else none does, and some name that fault.
void runItems(const std::string &text, std::string_view name) {
  Parsed parsed(text);
  ASSERT_TRUE(parsed.module);
  bool named = name.empty();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Buffer out = Buffer::poisoned(Element::I32, 7);
    absl::Status status = interpretTile(parsed.kernel, {{&out}, {}},
                                        {seed, Effects::Random, 1 + static_cast<int64_t>(seed % 9)});
    bool right = status.ok() && out.integers == std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ(right, name.empty()) << name << ", seed " << seed << ": " << status.message();
    named |= absl::StartsWith(status.message(), absl::string_view(name.data(), name.size()));
  }
  EXPECT_TRUE(named) << name;
}

const std::string kTold = "      tile.wait %b[%c0] parity %p : !bars\n";
const std::string kRead = "      %number = tile.read %cell[%c0] : !cell\n";
const std::string kGiveBack = "      tile.arrive %b[%c1] : !bars\n";

TEST(TileItems, EachIsDoneOnceWhoeverGetsIt) { runItems(kItems, ""); }

TEST(TileItems, ReadBeforeTheyAreTold) { runItems(with(kItems, kTold, ""), kMissingWait); }

TEST(TileItems, WrittenOverBeforeTheyAreRead) {
  runItems(with(kItems, "        tile.wait %b[%c1] parity %p : !bars\n", ""), kEarlyRelease);
  runItems(with(with(kItems, kGiveBack, ""), kRead, kGiveBack + kRead), kEarlyRelease);
}

// The counter would not be 0 in the next launch.
TEST(TileItems, AskedForTooOftenOrTooSeldom) {
  runItems(with(kItems, "        %number = tile.next_item\n",
                "        %lost = tile.next_item\n        %number = tile.next_item\n"),
           kItemsLeft);
  runItems(with(kItems, "%c7 = arith.constant 7", "%c7 = arith.constant 0"), kItemsLeft);
}

//===----------------------------------------------------------------------===//
// The order of effects
//===----------------------------------------------------------------------===//

/// Of some schedules, the largest distance of the numbers when nothing is judged.
double distanceOf(const std::string &text, Effects effects, size_t items = PipelineData::kItems,
                  size_t depth = PipelineData::kDepth) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 8 && !std::isnan(worst); ++seed) {
    PipelineData data;
    absl::Status status = runPipeline(text, data, {seed, effects, 1, /*judge=*/false});
    EXPECT_TRUE(status.ok()) << status.message();
    double distance = data.distance(items, depth);
    worst = std::isnan(distance) || distance > worst ? distance : worst;
  }
  return worst;
}

// Fails if products were applied at issue: then late would give the right numbers too.
TEST(TileEffects, LateProductsShowWhatEarlyOnesHide) {
  std::string released = with(with(kPipeline, kArrive, ""), kWaitProducts, kArrive + kWaitProducts);
  EXPECT_LT(distanceOf(released, Effects::Early), 1e-3);
  EXPECT_FALSE(distanceOf(released, Effects::Late) < 1e-3);
  std::string underWay = with(kPipeline, "wait_products 0", "wait_products 1");
  EXPECT_LT(distanceOf(underWay, Effects::Early), 1e-3);
  EXPECT_TRUE(std::isnan(distanceOf(underWay, Effects::Late)));
}

// A copy that lands at issue hides a missing wait from the numbers; one that is late leaves NaN.
TEST(TileEffects, LateCopiesLeavePoison) {
  std::string text = with(shortened(), kWaitFull, "        tile.sync %c1 threads 256\n");
  text = with(text, "to %tb barrier %full[%s] : !tile, !bars\n        }\n",
              "to %tb barrier %full[%s] : !tile, !bars\n        }\n        tile.sync %c1 threads 256\n");
  EXPECT_LT(distanceOf(text, Effects::Early, 1, 128), 1e-3);
  EXPECT_TRUE(std::isnan(distanceOf(text, Effects::Late, 1, 128)));
}

} // namespace
