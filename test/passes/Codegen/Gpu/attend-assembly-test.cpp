//===- attend-assembly-test.cpp - What ptxas says of attention on tiles ---===//
#include "passes/Tile/Lower.h"
#include "passes/Tile/Ptxas.h"
#include "test/passes/Codegen/Gpu/AttendHarness.h"

#include <iostream>

#include <gtest/gtest.h>

namespace weft::test {
namespace {

std::string ptxOf(AttendHarness &harness, const GpuTarget &target) {
  auto module = lowerTileToLLVM(harness.tile.kernel(), target);
  if (failed(module))
    return "";
  auto ptx = translateToPtx(**module, target);
  return succeeded(ptx) ? *ptx : "";
}

struct Part {
  AttendPassKind pass;
  bool entropies = false;
};
constexpr Part kParts[] = {{AttendPassKind::Forward},
                           {AttendPassKind::Forward, true},
                           {AttendPassKind::Query},
                           {AttendPassKind::KeyValue}};

AttendCase shipped(int64_t channel, bool entropies) {
  AttendCase c;
  c.batch = 2;
  c.length = 4096;
  c.kvHeads = 3;
  c.groups = 2;
  c.channel = channel;
  c.entropies = entropies;
  return c;
}

/// Sizes of a whole model without its numbers.
void assembleAll(const GpuTarget &target, const AttendOptions &options, bool forwardAlone = false) {
  if (!findPtxas().ok())
    GTEST_SKIP() << "unsupported: " << findPtxas().status().message();
  for (int64_t channel : {64, 128})
    for (const Part &part : kParts) {
      if (forwardAlone && part.pass != AttendPassKind::Forward)
        continue;
      std::string name = "channel " + std::to_string(channel) + ", pass " +
                         std::to_string(static_cast<int>(part.pass)) +
                         (part.entropies ? " with entropies" : "");
      AttendHarness harness(shipped(channel, part.entropies), part.pass, target, options);
      std::string ptx = ptxOf(harness, target);
      ASSERT_FALSE(ptx.empty()) << name;
      auto report = assemble(ptx, target.chip);
      ASSERT_TRUE(report.ok()) << name << ": " << report.status().ToString();
      absl::Status good = checkReport(*report, name);
      EXPECT_TRUE(good.ok()) << good.ToString();
      std::cout << name << ": " << report->registers << " registers, spills " << report->spillStoreBytes
                << " and " << report->spillLoadBytes << " bytes\n";
    }
}

TEST(AttendAssembly, sm90a) { assembleAll({}, {}); }
TEST(AttendAssembly, sm90aWithProducer) { assembleAll({}, AttendOptions::fastest()); }
// Forms beside the fastest. Catches: turns that are branched around and serialise products.
TEST(AttendAssembly, forwardForms) {
  for (const char *text : {"halves=0,brief=1,own=1", "branches=1", "branches=2", "groups=2", "groups=1"}) {
    AttendOptions options = AttendOptions::fastest();
    ASSERT_EQ(readForm(text, options), "");
    std::cout << text << "\n";
    assembleAll({}, options, /*forwardAlone=*/true);
  }
}
// Where no item takes turns ptxas spills 100 bytes a thread. Catches: items of a whole launch that take none.
TEST(AttendAssembly, shortRows) {
  if (!findPtxas().ok())
    GTEST_SKIP() << "unsupported: " << findPtxas().status().message();
  for (int64_t length : {512, 1024}) {
    AttendCase c = shipped(64, /*entropies=*/false);
    c.length = length, c.batch = 64;
    AttendHarness harness(c, AttendPassKind::Forward, {}, AttendOptions::fastest());
    EXPECT_EQ(harness.tile.threads, 512) << length;
    auto report = assemble(ptxOf(harness, {}), "sm_90a");
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    absl::Status good = checkReport(*report, "T=" + std::to_string(length));
    EXPECT_TRUE(good.ok()) << good.ToString();
  }
}
TEST(AttendAssembly, sm80) { assembleAll({"sm_80", 80}, {}); }

} // namespace
} // namespace weft::test
