//===- BenchMemory.cpp - Policies for memory beside each other ------------===//

#include "tools/weft/BenchMemory.h"

#include "tools/weft/Output.h"

#include "runtime/cpu/Memory.h"

#include "absl/strings/str_format.h"

#include <algorithm>

using namespace weft;

/// The first row with steps, or null.
static const PolicyTimes *reference(const std::vector<PolicyTimes> &rows) {
  auto found = std::ranges::find_if(rows, [](const PolicyTimes &row) { return row.refusal.empty(); });
  return found == rows.end() ? nullptr : &*found;
}

static double ratio(double one, double other) { return other > 0 ? one / other : 0; }

std::string weft::policyTable(const std::vector<PolicyTimes> &rows, int64_t tokens) {
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

rt::OrderedJson weft::policyJson(const std::vector<PolicyTimes> &rows, int64_t tokens) {
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
