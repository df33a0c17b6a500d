//===- lower-test.cpp - What the PTX of tile kernels holds ----------------===//
//
// Counts come from the sizes: a product of 64 x n with k channels is k / 16
// instructions, a store of 64 x n in bf16 n / 8 pairs for each of two rows.
//
//===----------------------------------------------------------------------===//
#include "test/passes/Tile/LowerHarness.h"

#include "passes/Tile/Lower.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;
using namespace weft::testing;

namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST(Lower, Product) {
  std::string ptx = ptxOf(inputText("product"));
  ASSERT_EQ(ptx.rfind("error", 0), std::string::npos) << ptx;
  EXPECT_EQ(count(ptx, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"), 4); // k = 64
  EXPECT_EQ(count(ptx, "wgmma.fence.sync.aligned"), 1);
  EXPECT_EQ(count(ptx, "wgmma.wait_group.sync.aligned 0"), 1);
  EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d"), 2);
  EXPECT_EQ(count(ptx, "st.global"), 32); // 128 / 8 pairs of f32, two rows
  // Both operands: swizzle 128, 1024 bytes between groups of 8 rows, leading offset unused (1).
  // Catches a wrong mode, stride or field: 1 << 62 | (1024 >> 4) << 32, and (16 >> 4) << 16 in the low word.
  EXPECT_GE(count(ptx, std::to_string(0x4000004000000000)), 1);
  EXPECT_GE(count(ptx, ", 65536;"), 2);
  EXPECT_EQ(count(ptx, ".param .align 64 .b8"), 2);
  EXPECT_EQ(count(ptx, ".reqntid 128"), 1);
  EXPECT_EQ(count(ptx, ".local"), 0);
  EXPECT_EQ(count(ptx, ".target sm_90a"), 1);
}

TEST(Lower, SameBytesEachTime) { EXPECT_EQ(ptxOf(inputText("attention")), ptxOf(inputText("attention"))); }

TEST(Lower, AttentionKeepsScoresInRegisters) {
  std::string ptx = ptxOf(inputText("attention"));
  ASSERT_EQ(ptx.rfind("error", 0), std::string::npos) << ptx;
  EXPECT_EQ(count(ptx, "wgmma.mma_async.sync.aligned.m64n128k16"),
            2 * 4); // before and in the loop, 64 channels
  EXPECT_EQ(count(ptx, "wgmma.mma_async.sync.aligned.m64n64k16"), 2 * 8); // in and after the loop, 128 keys
  EXPECT_EQ(count(ptx, "cvt.rn.bf16x2.f32"), 2 * 32 + 16); // probabilities twice, the output once
  EXPECT_EQ(count(ptx, "ex2.approx.ftz.f32"), 2 * 64 + 2); // scores twice, the factor of each row
  EXPECT_EQ(count(ptx, "ld.shared") + count(ptx, "st.shared"), 0);
  EXPECT_EQ(count(ptx, ".local"), 0);
  EXPECT_EQ(count(ptx, "setmaxnreg.dec.sync.aligned.u32 40"), 1);
  EXPECT_EQ(count(ptx, ".minnctapersm 1"), 1);
}

TEST(Lower, Sm80) {
  std::string ptx = ptxOf(inputText("product80"), {"sm_80", 80});
  ASSERT_EQ(ptx.rfind("error", 0), std::string::npos) << ptx;
  EXPECT_EQ(count(ptx, "mma.sync.aligned.m16n8k16"), 4 * 4);                       // k / 16 times n / 8
  EXPECT_EQ(count(ptx, "ldmatrix.sync.aligned.m8n8.x4.trans"), 4 * 2);             // n contiguous
  EXPECT_EQ(count(ptx, "ldmatrix.sync.aligned.m8n8.x4.shared"), 4);                // the left operand
  EXPECT_EQ(count(ptx, "cp.async.cg.shared.global"), 64 * 8 / 128 + 64 * 4 / 128); // 16-byte units a thread
  EXPECT_EQ(count(ptx, "st.global"), 8);
  EXPECT_EQ(count(ptx, ".target sm_80"), 1);
}

TEST(Lower, RefusesByName) {
  std::string text = inputText("product");
  EXPECT_NE(ptxOf(text, {"sm_80", 80}).find("needs sm_90a, but the target is sm_80"), std::string::npos);
  EXPECT_NE(ptxOf(inputText("softcap"), {"sm_70", 80}).find("expected sm_90a or sm_80"), std::string::npos);
  std::string other = ptxOf(replaced(inputText("attention"), "math.log %s", "math.erf %s"));
  EXPECT_NE(other.find("math.erf"), std::string::npos) << other;
}

/// PTX of a module in LLVM's dialect, or the error.
std::string translated(const std::string &text) {
  DialectRegistry registry;
  registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string first;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { first = diagnostic.str(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  FailureOr<std::string> ptx = failure();
  if (module)
    ptx = translateToPtx(*module, {});
  return failed(ptx) ? "error: " + first : *ptx;
}

// 641 divides 2^32 + 1, so that a quotient by it is the upper half of a product and nothing more. Two of
// them, widened and subtracted, are what ptxas 13.0 gets wrong; catches a text that reaches it, and the
// refusal of a sum of the same.
TEST(Lower, RefusesWhatPtxasGetsWrong) {
  std::string text = R"(llvm.func @parts(%x: !llvm.ptr, %a: i32, %b: i32) attributes {nvvm.kernel} {
    %c = llvm.mlir.constant(641 : i32) : i32
    %p = llvm.udiv %a, %c : i32
    %q = llvm.udiv %b, %c : i32
    %pw = llvm.zext %p : i32 to i64
    %qw = llvm.zext %q : i32 to i64
    %d = llvm.sub %pw, %qw : i64
    llvm.store %d, %x : i64, !llvm.ptr
    llvm.return
  })";
  std::string refused = translated(text);
  EXPECT_NE(refused.find("difference of two divisions in 'parts' wrong"), std::string::npos) << refused;
  EXPECT_NE(translated(replaced(text, "llvm.sub", "llvm.add")).find("mul.hi.u32"), std::string::npos);
}

// Gates: what ptxas says of each.
TEST(Lower, Assembles) {
  if (!findPtxas().ok())
    GTEST_SKIP() << "unsupported: " << findPtxas().status().message();
  for (auto [name, chip] : {std::pair<const char *, const char *>{"product", "sm_90a"},
                            {"attention", "sm_90a"},
                            {"product80", "sm_80"}}) {
    auto report = assemble(ptxOf(inputText(name), {chip, 80}), chip);
    ASSERT_TRUE(report.ok()) << name << ": " << report.status();
    EXPECT_TRUE(checkReport(*report, name).ok()) << checkReport(*report, name);
    EXPECT_EQ(report->spillStoreBytes, 0) << name;
    EXPECT_GT(report->cubin.size(), 1000u);
    std::printf("%s: %ld registers, %ld bytes of stack\n", name, static_cast<long>(report->registers),
                static_cast<long>(report->stackBytes));
  }
}

TEST(Ptxas, ReadsItsLog) {
  PtxasReport report = parsePtxasLog(
      "ptxas info    : (C7519) warpgroup.arrive is injected in around line 9 by compiler in function 'a'\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 72 bytes spill stores, 68 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers, 80 bytes smem\n");
  EXPECT_EQ(report.registers, 168);
  EXPECT_EQ(report.sharedBytes, 80);
  EXPECT_EQ(report.stackBytes, 16);
  EXPECT_EQ(report.spillStoreBytes, 72);
  EXPECT_EQ(report.spillLoadBytes, 68);
  EXPECT_EQ(report.codes(), std::vector<std::string>{"C7519"});
  EXPECT_TRUE(checkReport(report, "a", 72).ok());
  // Catches a gate that looks at loads alone.
  EXPECT_FALSE(checkReport(report, "a", 70).ok());
  report =
      parsePtxasLog("ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are "
                    "serialized due to insufficient register resources in function 'a'\n");
  EXPECT_NE(checkReport(report, "a").message().find("C7512"), std::string::npos);
}

TEST(Ptxas, RefusesWhatIsNoPtx) {
  if (!findPtxas().ok())
    GTEST_SKIP() << "unsupported: " << findPtxas().status().message();
  auto report = assemble("no PTX", "sm_90a");
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(report.status().message().find("refused a kernel for sm_90a"), std::string::npos);
}

} // namespace
