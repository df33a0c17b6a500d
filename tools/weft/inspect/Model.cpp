//===- Model.cpp - The page of a model --------------------------------------===//

#include "tools/weft/inspect/Parts.h"
#include "tools/weft/inspect/PassTrail.h"

#include "tools/weft/Costs.h"
#include "tools/weft/WindowPlans.h"

#include "frontend/PlanSites.h"
#include "runtime/control/WindowRatios.h"
#include "runtime/cuda/Products.h"
#include "runtime/measure/Watch.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <map>

using namespace weft;
using namespace weft::inspect;

namespace {

int64_t windowKey(int64_t window) { return window >= rt::kNoBound ? -1 : window; }

//===----------------------------------------------------------------------===//
// What plans say, beside the lines of the text
//===----------------------------------------------------------------------===//

/// Remarks in the margin of the source.
class Marks {
public:
  explicit Marks(const rt::OrderedJson &heads) : heads(heads) {}

  rt::OrderedJson list = rt::OrderedJson::array();

  void addPlan(const lang::Plan &plan) {
    for (const lang::WindowsRule &rule : plan.windows)
      add(rule.place, "windows",
          absl::StrCat(plan.name, ": windows of ", counted(rule.heads.size(), "head")));
    for (const lang::FreezeRule &rule : plan.freezes)
      add(rule.place, rule.prune ? "pruned" : "frozen",
          absl::StrCat(plan.name, rule.prune ? ": prunes" : ": freezes", " among ",
                       counted(rule.heads.size(), "head")));
    for (const lang::DropRule &rule : plan.drops)
      add(rule.place, "dropped",
          absl::StrCat(plan.name, ": drops ", rule.branch, " of ", counted(rule.indices.size(), "layer"),
                       ", depth ", rule.oldDepth, " to ", rule.newDepth,
                       absl::StrFormat(", %+.3f%% beside what was matched", 100 * rule.mismatch)));
  }

  /// Marks of the attends and branches in `block`, which stands at `path` (`block[..].`).
  void addModel(const lang::Block &block, const std::string &path) {
    for (const lang::Node &node : block.nodes) {
      std::string inner = path;
      if (node.kind == lang::NodeKind::Layer)
        inner = absl::StrCat(path, path.empty() ? "" : ".", node.name, "[..]");
      if (node.kind == lang::NodeKind::Branch) {
        inner = absl::StrCat(path, path.empty() ? "" : ".", node.name);
        addDropped(node.place, inner);
      }
      if (node.kind == lang::NodeKind::Attend)
        addAttend(node.place, path);
      for (const lang::Block &body : node.blocks)
        addModel(body, inner);
    }
  }

private:
  static std::string counted(size_t number, const char *what) {
    return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
  }

  void add(const lang::Place &place, const char *kind, const std::string &text) {
    rt::OrderedJson mark = {{"file", place.file}, {"line", place.line}, {"kind", kind}, {"text", text}};
    if (std::find(list.begin(), list.end(), mark) == list.end())
      list.push_back(std::move(mark));
  }

  void addDropped(const lang::Place &place, const std::string &kind) {
    std::vector<std::string> dropped;
    for (const rt::OrderedJson &address : heads["dropped"])
      if (rt::kindOf(pathOf(address.get<std::string>())) == kind)
        dropped.push_back(address.get<std::string>());
    if (!dropped.empty())
      add(place, "dropped", absl::StrCat("dropped: ", absl::StrJoin(dropped, ", ")));
  }

  void addAttend(const lang::Place &place, const std::string &kind) {
    std::map<int64_t, int64_t> windows; // full last
    size_t frozen = 0, pruned = 0, total = 0;
    for (const rt::OrderedJson &site : heads["sites"]) {
      if (rt::kindOf(site["path"].get<std::string>()) != kind)
        continue;
      frozen += site["frozen"].size();
      pruned += site["pruned"].size();
      for (const rt::OrderedJson &window : site["windows"]) {
        const auto key = window.get<int64_t>();
        ++total;
        if (key != 0)
          ++windows[key < 0 ? rt::kNoBound : key];
      }
    }
    std::vector<std::string> parts;
    for (const auto &[window, count] : windows)
      parts.push_back(absl::StrCat(count, " x ", window == rt::kNoBound ? "full" : absl::StrCat(window)));
    if (frozen > 0)
      parts.push_back(absl::StrCat(frozen, " frozen"));
    if (pruned > 0)
      parts.push_back(absl::StrCat(pruned, " pruned"));
    if (total > 0)
      add(place, "windows", absl::StrCat(counted(total, "head"), ": ", absl::StrJoin(parts, ", ")));
  }

  /// block.3.ffn of block[3].ffn
  static std::string pathOf(std::string address) {
    std::erase(address, ']');
    std::ranges::replace(address, '[', '.');
    return address;
  }

  const rt::OrderedJson &heads;
};

rt::OrderedJson sourcesOf(const Program &program, const Trail &trail, const rt::OrderedJson &heads) {
  rt::OrderedJson files = rt::OrderedJson::array();
  for (int32_t i = 0; i < program.sources.count(); ++i)
    files.push_back({{"path", program.sources.file(i).path}, {"text", program.sources.file(i).text}});
  Marks marks(heads);
  marks.addModel(program.written.body, "");
  for (const lang::Plan &plan : program.plans)
    marks.addPlan(plan);
  return {{"files", files}, {"marks", marks.list}, {"costs", trail.lines}};
}

//===----------------------------------------------------------------------===//
// Summary
//===----------------------------------------------------------------------===//

int64_t elementsOf(const lang::ParameterInfo &info) {
  int64_t count = 1;
  for (const int64_t size : info.shape)
    count *= size;
  return count;
}

rt::OrderedJson parametersJson(const lang::Model &model) {
  rt::OrderedJson list = rt::OrderedJson::array();
  for (const lang::ParameterInfo &info : lang::parametersOf(model))
    list.push_back({info.path, absl::StrJoin(info.axes, ", "), info.shape, elementsOf(info), info.place.file,
                    info.place.line});
  return list;
}

/// Parameters that the compiled model holds, before and after the plans.
int64_t parameterCount(const lang::Model &model) {
  int64_t count = 0;
  for (const lang::ParameterInfo &info : lang::parametersOf(model))
    count += elementsOf(info);
  return count;
}

rt::OrderedJson summaryOf(const Program &program, const ModelOptions &options,
                          const rt::OrderedJson &memory) {
  int64_t arena = 0, ports = 0;
  for (const rt::OrderedJson &entry : memory["programs"]) {
    arena = std::max(arena, entry["arena"].get<int64_t>());
    ports = std::max(ports, entry["ports"].get<int64_t>());
  }
  const PipelineOptions &pipeline = options.pipeline;
  rt::OrderedJson plans = rt::OrderedJson::array();
  for (const lang::Plan &plan : program.plans)
    plans.push_back(plan.name);
  return {{"model", program.model.name},
          {"file", program.sources.file(0).path},
          {"plans", plans},
          {"target", pipeline.chip.empty() ? "cpu" : pipeline.chip},
          {"batch", pipeline.batch},
          {"positions", pipeline.positions},
          {"micro_batches", program.recipe ? program.recipe->microBatches : 1},
          {"parameters", parameterCount(program.model)},
          {"parameters_written", parameterCount(program.written)},
          {"state", memory["state"]["bytes"]},
          {"arena", arena},
          {"policy", policyName(pipeline.memory)},
          {"ports", ports},
          {"workspace", pipeline.chip.empty() ? uint64_t{0} : rt::cuda::Products::kWorkspaceBytes}};
}

rt::OrderedJson passesJson(const Trail &trail) {
  rt::OrderedJson list = rt::OrderedJson::array();
  for (const Trail::Entry &entry : trail.entries)
    list.push_back({{"name", entry.name},
                    {"ms", entry.milliseconds},
                    {"changed", entry.changed},
                    {"text", entry.change.text},
                    {"lines", entry.change.lines},
                    {"added", entry.change.added},
                    {"dropped", entry.change.dropped},
                    {"traffic", entry.traffic}});
  return list;
}

/// Whether a statement still chooses windows of heads of site `index`.
bool choosesLater(const rt::WindowControl &control, size_t index) {
  const rt::WindowSite &site = control.plan().sites[index];
  return std::ranges::any_of(control.plan().rules, [&](const rt::WindowRule &rule) {
    const bool live =
        std::ranges::any_of(rule.heads[index], [&](int64_t head) { return !site.left.contains(head); });
    return live && (rule.kind == rt::WindowRule::Kind::Adaptive || rule.redraw || rule.from > 0);
  });
}

} // namespace

absl::StatusOr<rt::OrderedJson> weft::inspect::headMap(const Program &program,
                                                       const rt::WindowControl *control) {
  absl::StatusOr<lang::Outline> outline = lang::outlineOf(program.model);
  if (!outline.ok())
    return outline.status();
  const int64_t positions = program.recipe ? program.recipe->positions : 0;
  rt::OrderedJson sites = rt::OrderedJson::array(), dropped = rt::OrderedJson::array();
  std::vector<int64_t> all, places;
  for (size_t i = 0; i < outline->sites.size(); ++i) {
    const lang::HeadSite &site = outline->sites[i];
    std::vector<int64_t> windows = control ? control->windows()[i] : site.windows;
    std::vector<int64_t> frozen, pruned;
    const size_t first = places.size();
    places.resize(first + windows.size());
    if (auto found = program.heads.frozen.find(site.path); found != program.heads.frozen.end())
      for (size_t j = 0; j < found->second.heads.size(); ++j) {
        frozen.push_back(found->second.heads[j]);
        windows[static_cast<size_t>(frozen.back())] = found->second.windows[j];
        if (!found->second.firstPlaces.empty())
          places[first + static_cast<size_t>(frozen.back())] = found->second.firstPlaces[j];
      }
    if (auto found = program.heads.pruned.find(site.path); found != program.heads.pruned.end())
      pruned = found->second;
    for (const int64_t head : pruned)
      windows[static_cast<size_t>(head)] = 0;
    rt::OrderedJson keys = rt::OrderedJson::array();
    for (const int64_t window : windows) {
      keys.push_back(windowKey(window));
      all.push_back(window);
    }
    sites.push_back({{"path", site.path},
                     {"address", addressOf(site.path)},
                     {"kv_heads", site.kvHeads},
                     {"channels", site.channels},
                     {"windows", keys},
                     {"frozen", frozen},
                     {"pruned", pruned},
                     {"later", control != nullptr && choosesLater(*control, i)}});
  }
  for (const std::string &path : program.model.dropped)
    dropped.push_back(addressOf(path));
  rt::OrderedJson map = {{"positions", positions}, {"sites", sites}, {"dropped", dropped}};
  if (positions > 0 && !all.empty()) {
    map["acr"] = rt::contextRatio(all, positions, places);
    map["pair_ratio"] = rt::pairRatio(all, positions, places);
  }
  return map;
}

absl::StatusOr<rt::OrderedJson> weft::inspect::modelDocument(const Program &program,
                                                             const ModelOptions &options, const Say &say) {
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> control = recallWindows(program, options.checkpoint);
  if (!control.ok())
    return control.status();
  absl::StatusOr<rt::OrderedJson> heads = headMap(program, control->get());
  if (!heads.ok())
    return heads.status();
  std::shared_ptr<mlir::MLIRContext> context = makeContext();
  Trail trail(program.sources);
  rt::OrderedJson remarks = rt::OrderedJson::array();
  context->getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Remark)
      return mlir::failure(); // the next handler prints it
    rt::OrderedJson remark = {trail.placeOf(diagnostic.getLocation()), diagnostic.str()};
    if (std::find(remarks.begin(), remarks.end(), remark) == remarks.end())
      remarks.push_back(std::move(remark));
    return mlir::success();
  });
  const std::string target = options.pipeline.chip.empty() ? "cpu" : options.pipeline.chip;
  say(absl::StrCat("compiling ", program.model.name, " for ", target));
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> schedule =
      lower(program, options.pipeline, {}, *context, [&](mlir::PassManager &manager) {
        manager.addInstrumentation(std::make_unique<TrailInstrumentation>(trail));
      });
  if (!schedule.ok())
    return schedule.status();
  const rt::OrderedJson memory = memoryPlan(**schedule);
  const rt::OrderedJson kernels = kernelList(**schedule, options.pipeline.chip, options.assemble, say);
  return rt::OrderedJson{{"kind", "model"},
                         {"version", 1},
                         {"summary", summaryOf(program, options, memory)},
                         {"parameters", parametersJson(program.model)},
                         {"sources", sourcesOf(program, trail, *heads)},
                         {"heads", *heads},
                         {"flops", trail.flops},
                         {"passes", passesJson(trail)},
                         {"ir", trail.texts.toJson()},
                         {"ledger", trail.ledger},
                         {"remarks", remarks},
                         {"kernels", kernels},
                         {"memory", memory}};
}
