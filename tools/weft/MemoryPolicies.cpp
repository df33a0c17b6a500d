//===- MemoryPolicies.cpp - What gradients find saved ---------------------===//

#include "tools/weft/MemoryPolicies.h"

#include "tools/weft/Costs.h"
#include "tools/weft/Output.h"

#include "runtime/cpu/Memory.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;
using namespace weft;

namespace {

/// Room beside the plan: kernels' scratch, and on a GPU code, graphs and libraries.
uint64_t besidePlan(const PlannedMemory &planned, bool gpu) {
  return planned.sum() / 32 + (uint64_t{gpu ? 512u : 32u} << 20);
}

bool hasGradients(const PipelineOptions &options) {
  return std::ranges::any_of(options.programs, [](const std::string &name) {
    return name == "micro" || name == "observe" || name == "calibrate_gradient";
  });
}

/// A policy to try; `share`, of `tight`: products again until they free that many
/// times what the policy before it lacked, 0: all that are worth it.
struct Attempt {
  MemoryPolicy policy;
  int64_t share = 0;
};

/// The named policy, or from the fastest on what `auto` tries.
std::vector<Attempt> attemptsOf(const Program &program) {
  using Memory = rt::Recipe::Memory;
  switch (program.recipe ? program.recipe->memory : Memory::Auto) {
  case Memory::Fast:
    return {{MemoryPolicy::Fast}};
  case Memory::Lean:
    return {{MemoryPolicy::Lean}};
  case Memory::Tight:
    return {{MemoryPolicy::Tight}};
  case Memory::Auto:
    break;
  }
  return {{MemoryPolicy::Fast},
          {MemoryPolicy::Lean},
          {MemoryPolicy::Tight, 1},
          {MemoryPolicy::Tight, 2},
          {MemoryPolicy::Tight}};
}

/// Saved values of one layer, or what is made again of them.
struct Part {
  std::vector<std::pair<std::string, std::pair<int, int64_t>>> named; // name to count and bytes
  int64_t bytes = 0, moved = 0;
  double flops = 0;

  void add(const SavedValue &value) {
    auto found = std::ranges::find_if(named, [&](const auto &entry) { return entry.first == value.name; });
    if (found == named.end())
      found = named.insert(named.end(), {value.name, {0, 0}});
    found->second.first += 1;
    found->second.second += value.bytes;
    bytes += value.bytes, moved += value.moved, flops += value.flops;
  }
  std::string text() const {
    std::vector<std::string> words;
    for (const auto &[name, sum] : named)
      words.push_back(absl::StrCat(sum.first > 1 ? absl::StrCat(sum.first, " x ") : "", name, " ",
                                   rt::bytesText(static_cast<uint64_t>(sum.second))));
    return absl::StrJoin(words, ", ");
  }
};

struct Layer {
  std::string name;
  Part kept, again;

  std::string text() const {
    std::string lines = absl::StrCat("  saved ", rt::bytesText(static_cast<uint64_t>(kept.bytes)));
    if (kept.bytes > 0)
      absl::StrAppend(&lines, ": ", kept.text());
    if (again.bytes > 0)
      absl::StrAppend(&lines, "\n  made again ", rt::bytesText(static_cast<uint64_t>(again.bytes)), " for ",
                      compact(again.flops, "FLOP"), " and ",
                      rt::bytesText(static_cast<uint64_t>(again.moved)), " moved: ", again.text());
    return lines + "\n";
  }
};

std::vector<Layer> layersOf(const RecomputeReport &report) {
  std::vector<Layer> layers;
  for (const SavedValue &value : report.values) {
    std::string name = layerOf(value.scope);
    auto found = std::ranges::find_if(layers, [&](const Layer &layer) { return layer.name == name; });
    if (found == layers.end())
      found = layers.insert(layers.end(), Layer{name, {}, {}});
    (value.again ? found->again : found->kept).add(value);
  }
  return layers;
}

Part total(const RecomputeReport &report, bool again) {
  Part part;
  for (const SavedValue &value : report.values)
    if (value.again == again)
      part.add(value);
  return part;
}

} // namespace

MemoryPolicy weft::policyOf(const Program &program) { return attemptsOf(program).front().policy; }

absl::StatusOr<WithinMemory> weft::lowerWithin(const Program &program, PipelineOptions options,
                                               const TrailOptions &trail, MLIRContext &context,
                                               const std::function<absl::StatusOr<uint64_t>()> &room) {
  if (!hasGradients(options) || options.stage != Stage::Schedule) {
    absl::StatusOr<OwningOpRef<ModuleOp>> module = lower(program, options, trail, context);
    if (!module.ok())
      return module.status();
    return WithinMemory{std::move(*module), nullptr};
  }
  const std::vector<Attempt> attempts = attemptsOf(program);
  const bool gpu = !options.chip.empty();
  uint64_t lacking = 0; // of `lean`
  for (const Attempt &attempt : attempts) {
    const bool first = &attempt == &attempts.front(), last = &attempt == &attempts.back();
    auto report = std::make_shared<MemoryReport>();
    report->policy = options.memory = attempt.policy;
    report->chosen = attempts.size() > 1;
    report->values.enough = attempt.share * static_cast<int64_t>(lacking);
    options.recompute = &report->values;
    if (!first && !trail.folder.empty())
      std::filesystem::remove_all(trail.folder); // of a policy that did not fit
    absl::StatusOr<OwningOpRef<ModuleOp>> module = lower(program, options, trail, context);
    if (!module.ok())
      return module.status();
    report->planned = plannedMemory(**module, gpu);
    const absl::StatusOr<uint64_t> bytes = last ? ~uint64_t{0} : room();
    if (!bytes.ok())
      return bytes.status();
    const uint64_t needed = report->planned.sum() + besidePlan(report->planned, gpu);
    if (needed <= *bytes)
      return WithinMemory{std::move(*module), std::move(report)};
    if (attempt.policy == MemoryPolicy::Lean)
      lacking = needed - *bytes;
  }
  return absl::InternalError("no policy for memory was tried");
}

std::string weft::memoryText(const MemoryReport &report) {
  const Part kept = total(report.values, false), again = total(report.values, true);
  std::string text =
      absl::StrCat("memory ", policyName(report.policy), report.chosen ? " (the first that fits)" : "",
                   report.values.enough > 0 ? ", no more than needed" : "", ": arena ",
                   rt::bytesText(report.planned.arena), "; saved for gradients ",
                   rt::bytesText(static_cast<uint64_t>(kept.bytes)));
  if (again.bytes > 0)
    absl::StrAppend(&text, "; made again ", rt::bytesText(static_cast<uint64_t>(again.bytes)), " for ",
                    compact(again.flops, "FLOP"), " of products and ",
                    rt::bytesText(static_cast<uint64_t>(again.moved)), " moved");
  absl::StrAppend(&text, "\n");
  const std::vector<Layer> layers = layersOf(report.values);
  for (size_t first = 0, last = 0; first < layers.size(); first = last + 1) {
    const std::string lines = layers[first].text();
    for (last = first; last + 1 < layers.size() && layers[last + 1].text() == lines;)
      ++last;
    const std::string name = layers[first].name.empty() ? "outside layers" : layers[first].name;
    absl::StrAppend(&text, "  ", name, last > first ? absl::StrCat(" to ", layers[last].name, ", each") : "",
                    "\n", "  ", absl::StrJoin(absl::StrSplit(lines, '\n', absl::SkipEmpty()), "\n  "), "\n");
  }
  return text;
}

rt::OrderedJson weft::memoryJson(const MemoryReport &report) {
  rt::OrderedJson values = rt::OrderedJson::array();
  for (const SavedValue &value : report.values.values)
    values.push_back({{"name", value.name},
                      {"place", addressOf(value.scope)},
                      {"bytes", value.bytes},
                      {"again", value.again},
                      {"product_flops", value.flops},
                      {"moved_bytes", value.moved}});
  const Part kept = total(report.values, false), again = total(report.values, true);
  return {{"policy", policyName(report.policy)},
          {"chosen", report.chosen},
          {"planned_bytes", report.planned.sum()},
          {"arena_bytes", report.planned.arena},
          {"saved_bytes", kept.bytes},
          {"again_bytes", again.bytes},
          {"again_product_flops", again.flops},
          {"again_moved_bytes", again.moved},
          {"values", values}};
}
