//===- HostFeatures.cpp ---------------------------------------------------===//
#include "runtime/cpu/HostFeatures.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

/// LLVM's name, the kernel's name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kFeatures{
    {{"avx", "avx"},
     {"avx2", "avx2"},
     {"fma", "fma"},
     {"f16c", "f16c"},
     {"avxvnni", "avx_vnni"},
     {"avx512f", "avx512f"},
     {"avx512cd", "avx512cd"},
     {"avx512bw", "avx512bw"},
     {"avx512dq", "avx512dq"},
     {"avx512vl", "avx512vl"},
     {"avx512ifma", "avx512ifma"},
     {"avx512vbmi", "avx512vbmi"},
     {"avx512vbmi2", "avx512_vbmi2"},
     {"avx512vnni", "avx512_vnni"},
     {"avx512bf16", "avx512_bf16"},
     {"avx512fp16", "avx512_fp16"},
     {"avx512bitalg", "avx512_bitalg"},
     {"avx512vpopcntdq", "avx512_vpopcntdq"}}};

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(mark);
    parts.push_back(text.substr(0, end));
    if (end == text.npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

} // namespace

std::vector<std::string> vectorFeatures(std::string_view cpuinfo) {
  std::vector<std::string> features;
  size_t start = cpuinfo.find("\nflags");
  if (start == cpuinfo.npos)
    return features;
  std::string_view line = cpuinfo.substr(start + 1);
  std::vector<std::string_view> flags = split(line.substr(0, line.find('\n')), ' ');
  for (const auto &[name, flag] : kFeatures)
    if (std::find(flags.begin(), flags.end(), flag) != flags.end())
      features.emplace_back(name);
  return features;
}

absl::Status checkTarget(std::string_view target, std::string_view cpuinfo) {
  std::vector<std::string_view> parts = split(target, '+');
  if (parts[0] != "cpu" && !parts[0].starts_with("cpu:x86_64"))
    return absl::InvalidArgumentError(absl::StrCat("the executable is for target '", std::string(target),
                                                   "'; expected cpu:x86_64 with features"));
  std::vector<std::string> host = vectorFeatures(cpuinfo);
  std::string missing;
  for (std::string_view part : parts) {
    bool known = std::any_of(kFeatures.begin(), kFeatures.end(),
                             [&](const auto &feature) { return feature.first == part; });
    if (known && std::find(host.begin(), host.end(), part) == host.end())
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", std::string(part));
  }
  if (missing.empty())
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the executable is for target '", std::string(target),
                                                 "', but this processor has no ", missing,
                                                 "; compile it again on this machine"));
}

std::string hostCpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace weft::rt
