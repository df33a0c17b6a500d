//===- WindowPlans.cpp - Windows of plans as the runtime knows them -------===//

#include "tools/weft/WindowPlans.h"

#include "passes/Codegen/Gpu/Attend.h"
#include "runtime/control/WindowsFile.h"
#include "runtime/core/File.h"
#include "runtime/train/Checkpoint.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace weft;

namespace {

int64_t bounded(int64_t window) { return std::min(window, rt::kNoBound); }

rt::WindowOptions optionsOf(const lang::AdaptiveOptions &given) {
  using Grouping = rt::WindowOptions::Grouping;
  using Topology = rt::WindowOptions::Topology;
  rt::WindowOptions options;
  options.every = given.every;
  options.applySame = given.applySame;
  options.control = given.control;
  options.start = bounded(given.start);
  options.least = given.least;
  switch (given.grouping) {
  case lang::AdaptiveOptions::Grouping::Features:
    options.grouping = Grouping::Features;
    break;
  case lang::AdaptiveOptions::Grouping::None:
    options.grouping = Grouping::None;
    break;
  case lang::AdaptiveOptions::Grouping::Random:
    options.grouping = Grouping::Random;
    break;
  case lang::AdaptiveOptions::Grouping::Index:
    options.grouping = Grouping::Index;
    break;
  }
  options.topology = given.topology == lang::AdaptiveOptions::Topology::Freeze       ? Topology::Freeze
                     : given.topology == lang::AdaptiveOptions::Topology::ReuseHeads ? Topology::ReuseHeads
                                                                                     : Topology::Refresh;
  options.hierarchy = given.hierarchy;
  options.capped = given.capped;
  options.keptUpdate = given.keptUpdate;
  options.threshold = given.threshold;
  options.penalty = given.penalty;
  options.featureKeep = given.featureKeep;
  options.joint = given.joint;
  options.sharedScorers = given.sharedScorers;
  options.baseWidth = given.baseWidth;
  options.jointWidth = given.jointWidth;
  options.relu = given.relu;
  options.clampToParent = given.clampToParent;
  options.resolutionKeep = given.resolutionKeep;
  options.shuffle = given.shuffle;
  options.ramp = given.ramp;
  options.passthrough = given.passthrough;
  options.kvGroups = given.kvGroups;
  options.live = given.live;
  return options;
}

absl::StatusOr<std::vector<rt::WindowSite>> sitesOf(const Program &program) {
  std::vector<rt::WindowSite> sites;
  absl::StatusOr<lang::Outline> outline; // of a run that took its frozen heads over from another
  if (program.plans.empty())
    if (outline = lang::outlineOf(program.model); !outline.ok())
      return outline.status();
  for (const lang::HeadSite &site : program.plans.empty() ? outline->sites : program.plans.back().sites) {
    rt::WindowSite made{site.path, site.heads, site.kvHeads, site.channels, site.valueChannels, {}, {}};
    for (int64_t window : site.windows)
      made.windows.push_back(bounded(window));
    if (auto frozen = program.heads.frozen.find(site.path); frozen != program.heads.frozen.end())
      for (size_t i = 0; i < frozen->second.heads.size(); ++i) {
        made.left[frozen->second.heads[i]] = frozen->second.windows[i];
        if (!frozen->second.firstPlaces.empty() && frozen->second.firstPlaces[i] > 0)
          made.firstPlaces[frozen->second.heads[i]] = frozen->second.firstPlaces[i];
      }
    if (auto pruned = program.heads.pruned.find(site.path); pruned != program.heads.pruned.end())
      for (int64_t head : pruned->second)
        made.left[head] = 0;
    sites.push_back(std::move(made));
  }
  return sites;
}

bool prunes(const Program &program) {
  return std::ranges::any_of(program.plans, [](const lang::Plan &plan) {
    return std::ranges::any_of(plan.freezes, [](const lang::FreezeRule &rule) { return rule.prune; });
  });
}

/// The text of a windows file: from where the command runs, or beside the plan.
absl::StatusOr<std::string> windowsText(const Program &program, const lang::WindowsRule &rule) {
  const std::filesystem::path plan = program.sources.file(rule.place.file).path;
  absl::StatusOr<std::string> text = rt::readFile(rule.file);
  if (!text.ok())
    if (absl::StatusOr<std::string> beside = rt::readFile((plan.parent_path() / rule.file).string());
        beside.ok())
      return beside;
  return text;
}

/// The windows that a file gives to the heads of `rule`.
absl::Status readTargets(const Program &program, const lang::WindowsRule &given,
                         const std::vector<rt::WindowSite> &sites, rt::WindowRule &rule) {
  absl::StatusOr<std::string> text = windowsText(program, given);
  rule.targets.resize(sites.size());
  if (!text.ok()) {
    rule.problem = absl::StrCat("windows file(\"", given.file, "\"): ", text.status().message());
    return absl::OkStatus();
  }
  absl::StatusOr<rt::WindowsFile> file = rt::parseWindows(*text, absl::StrCat("'", given.file, "'"));
  if (!file.ok())
    return file.status();
  if (file->windows.size() != sites.size())
    return absl::InvalidArgumentError(absl::StrCat("'", given.file, "': expected a list for each of the ",
                                                   sites.size(), " attends of the model, found ",
                                                   file->windows.size()));
  for (size_t site = 0; site < sites.size(); ++site) {
    const std::vector<int64_t> &windows = file->windows[site];
    if (static_cast<int64_t>(windows.size()) != sites[site].heads)
      return absl::InvalidArgumentError(absl::StrCat("'", given.file, "' list ", site, ": ", sites[site].path,
                                                     " has ", sites[site].heads, " heads, the list ",
                                                     windows.size(), " windows"));
    for (int64_t head : rule.heads[site]) {
      int64_t window = windows[static_cast<size_t>(head)];
      // A head that left the file's run: nothing reads its window where it left or will leave this one.
      if (window < 1 && !sites[site].left.contains(head) && !prunes(program))
        return absl::InvalidArgumentError(
            absl::StrCat("'", given.file, "' list ", site, " entry ", head, ": a window of at least 1 is ",
                         "expected, found ", window, ", a pruned head: prune it here too, as in ",
                         "`prune file(\"RUN/heads.json\") at step 0`, or write a window there"));
      if (window < 1)
        window = sites[site].windows[static_cast<size_t>(head)];
      rule.targets[site].push_back(window);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<rt::WindowRule> ruleOf(const Program &program, const lang::Plan &plan,
                                      const lang::WindowsRule &given, int64_t totalSteps,
                                      const std::vector<rt::WindowSite> &sites) {
  using Kind = lang::WindowsRule::Kind;
  rt::WindowRule rule;
  rule.kind = given.kind == Kind::Fixed    ? rt::WindowRule::Kind::Fixed
              : given.kind == Kind::Listed ? rt::WindowRule::Kind::Listed
              : given.kind == Kind::Random ? rt::WindowRule::Kind::Random
              : given.kind == Kind::File   ? rt::WindowRule::Kind::File
                                           : rt::WindowRule::Kind::Adaptive;
  for (int64_t window : given.windows)
    rule.windows.push_back(bounded(window));
  rule.heads.resize(sites.size());
  rule.targets.resize(given.kind == Kind::Listed ? sites.size() : 0);
  std::vector<int64_t> seen(sites.size());
  for (int64_t head : given.addressed) {
    const auto site = static_cast<size_t>(
        std::upper_bound(plan.firstHead.begin(), plan.firstHead.end(), head) - plan.firstHead.begin() - 1);
    const auto place = static_cast<size_t>(seen[site]++);
    if (!std::binary_search(given.heads.begin(), given.heads.end(), head))
      continue;
    rule.heads[site].push_back(head - plan.firstHead[site]);
    if (given.kind == Kind::Listed) // one a head that the address names in this site
      rule.targets[site].push_back(rule.windows[place]);
  }
  rule.permuted = given.permuted;
  rule.share = given.share;
  rule.redraw = given.redraw;
  rule.from = given.from.fraction
                  ? static_cast<int64_t>(std::floor(given.from.amount * static_cast<double>(totalSteps)))
                  : static_cast<int64_t>(given.from.amount);
  const uint64_t seed = program.recipe ? program.recipe->seed : 0;
  rule.seed = given.kind == Kind::Adaptive ? given.adaptive.seed.value_or(seed) : given.seed.value_or(seed);
  if (given.kind == Kind::Adaptive)
    rule.adaptive = optionsOf(given.adaptive);
  if (given.kind == Kind::File)
    if (absl::Status status = readTargets(program, given, sites, rule); !status.ok())
      return status;
  return rule;
}

} // namespace

bool weft::choosesWindows(const Program &program) {
  for (const lang::Plan &plan : program.plans)
    for (const lang::WindowsRule &rule : plan.windows)
      if (rule.kind == lang::WindowsRule::Kind::Adaptive && rule.adaptive.control)
        return true;
  return false;
}

/// What the plans make of the windows, and the windows of heads that left.
static absl::StatusOr<std::unique_ptr<rt::WindowControl>> controlOf(const Program &program,
                                                                    int64_t totalSteps) {
  absl::StatusOr<std::vector<rt::WindowSite>> sites = sitesOf(program);
  if (!sites.ok())
    return sites.status();
  rt::WindowPlan made;
  made.sites = *std::move(sites);
  if (program.recipe) {
    made.positions = program.recipe->positions;
    made.warmupSteps = program.recipe->schedule.warmup.steps(totalSteps);
  }
  for (const lang::Plan &plan : program.plans)
    for (const lang::WindowsRule &given : plan.windows) {
      absl::StatusOr<rt::WindowRule> rule = ruleOf(program, plan, given, totalSteps, made.sites);
      if (!rule.ok())
        return rule.status();
      made.rules.push_back(*std::move(rule));
    }
  return std::make_unique<rt::WindowControl>(std::move(made));
}

absl::StatusOr<std::unique_ptr<rt::WindowControl>> weft::makeWindowControl(const Program &program,
                                                                           int64_t totalSteps) {
  const bool any = std::any_of(program.plans.begin(), program.plans.end(),
                               [](const lang::Plan &plan) { return !plan.windows.empty(); });
  return any ? controlOf(program, totalSteps)
             : absl::StatusOr<std::unique_ptr<rt::WindowControl>>(std::unique_ptr<rt::WindowControl>());
}

absl::Status weft::checkInheritedWindows(const Program &program, const std::string &checkpoint) {
  absl::StatusOr<std::optional<rt::ControlState>> saved = rt::readControlState(checkpoint);
  if (!saved.ok())
    return saved.status();
  const bool had = saved->has_value();
  const bool has = std::any_of(program.plans.begin(), program.plans.end(),
                               [](const lang::Plan &plan) { return !plan.windows.empty(); });
  if (!had || has)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", checkpoint, "' was trained with windows, and no plan here gives any: add the run's own plan, or ",
      "one with `windows file(\"RUN/windows.json\")` to keep those that it ended with"));
}

bool weft::evaluatesLive(const Program &program, const std::string &checkpoint) {
  std::error_code ignored;
  const bool decided =
      !checkpoint.empty() && std::filesystem::exists(checkpoint + "/controller.safetensors", ignored);
  for (const lang::Plan &plan : program.plans)
    for (const lang::WindowsRule &rule : plan.windows)
      if (rule.kind == lang::WindowsRule::Kind::Adaptive && rule.adaptive.control &&
          (rule.adaptive.live || !decided))
        return true;
  return false;
}

/// Windows of `checkpoint`, given to `begin` with the state that it saved.
static absl::StatusOr<std::unique_ptr<rt::WindowControl>>
windowsOf(const Program &program, const std::string &checkpoint, bool frozenToo,
          const std::function<absl::Status(rt::WindowControl &, const rt::ControlState *, int64_t)> &begin) {
  int64_t step = 0, total = program.recipe ? program.recipe->steps.value_or(0) : 0;
  std::optional<rt::ControlState> saved;
  if (!checkpoint.empty()) {
    absl::StatusOr<rt::CheckpointInfo> info = rt::readCheckpointInfo(checkpoint);
    absl::StatusOr<std::optional<rt::ControlState>> state = rt::readControlState(checkpoint);
    if (!info.ok() || !state.ok())
      return info.ok() ? state.status() : info.status();
    step = info->step;
    total = info->totalSteps;
    saved = *std::move(state);
  }
  absl::StatusOr<std::unique_ptr<rt::WindowControl>> control =
      frozenToo && !program.freeze.empty() ? controlOf(program, total) : makeWindowControl(program, total);
  if (!control.ok() || !*control)
    return control;
  if (evaluatesLive(program, checkpoint))
    (*control)->setLive();
  if (absl::Status status = begin(**control, saved ? &*saved : nullptr, step); !status.ok())
    return status;
  return control;
}

void weft::countWorkOf(rt::WindowControl &control, const rt::Machine &machine) {
  const GpuTarget target{machine.executable().target};
  if (target.chip.starts_with("sm_"))
    control.setTiles([target](int64_t channels, int64_t valueChannels) {
      return channels == valueChannels ? attendTiles(channels, target) : rt::AttendTiles();
    });
}

absl::StatusOr<std::unique_ptr<rt::WindowControl>>
weft::startWindows(const Program &program, rt::Machine &machine, const std::string &checkpoint) {
  return windowsOf(program, checkpoint, false,
                   [&](rt::WindowControl &control, const rt::ControlState *saved, int64_t step) {
                     countWorkOf(control, machine);
                     return control.begin(machine, saved, step);
                   });
}

absl::StatusOr<std::unique_ptr<rt::WindowControl>> weft::recallWindows(const Program &program,
                                                                       const std::string &checkpoint) {
  return windowsOf(program, checkpoint, true,
                   [](rt::WindowControl &control, const rt::ControlState *saved, int64_t step) {
                     return control.recall(saved, step);
                   });
}
