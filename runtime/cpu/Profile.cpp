//===- Profile.cpp --------------------------------------------------------===//
#include "runtime/cpu/Profile.h"

#include "runtime/core/Json.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"

namespace weft::rt {

std::string kindOf(const Kernel &kernel) {
  if (kernel.kind == Kernel::Kind::Zero || kernel.kind == Kernel::Kind::Copy)
    return "memory";
  auto named = [&](auto... words) { return (absl::StrContains(kernel.name, words) || ...); };
  if (named("attend", "pattern", "mix_"))
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
    : executable(executable), path(std::move(path)),
      tracePath(std::getenv("WEFT_TRACE") ? std::getenv("WEFT_TRACE") : ""),
      active(!this->path.empty() || !tracePath.empty()), sums(executable.kernels.size()) {}

Profile::~Profile() {
  auto write = [](const char *variable, const std::string &to, const std::string &text) {
    std::ofstream file(to);
    if (!(file << text << '\n' << std::flush))
      std::fprintf(stderr, "warning: %s: can't write %s\n", variable, to.c_str());
  };
  if (!path.empty())
    write("WEFT_PROFILE", path, text());
  if (!tracePath.empty() && !events.empty())
    write("WEFT_TRACE", tracePath, traceText());
}

void Profile::add(uint32_t kernel, double bytes, Clock::duration time) {
  ++sums[kernel].calls;
  sums[kernel].bytes += bytes;
  sums[kernel].time += time;
  if (tracePath.empty() || events.size() == kMostEvents)
    return;
  // It has just ended, or waited for its turn to be counted behind others.
  const Clock::duration begin = std::max(reached, Clock::now() - made - time);
  events.push_back({kernel, begin, time});
  reached = begin + time;
}

void Profile::clear() { std::fill(sums.begin(), sums.end(), Sum()); }

std::vector<KernelTime> Profile::times() const {
  std::vector<KernelTime> list;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Kernel &kernel = executable.kernels[i];
    if (const Sum &sum = sums[i]; sum.calls)
      list.push_back({kernel.name, kernel.hash, kindOf(kernel), sum.calls,
                      std::chrono::duration<double>(sum.time).count(), sum.bytes,
                      kernel.flops * static_cast<double>(sum.calls) *
                          (absl::StrContains(kernel.name, "attend") ? pairShare : 1)});
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

std::string Profile::traceText() const {
  auto microseconds = [](Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  };
  OrderedJson list = OrderedJson::array();
  list.push_back({{"name", "process_name"},
                  {"ph", "M"},
                  {"pid", 1},
                  {"args", {{"name", executable.model + " on " + executable.target}}}});
  for (const Event &event : events) {
    const Kernel &kernel = executable.kernels[event.kernel];
    list.push_back({{"name", kernel.name},
                    {"cat", kindOf(kernel)},
                    {"ph", "X"},
                    {"ts", microseconds(event.begin)},
                    {"dur", microseconds(event.time)},
                    {"pid", 1},
                    {"tid", 1},
                    {"args", {{"hash", kernel.hash}}}});
  }
  return dumpJson(OrderedJson{{"displayTimeUnit", "ms"}, {"traceEvents", list}});
}

} // namespace weft::rt
