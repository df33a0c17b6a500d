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

/// Forward with three warpgroups, as launches of many items have it at 64 channels.
AttendOptions threeGroups() {
  AttendOptions options = kProducer;
  options.groups = 3;
  return options;
}

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
    absl::Status status = harness.run({seed, kEffects[seed % 3], 1 + static_cast<int64_t>(seed % 3)});
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
  constexpr uint64_t kKernels = 10, kEach = (kSchedules + kKernels - 1) / kKernels;
  AttendCase observed = small();
  observed.entropies = true;
  for (const AttendOptions &options : {AttendOptions{}, kProducer}) {
    for (AttendPassKind pass : kPasses)
      runSchedules(small(), pass, options, kEach);
    runSchedules(observed, AttendPassKind::Forward, options, kEach);
  }
  for (const AttendCase &c : {small(), observed})
    runSchedules(c, AttendPassKind::Forward, threeGroups(), kEach);
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
};

/// Of kernels that work out which items are theirs.
const Fault kOwnItemFaults[] = {
    {"all CTAs do the first one's items",
     [](tile::KernelOp kernel) {
       kernel.walk([](tile::GridSizeOp op) {
         mlir::OpBuilder b(op);
         op.replaceAllUsesWith(
             mlir::arith::ConstantOp::create(b, op.getLoc(), b.getI32IntegerAttr(2)).getResult());
       });
     }},
};

template <class Op> Op before(mlir::Operation *op) {
  while (!mlir::isa<Op>(op))
    op = op->getPrevNode();
  return mlir::cast<Op>(op);
}
template <class Op> Op after(mlir::Operation *op) {
  while (!mlir::isa<Op>(op))
    op = op->getNextNode();
  return mlir::cast<Op>(op);
}

/// Of kernels whose producer asks for items.
const Fault kFreeItemFaults[] = {
    {"the number of an item is read before it has come",
     [](tile::KernelOp kernel) { kernel.walk([](tile::ReadOp op) { before<tile::WaitOp>(op).erase(); }); }},
    {"the number of an item is written over before it has been read",
     [](tile::KernelOp kernel) { kernel.walk([](tile::WriteOp op) { before<tile::WaitOp>(op).erase(); }); }},
    {"the number of an item is given back before it has been read",
     [](tile::KernelOp kernel) {
       llvm::SmallVector<tile::ReadOp> reads;
       kernel.walk([&](tile::ReadOp op) { reads.push_back(op); });
       for (tile::ReadOp op : reads)
         op->moveAfter(after<tile::ArriveOp>(op));
     }},
    {"two threads ask for items",
     [](tile::KernelOp kernel) { kernel.walk([](tile::NextItemOp op) { mlir::OpBuilder(op).clone(*op); }); }},
};

/// Whether some order shows that the kernel is wrong.
bool isFound(AttendHarness &harness) {
  constexpr uint64_t kTries = 9;
  for (uint64_t seed = 0; seed < kTries; ++seed)
    if (!harness.run({seed, kEffects[seed % 3], 1}).ok() || !harness.difference().empty())
      return true;
  return false;
}

void plantEach(AttendPassKind pass, const AttendOptions &options, const AttendCase &c = small()) {
  auto plant = [&](llvm::ArrayRef<Fault> faults) {
    for (const Fault &fault : faults) {
      AttendHarness harness(c, pass, {}, options);
      fault.plant(harness.tile.kernel());
      EXPECT_TRUE(isFound(harness)) << fault.name << ", pass " << static_cast<int>(pass);
    }
  };
  plant(kFaults);
  if (options.deal)
    plant(kFreeItemFaults);
  else
    plant(kOwnItemFaults);
}

TEST(AttendSchedules, plantedFaultsAreFound) {
  for (AttendPassKind pass : kPasses)
    plantEach(pass, {});
}
TEST(AttendSchedules, plantedFaultsWithEntropiesAreFound) {
  AttendCase c = small();
  c.entropies = true;
  plantEach(AttendPassKind::Forward, kProducer, c);
}
TEST(AttendSchedules, plantedFaultsWithProducerAreFound) {
  for (AttendPassKind pass : kPasses)
    plantEach(pass, kProducer);
  plantEach(AttendPassKind::Forward, threeGroups());
}

} // namespace
} // namespace weft::test
