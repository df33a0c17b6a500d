//===- HostFeatures.h - Can this processor run a target? --------*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace weft::rt {

/// Vector features that code may use, in LLVM's names (avx2, avx512f, fma...),
/// read from a text like /proc/cpuinfo: those its `flags` line has.
std::vector<std::string> vectorFeatures(std::string_view cpuinfo);

/// Whether `target` (`cpu:x86_64+avx2+fma`) is a CPU whose vector features
/// `cpuinfo` has. Features that are no vector features are not judged. Errors:
/// InvalidArgument with what is missing.
absl::Status checkTarget(std::string_view target, std::string_view cpuinfo);

/// The contents of /proc/cpuinfo.
std::string hostCpuinfo();

} // namespace weft::rt
