//===- attend-schedules-test.cpp - Orders in which attention may run ------===//
//
// Small attentions under many interleavings, and kernels with a fault in their
// choreography: each must be found.
//
//===----------------------------------------------------------------------===//
#include "test/passes/Codegen/Gpu/AttendHarness.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gtest/gtest.h>

namespace weft::test {
namespace {

using tile::Effects;

constexpr AttendPassKind kPasses[] = {AttendPassKind::Forward, AttendPassKind::Query,
                                      AttendPassKind::KeyValue};
constexpr Effects kEffects[] = {Effects::Late, Effects::Early, Effects::Random};
const AttendOptions kProducer = AttendOptions::fastest();

/// Several items a CTA, rings that go round, blocks that one warpgroup leaves out.
AttendCase small() {
  AttendCase c;
  c.length = 200;
  c.windows = {INT32_MAX, 20};
  c.kvHeads = 1;
  c.groups = 2;
  c.starts = {0, 90};
  return c;
}

void runSchedules(const AttendCase &c, AttendPassKind pass, const AttendOptions &options, uint64_t count) {
  AttendHarness harness(c, pass, {}, options);
  std::vector<float> first;
  for (uint64_t seed = 0; seed < count; ++seed) {
    absl::Status status = harness.run({seed, kEffects[seed % 3], 1 + static_cast<int64_t>(seed % 2)});
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.ToString();
    if (seed == 0) {
      first = harness.results();
      EXPECT_EQ(harness.difference(), "");
    }
    ASSERT_EQ(harness.results(), first) << "seed " << seed;
  }
}

TEST(AttendSchedules, everyOrderGivesTheSameBits) {
  constexpr uint64_t kSchedules = 1000; // of all kernels together
  constexpr uint64_t kKernels = 6;
  for (AttendPassKind pass : kPasses)
    for (const AttendOptions &options : {AttendOptions{}, kProducer})
      runSchedules(small(), pass, options, (kSchedules + kKernels - 1) / kKernels);
}

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

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
     [](tile::KernelOp kernel) { kernel.walk([](tile::ExpectOp op) { op.setBytes(op.getBytes() / 2); }); }},
    {"a query does not see itself",
     [](tile::KernelOp kernel) {
       kernel.walk([](mlir::arith::CmpIOp op) {
         if (op.getPredicate() == mlir::arith::CmpIPredicate::ule)
           op.setPredicate(mlir::arith::CmpIPredicate::ult);
       });
     }},
    {"each block is seen whole",
     [](tile::KernelOp kernel) {
       kernel.walk([](tile::MapOp op) {
         op.walk([](mlir::arith::SelectOp select) { select.replaceAllUsesWith(select.getTrueValue()); });
       });
     }},
    {"all CTAs do the first one's items",
     [](tile::KernelOp kernel) {
       kernel.walk([](tile::GridSizeOp op) {
         mlir::OpBuilder b(op);
         op.replaceAllUsesWith(
             mlir::arith::ConstantOp::create(b, op.getLoc(), b.getI32IntegerAttr(2)).getResult());
       });
     }},
};

/// Whether some order shows that the kernel is wrong.
bool isFound(AttendHarness &harness) {
  constexpr uint64_t kTries = 9;
  for (uint64_t seed = 0; seed < kTries; ++seed)
    if (!harness.run({seed, kEffects[seed % 3], 1}).ok() || !harness.difference().empty())
      return true;
  return false;
}

void plantEach(AttendPassKind pass, const AttendOptions &options) {
  for (const Fault &fault : kFaults) {
    AttendHarness harness(small(), pass, {}, options);
    fault.plant(harness.tile.kernel());
    EXPECT_TRUE(isFound(harness)) << fault.name << ", pass " << static_cast<int>(pass);
  }
}

TEST(AttendSchedules, plantedFaultsAreFound) {
  for (AttendPassKind pass : kPasses)
    plantEach(pass, {});
}
TEST(AttendSchedules, plantedFaultsWithProducerAreFound) {
  for (AttendPassKind pass : kPasses)
    plantEach(pass, kProducer);
}

} // namespace
} // namespace weft::test
