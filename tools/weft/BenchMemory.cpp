//===- BenchMemory.cpp - Policies for memory beside each other ------------===//

#include "tools/weft/BenchMemory.h"

#include "tools/weft/MemoryPolicies.h"
#include "tools/weft/Output.h"

#include "runtime/cpu/Memory.h"

#include "absl/strings/str_format.h"

#include <algorithm>

using namespace weft;

namespace {

/// One policy's steps; `refusal` says why there are none.
struct PolicyTimes {
  std::string policy;
  std::shared_ptr<const MemoryReport> memory; // null after a refusal
  uint64_t planned = 0;                       // by the machine, scratch included
  uint64_t reported = 0;                      // by the device, above what was in use; 0: it can't say
  double seconds = 0;
  std::string refusal;
};

} // namespace

/// The first row with steps, or null.
static const PolicyTimes *reference(const std::vector<PolicyTimes> &rows) {
  auto found = std::ranges::find_if(rows, [](const PolicyTimes &row) { return row.refusal.empty(); });
  return found == rows.end() ? nullptr : &*found;
}

static double ratio(double one, double other) { return other > 0 ? one / other : 0; }

/// One row a policy: bytes, milliseconds, tokens/s, ratios to the first row that ran.
static std::string policyTable(const std::vector<PolicyTimes> &rows, int64_t tokens) {
  Table table({"memory", "planned", "of it arena", "device", "planned ratio", "made again", "step",
               "tokens/s", "time ratio"});
  std::string refusals;
  const PolicyTimes *first = reference(rows);
  for (const PolicyTimes &row : rows) {
    if (!row.refusal.empty()) {
      table.add({row.policy, "does not fit"});
      refusals += row.policy + ": " + row.refusal + "\n";
      continue;
    }
    double flops = 0;
    for (const SavedValue &value : row.memory->values.values)
      flops += value.again ? value.flops : 0;
    table.add({row.policy, rt::bytesText(row.planned), rt::bytesText(row.memory->planned.arena),
               row.reported > 0 ? rt::bytesText(row.reported) : "-",
               absl::StrFormat("%.2f",
                               ratio(static_cast<double>(row.planned), static_cast<double>(first->planned))),
               compact(flops, "FLOP"), absl::StrFormat("%.1f ms", row.seconds * 1e3),
               grouped(static_cast<int64_t>(static_cast<double>(tokens) / row.seconds)),
               absl::StrFormat("%.3f", ratio(row.seconds, first->seconds))});
  }
  return table.text() + refusals;
}

static rt::OrderedJson policyJson(const std::vector<PolicyTimes> &rows, int64_t tokens) {
  rt::OrderedJson list = rt::OrderedJson::array();
  for (const PolicyTimes &row : rows) {
    if (!row.refusal.empty()) {
      list.push_back({{"policy", row.policy}, {"refusal", row.refusal}});
      continue;
    }
    rt::OrderedJson entry = memoryJson(*row.memory);
    entry.erase("values");
    entry["planned_bytes"] = row.planned;
    entry["reported_bytes"] = row.reported;
    entry["seconds"] = row.seconds;
    entry["tokens_per_s"] = static_cast<double>(tokens) / row.seconds;
    list.push_back(entry);
  }
  return list;
}

/// The same steps under `policy`; one that does not fit is told so.
static absl::StatusOr<PolicyTimes> benchPolicy(const BenchFlags &flags, const std::string &policy,
                                               int64_t &tokens) {
  PolicyTimes row{policy, nullptr, 0, 0, 0, ""};
  Bench bench(flags, policy);
  absl::Status status = prepare(bench);
  if (absl::IsResourceExhausted(status)) {
    row.refusal = std::string(status.message());
    return row;
  }
  if (!status.ok())
    return status;
  tokens = bench.drawn.targets;
  BenchSteps run(*bench.machine, bench.windows.get(), bench.chooses, flags.micros, bench.drawn);
  status = run.warmUp();
  if (status.ok())
    status = run.warmGraphs();
  for (int64_t step = 0; status.ok() && step < flags.steps; ++step)
    status = run.run();
  if (status.ok())
    status = run.finish();
  if (!status.ok())
    return status;
  absl::StatusOr<std::optional<rt::CudaMemory>> device = rt::cudaMemory(*bench.machine);
  if (!device.ok())
    return device.status();
  row.memory = bench.report.memory;
  row.planned = *device ? (**device).planned() : row.memory->planned.sum();
  row.reported = *device ? (**device).grown : 0;
  row.seconds = median(run.seconds);
  return row;
}

absl::Status weft::benchPolicies(const BenchFlags &flags) {
  std::vector<PolicyTimes> rows;
  int64_t tokens = 0;
  for (const char *policy : {"fast", "lean", "tight"}) {
    absl::StatusOr<PolicyTimes> row = benchPolicy(flags, policy, tokens);
    if (!row.ok())
      return row.status();
    rows.push_back(*std::move(row));
  }
  if (flags.json) {
    printJson({{"tokens", tokens}, {"policies", policyJson(rows, tokens)}});
    return absl::OkStatus();
  }
  llvm::outs() << policyTable(rows, tokens);
  for (const PolicyTimes &row : rows)
    llvm::outs() << (row.memory ? memoryText(*row.memory) : "");
  return absl::OkStatus();
}
