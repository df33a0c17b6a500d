//===- folded-test.cpp - Products and what follows them, on tiles ---------===//
#include "passes/Tile/Lower.h"
#include "passes/Tile/Ptxas.h"
#include "test/passes/Codegen/Gpu/FoldedHarness.h"

#include <iostream>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

using tile::Effects;
constexpr Effects kEffects[] = {Effects::Late, Effects::Early, Effects::Random};

std::string nameOf(const FoldedCase &c) {
  const char *kinds[] = {"gelu", "gelu's gradient", "gate"};
  return std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k) +
         (c.transposed ? ", transposed, " : ", ") + kinds[static_cast<size_t>(c.follow)];
}

void check(const FoldedCase &c) {
  SCOPED_TRACE(nameOf(c));
  FoldedHarness harness(c);
  absl::Status status = harness.run({1, Effects::Late, 2});
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(harness.difference(), "");
}

// Ends of tiles, slices and steps; fewer steps than slices, one step, more of them; bands of
// more than eight rows of tiles. Catches: rows or columns past the end that are stored,
// columns of one slice in another's place, a step left out, an item of a band done twice.
TEST(FoldedProducts, sizes) {
  const FoldedCase cases[] = {
      {Follow::Gelu, 1, 32, 64, false},        {Follow::Gelu, 129, 288, 72, true},
      {Follow::GeluGrad, 64, 256, 520, false}, {Follow::GeluGrad, 200, 544, 128, true},
      {Follow::Gate, 127, 96, 640, false},     {Follow::Gate, 1400, 320, 64, true},
      {Follow::Gelu, 128, 256, 768, false},
  };
  for (const FoldedCase &c : cases)
    check(c);
}

// Catches: bits that hang on the number of blocks of threads, a wait or a release in the wrong place.
TEST(FoldedProducts, everyOrderGivesTheSameBits) {
  constexpr uint64_t kSchedules = 12; // of each
  for (Follow follow : {Follow::Gelu, Follow::GeluGrad}) {
    FoldedHarness harness({follow, 300, 288, 640, follow == Follow::Gelu});
    std::vector<float> first;
    for (uint64_t seed = 0; seed < kSchedules; ++seed) {
      absl::Status status = harness.run({seed, kEffects[seed % 3], 1 + static_cast<int64_t>(seed % 4)});
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
    {"rows of others are stored",
     [](tile::KernelOp kernel) { kernel.walk([](tile::StoreFragOp op) { op.setTail(true); }); }},
    {"columns are worked on in another order",
     [](tile::KernelOp kernel) {
       kernel.walk([](tile::ColumnsOp op) { op.setFirst(op.getFirst() == 0 ? 32 : op.getFirst()); });
     }},
};

TEST(FoldedProducts, plantedFaultsAreFound) {
  constexpr uint64_t kTries = 6;
  for (const Fault &fault : kFaults) {
    FoldedHarness harness({Follow::GeluGrad, 200, 288, 640, true});
    fault.plant(harness.tile.kernel());
    bool found = false;
    for (uint64_t seed = 0; seed < kTries && !found; ++seed)
      found = !harness.run({seed, kEffects[seed % 3], 1}).ok() || !harness.difference().empty();
    EXPECT_TRUE(found) << fault.name;
  }
}

TEST(FoldedProducts, assembly) {
  if (!findPtxas().ok())
    GTEST_SKIP() << "unsupported: " << findPtxas().status().message();
  for (const FoldedCase &c : {FoldedCase{Follow::Gelu, 65536, 3072, 768, false},
                              FoldedCase{Follow::GeluGrad, 65536, 3072, 768, true}}) {
    FoldedHarness harness(c);
    auto module = lowerTileToLLVM(harness.tile.kernel(), {});
    ASSERT_TRUE(succeeded(module)) << nameOf(c);
    auto ptx = translateToPtx(**module, {});
    ASSERT_TRUE(succeeded(ptx)) << nameOf(c);
    auto report = assemble(*ptx, "sm_90a");
    ASSERT_TRUE(report.ok()) << nameOf(c) << ": " << report.status().ToString();
    absl::Status good = checkReport(*report, nameOf(c));
    EXPECT_TRUE(good.ok()) << good.ToString();
    EXPECT_EQ(report->spillStoreBytes + report->spillLoadBytes, 0) << nameOf(c);
    std::cout << nameOf(c) << ": " << report->registers << " registers\n";
  }
}

} // namespace
} // namespace weft::test
