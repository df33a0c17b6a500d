//===- BenchReport.cpp - What weft bench says of a machine ----------------===//
#include "tools/weft/BenchReport.h"

#include "runtime/cpu/Memory.h"
#include "tools/weft/Output.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <map>

using namespace weft;

namespace {

struct Times {
  std::vector<rt::KernelTime> kernels; // of the asked kinds
  std::vector<rt::KernelTime> kinds;   // sums, under the kind's name
  double allSeconds = 0;               // of all kinds
};

Times collect(const rt::Profile &profile, const std::set<std::string> &kinds) {
  Times times;
  std::map<std::string, rt::KernelTime> sums;
  for (rt::KernelTime &time : profile.times()) {
    times.allSeconds += time.seconds;
    if (!kinds.empty() && !kinds.contains(time.kind))
      continue;
    rt::KernelTime &sum = sums[time.kind];
    sum.name = sum.kind = time.kind;
    sum.calls += time.calls;
    sum.seconds += time.seconds, sum.bytes += time.bytes, sum.flops += time.flops;
    times.kernels.push_back(std::move(time));
  }
  for (auto &[kind, sum] : sums)
    times.kinds.push_back(std::move(sum));
  std::sort(times.kinds.begin(), times.kinds.end(),
            [](const rt::KernelTime &a, const rt::KernelTime &b) { return a.seconds > b.seconds; });
  return times;
}

std::string fixed(double value, const char *unit = "") { return llvm::formatv("{0:F1}{1}", value, unit); }

std::vector<std::string> row(const rt::KernelTime &time, const rt::Ceilings &ceilings, double allSeconds,
                             int64_t runs) {
  const double share = time.share(ceilings);
  return {time.name,
          time.kind,
          fixed(static_cast<double>(time.calls) / static_cast<double>(runs)),
          fixed(time.seconds / static_cast<double>(time.calls) * 1e6),
          llvm::formatv("{0:F3}", time.seconds / static_cast<double>(runs) * 1e3),
          fixed(100 * time.seconds / std::max(allSeconds, 1e-12), "%"),
          fixed(time.bytes / time.seconds / 1e9),
          time.flops > 0 ? fixed(time.flops / time.seconds / 1e12) : "-",
          share > 0 ? fixed(100 * share, "%") : "-"};
}

rt::OrderedJson toJson(const rt::KernelTime &time, const rt::Ceilings &ceilings, int64_t runs) {
  const auto count = static_cast<double>(runs);
  rt::OrderedJson json{{"name", time.name},
                       {"kind", time.kind},
                       {"calls", static_cast<double>(time.calls) / count},
                       {"seconds", time.seconds / count},
                       {"bytes", time.bytes / count},
                       {"flops", time.flops / count},
                       {"bytes_per_s", time.bytes / time.seconds},
                       {"flops_per_s", time.flops / time.seconds}};
  if (double share = time.share(ceilings); share > 0)
    json["share_of_ceiling"] = share;
  return json;
}

} // namespace

std::string weft::kernelTable(const rt::Profile &profile, const std::set<std::string> &kinds, int64_t runs) {
  const Times times = collect(profile, kinds);
  Table table({"kernel", "kind", "calls", "us a call", "ms", "of time", "GB/s", "TFLOP/s", "of ceiling"},
              {0, 1});
  for (const rt::KernelTime &time : times.kernels)
    table.add(row(time, profile.ceilings, times.allSeconds, runs));
  table.add({"-"});
  for (const rt::KernelTime &time : times.kinds)
    table.add(row(time, profile.ceilings, times.allSeconds, runs));
  std::string text = table.text();
  if (profile.ceilings.bytesPerSecond > 0)
    text += llvm::formatv("ceilings measured before: a copy {0:F0} GB/s, a product {1:F0} TFLOP/s\n",
                          profile.ceilings.bytesPerSecond / 1e9, profile.ceilings.flopsPerSecond / 1e12);
  return text;
}

rt::OrderedJson weft::kernelJson(const rt::Profile &profile, const std::set<std::string> &kinds,
                                 int64_t runs) {
  const Times times = collect(profile, kinds);
  rt::OrderedJson json{{"copy_bytes_per_s", profile.ceilings.bytesPerSecond},
                       {"product_flops_per_s", profile.ceilings.flopsPerSecond},
                       {"kernels", rt::OrderedJson::array()},
                       {"kinds", rt::OrderedJson::array()}};
  for (const rt::KernelTime &time : times.kernels)
    json["kernels"].push_back(toJson(time, profile.ceilings, runs));
  for (const rt::KernelTime &time : times.kinds)
    json["kinds"].push_back(toJson(time, profile.ceilings, runs));
  return json;
}

std::string weft::memoryText(const rt::CudaMemory &memory) {
  auto text = [](uint64_t bytes) { return rt::bytesText(bytes); };
  return "device memory: planned " + text(memory.planned()) + " (state " + text(memory.state) + ", arena " +
         text(memory.arena) + ", ports " + text(memory.ports) + ", scratch " + text(memory.scratch) +
         ", workspace " + text(memory.workspace) + "); the device reports " + text(memory.grown) +
         " more in use than before, of " + text(memory.total) + "; " + text(memory.before) +
         " were in use then (contexts)";
}

rt::OrderedJson weft::memoryJson(const rt::CudaMemory &memory) {
  return {{"planned_bytes", memory.planned()}, {"state_bytes", memory.state},
          {"arena_bytes", memory.arena},       {"ports_bytes", memory.ports},
          {"scratch_bytes", memory.scratch},   {"workspace_bytes", memory.workspace},
          {"reported_bytes", memory.grown},    {"before_bytes", memory.before},
          {"total_bytes", memory.total},       {"pinned_bytes", memory.pinned}};
}
