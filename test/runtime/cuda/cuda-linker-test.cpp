#include "runtime/cuda/Linker.h"

#include "test/runtime/cuda/CudaExecutable.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace weft::rt {
namespace {

/// out[i] = twice(out[i]); `twice` is a library's.
constexpr const char *kCaller = R"(
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) twice(.param .b32 x);
.visible .entry caller(.param .u64 out)
{
  .reg .b64 %a<4>;
  .reg .b32 %x<3>;
  .reg .f32 %f<2>;
  ld.param.u64 %a0, [out];
  cvta.to.global.u64 %a1, %a0;
  mov.u32 %x0, %tid.x;
  mul.wide.u32 %a2, %x0, 4;
  add.s64 %a3, %a1, %a2;
  ld.global.f32 %f0, [%a3];
  {
    .param .b32 x;
    .param .b32 result;
    st.param.f32 [x], %f0;
    call.uni (result), twice, (x);
    ld.param.f32 %f1, [result];
  }
  st.global.f32 [%a3], %f1;
  ret;
}
)";
constexpr const char *kTwice = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .func (.param .b32 result) twice(.param .b32 x)
{
  .reg .f32 %f<2>;
  ld.param.f32 %f0, [x];
  add.f32 %f1, %f0, %f0;
  st.param.f32 [result], %f1;
  ret;
}
)";

class Linker : public ::testing::Test {
protected:
  void SetUp() override {
    absl::StatusOr<const cuda::LinkLibrary *> library = cuda::linkLibrary();
    if (!library.ok())
      GTEST_SKIP() << "unsupported: " << library.status().message();
    linker = *library;
    kernel = ptxKernel(kCaller, "caller");
    kernel.link = true;
  }
  std::string refusal(const std::vector<rt::Library> &libraries) const {
    return std::string(cuda::linkKernel(*linker, kernel, libraries, "sm_90a").status().message());
  }
  const cuda::LinkLibrary *linker = nullptr;
  Kernel kernel;
};

TEST_F(Linker, LinksPtxWithALibrary) {
  for (const char *chip : {"sm_80", "sm_90a"}) {
    absl::StatusOr<std::string> cubin =
        cuda::linkKernel(*linker, kernel, {{"mine", Library::Form::Ptx, kTwice}}, chip);
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    EXPECT_EQ(cubin->substr(0, 4), "\x7f"
                                   "ELF");
    EXPECT_NE(cubin->find("caller"), std::string::npos);
  }
}

TEST_F(Linker, LinksLtoIr) {
  std::string nvcc = "/usr/local/cuda/bin/nvcc";
  if (!std::filesystem::exists(nvcc))
    GTEST_SKIP() << "unsupported: no " << nvcc;
  std::string stem = ::testing::TempDir() + "weft-lto-" + std::to_string(getpid());
  std::ofstream(stem + ".cu") << "extern \"C\" __device__ float twice(float x) { return 2 * x; }\n";
  std::string command = nvcc + " -dc -dlto -arch=sm_90a -ltoir -o " + stem + ".ltoir " + stem + ".cu 2>&1";
  if (std::system(command.c_str()) != 0)
    GTEST_SKIP() << "unsupported: nvcc makes no LTO-IR here";
  std::ifstream file(stem + ".ltoir", std::ios::binary);
  std::string object{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  absl::StatusOr<std::string> cubin =
      cuda::linkKernel(*linker, kernel, {{"mine", Library::Form::LtoIr, object}}, "sm_90a");
  std::filesystem::remove(stem + ".cu");
  std::filesystem::remove(stem + ".ltoir");
  ASSERT_TRUE(cubin.ok()) << cubin.status();
  EXPECT_NE(cubin->find("caller"), std::string::npos);
}

TEST_F(Linker, NamesWhatIsMissingOrWrong) {
  std::string message = refusal({});
  for (const char *part : {"kernel @caller: linking failed (nvJitLink 1", "twice"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  message = refusal({{"mine", Library::Form::Ptx, "no ptx"}});
  EXPECT_NE(message.find("kernel @caller: library mine is refused"), std::string::npos) << message;
  kernel.object += "// setmaxnreg";
  message = refusal({{"mine", Library::Form::Ptx, kTwice}});
  EXPECT_NE(message.find("its PTX uses setmaxnreg"), std::string::npos) << message;
}

} // namespace
} // namespace weft::rt
