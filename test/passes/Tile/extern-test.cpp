//===- extern-test.cpp - Kernels that call a user's own function ----------===//
#include "runtime/cuda/Linker.h"
#include "test/passes/Tile/LowerHarness.h"

#include "runtime/core/File.h"

#include "absl/strings/str_cat.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include <unistd.h>

using namespace weft;
using namespace weft::testing;

namespace {

class Extern : public ::testing::Test {
protected:
  void SetUp() override {
    auto library = rt::cuda::linkLibrary();
    if (!library.ok())
      GTEST_SKIP() << "unsupported: " << library.status().message();
    linker = *library;
    kernel.kind = rt::Kernel::Kind::Code;
    kernel.form = rt::Kernel::Form::Ptx;
    kernel.symbol = "capped";
    kernel.link = true;
    kernel.object = ptxOf(inputText("softcap"));
    ASSERT_NE(kernel.object.rfind("error", 0), 0u) << kernel.object;
  }
  const rt::cuda::LinkLibrary *linker = nullptr;
  rt::Kernel kernel;
};

std::string softcapPtx() {
  auto text = rt::readFile(absl::StrCat(WEFT_SOURCE_DIR, "/test/passes/Tile/Inputs/softcap.ptx"));
  return text.ok() ? *text : absl::StrCat("error: ", text.status().message());
}

TEST(ExternPtx, DeclaresAndCallsEachElement) {
  std::string ptx = ptxOf(inputText("softcap"));
  // Catches a declaration that is internalised, and thus dropped or defined.
  EXPECT_EQ(count(ptx, ".extern .func"), 1) << ptx;
  EXPECT_EQ(count(ptx, "call.uni (retval0), softcap"), 32); // 64 x 64 elements over 128 threads
  std::string text = inputText("softcap");
  text.replace(text.find("@softcap"), 8, "@capped");
  EXPECT_NE(ptxOf(text).find("that name is already taken"), std::string::npos) << ptxOf(text);
}

TEST_F(Extern, LinksPtx) {
  auto cubin =
      rt::cuda::linkKernel(*linker, kernel, {{"user", rt::Library::Form::Ptx, softcapPtx()}}, "sm_90a");
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_EQ(cubin->substr(1, 3), "ELF");
  EXPECT_NE(cubin->find("capped"), std::string::npos);
}

TEST_F(Extern, MissingFunctionIsNamed) {
  auto cubin = rt::cuda::linkKernel(*linker, kernel, {}, "sm_90a");
  EXPECT_NE(std::string(cubin.status().message()).find("softcap"), std::string::npos) << cubin.status();
}

TEST_F(Extern, LinksLtoIr) {
  const std::string nvcc = "/usr/local/cuda/bin/nvcc";
  if (!std::filesystem::exists(nvcc))
    GTEST_SKIP() << "unsupported: no " << nvcc;
  std::string stem = absl::StrCat(::testing::TempDir(), "weft-softcap-", getpid());
  ASSERT_TRUE(rt::writeFileAtomic(absl::StrCat(stem, ".cu"),
                                  "extern \"C\" __device__ float softcap(float x) {"
                                  " return 32.0f * tanhf(x / 32.0f); }\n")
                  .ok());
  std::string command =
      absl::StrCat(nvcc, " -dc -dlto -arch=sm_90a -ltoir -o ", stem, ".ltoir ", stem, ".cu 2>&1");
  int code = std::system(command.c_str());
  auto object = rt::readFile(absl::StrCat(stem, ".ltoir"));
  std::filesystem::remove(absl::StrCat(stem, ".cu"));
  std::filesystem::remove(absl::StrCat(stem, ".ltoir"));
  if (code != 0 || !object.ok())
    GTEST_SKIP() << "unsupported: nvcc makes no LTO-IR here";
  auto cubin = rt::cuda::linkKernel(*linker, kernel, {{"user", rt::Library::Form::LtoIr, *object}}, "sm_90a");
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_NE(cubin->find("capped"), std::string::npos);
}

} // namespace
