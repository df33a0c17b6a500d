#include "runtime/cpu/HostFeatures.h"

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

constexpr const char *kCpuinfo =
    "processor\t: 0\nflags\t\t: fpu sse4_1 avx avx2 fma avx512_vnni\nbugs\t\t: \n";

TEST(HostFeatures, ReadsVectorFeaturesInTheCompilersNames) {
  EXPECT_EQ(vectorFeatures(kCpuinfo), (std::vector<std::string>{"avx", "avx2", "fma", "avx512vnni"}));
  EXPECT_TRUE(vectorFeatures("").empty());
}

TEST(HostFeatures, TargetsThatTheProcessorLacksAreRefused) {
  EXPECT_TRUE(checkTarget("cpu:x86_64", kCpuinfo).ok());
  EXPECT_TRUE(checkTarget("cpu:x86_64+avx2+fma+64bit+sahf", kCpuinfo).ok());
  absl::Status status = checkTarget("cpu:x86_64+avx2+avx512f+avx512bw", kCpuinfo);
  EXPECT_NE(status.message().find("no avx512f, avx512bw;"), std::string::npos) << status;
  EXPECT_FALSE(checkTarget("reference", kCpuinfo).ok());
  EXPECT_FALSE(checkTarget("sm_90a", kCpuinfo).ok());
}

} // namespace
} // namespace weft::rt
