//===- Profile.cpp --------------------------------------------------------===//
#include "runtime/cpu/Profile.h"

#include "runtime/core/Json.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"

namespace weft::rt {

std::string kindOf(const Kernel &kernel) {
  if (kernel.kind == Kernel::Kind::Zero || kernel.kind == Kernel::Kind::Copy)
    return "memory";
  auto named = [&](auto... words) { return (absl::StrContains(kernel.name, words) || ...); };
  if (named("attend", "pattern"))
    return "attention";
  if (kernel.kind == Kernel::Kind::Gemm || named("contract", "loss_head"))
    return "product";
  if (named("loss_"))
    return "loss";
  if (named("adamw", "muon", "clip_scale") || absl::StartsWith(kernel.name, "norm_"))
    return "optimiser";
  return "rows";
}

double KernelTime::share(const Ceilings &ceilings) const {
  auto part = [&](double work, double ceiling) {
    return ceiling > 0 && seconds > 0 ? work / seconds / ceiling : 0;
  };
  return std::max(part(bytes, ceilings.bytesPerSecond), part(flops, ceilings.flopsPerSecond));
}

Profile::Profile(const Executable &executable, std::string path)
    : executable(executable), path(std::move(path)), active(!this->path.empty()),
      sums(executable.kernels.size()) {}

Profile::~Profile() {
  if (path.empty())
    return;
  std::ofstream file(path);
  if (!(file << text() << '\n' << std::flush))
    std::fprintf(stderr, "warning: WEFT_PROFILE: can't write %s\n", path.c_str());
}

void Profile::add(uint32_t kernel, double bytes, Clock::duration time) {
  ++sums[kernel].calls;
  sums[kernel].bytes += bytes;
  sums[kernel].time += time;
}

void Profile::clear() { std::fill(sums.begin(), sums.end(), Sum()); }

std::vector<KernelTime> Profile::times() const {
  std::vector<KernelTime> list;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Kernel &kernel = executable.kernels[i];
    if (const Sum &sum = sums[i]; sum.calls)
      list.push_back({kernel.name, kernel.hash, kindOf(kernel), sum.calls,
                      std::chrono::duration<double>(sum.time).count(), sum.bytes,
                      kernel.flops * static_cast<double>(sum.calls)});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const KernelTime &a, const KernelTime &b) { return a.seconds > b.seconds; });
  return list;
}

std::string Profile::text() const {
  OrderedJson list = OrderedJson::array();
  for (const KernelTime &time : times()) {
    list.push_back({{"kernel", time.name},
                    {"hash", time.hash},
                    {"kind", time.kind},
                    {"calls", time.calls},
                    {"seconds", time.seconds},
                    {"bytes", time.bytes},
                    {"flops", time.flops}});
    if (double share = time.share(ceilings); share > 0)
      list.back()["share"] = share;
  }
  return dumpJson(list, 1);
}

} // namespace weft::rt
