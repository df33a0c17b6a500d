//===- WindowControl.cpp - Windows of a whole model -----------------------===//
#include "runtime/control/WindowControl.h"

#include "runtime/control/WindowRatios.h"
#include "runtime/control/WindowsFile.h"
#include "runtime/core/Philox.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

const StateEntry *findEntry(const Machine &machine, const std::string &name) {
  for (const StateEntry &entry : machine.executable().states)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

/// The candidate that `draw` in [0, 1) picks.
int64_t drawn(const std::vector<int64_t> &candidates, const std::vector<double> &share, double draw) {
  double sum = 0;
  for (size_t i = 0; i + 1 < candidates.size(); ++i)
    if (sum += share[i]; draw < sum)
      return candidates[i];
  return candidates.back();
}

/// Place of `head` among the rows of a tensor by head: of all heads, or of those that are left.
size_t rowOf(const WindowSite &site, int64_t head, int64_t rows) {
  int64_t row = head;
  if (rows != site.heads)
    for (const auto &[gone, window] : site.left)
      row -= gone < head;
  return static_cast<size_t>(row);
}

} // namespace

WindowControl::WindowControl(WindowPlan plan) : settings(std::move(plan)) {
  for (size_t site = 0; site < settings.sites.size(); ++site)
    for (size_t rule = 0; rule < settings.rules.size(); ++rule) {
      const WindowRule &statement = settings.rules[rule];
      std::vector<int64_t> heads = statement.heads[site];
      std::erase_if(heads, [&](int64_t head) { return settings.sites[site].left.contains(head); });
      if (statement.kind != WindowRule::Kind::Adaptive || heads.empty())
        continue;
      const auto count = static_cast<size_t>(settings.sites[site].heads);
      controlled.push_back({rule, site,
                            WindowController(statement.adaptive, statement.windows, settings.sites[site],
                                             std::move(heads), statement.seed),
                            std::vector<std::optional<Feature>>(count)});
    }
  inForce = windowsAt(0);
}

bool WindowControl::due(const WindowRule &rule, int64_t step) const {
  const WindowOptions &options = rule.adaptive;
  const int64_t since = step - rule.from;
  return rule.kind == WindowRule::Kind::Adaptive && options.control && since >= 0 &&
         since % options.every == 0 && (!options.passthrough || since < *options.passthrough);
}

std::vector<size_t> WindowControl::dueLayers(int64_t step, bool same) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < controlled.size(); ++i)
    if (const WindowRule &rule = settings.rules[controlled[i].rule];
        due(rule, step) && rule.adaptive.applySame == same)
      found.push_back(i);
  return found;
}

bool WindowControl::observes(int64_t number) const {
  return !dueLayers(number - 1, false).empty() || !dueLayers(number - 1, true).empty();
}

/// One for each site that decides for the step itself: what a site sees depends
/// on the windows of those before it.
int64_t WindowControl::rehearsals(int64_t number) const {
  return static_cast<int64_t>(dueLayers(number - 1, true).size());
}

bool WindowControl::live() const {
  return alwaysLive || std::any_of(controlled.begin(), controlled.end(), [&](const Layer &layer) {
           const WindowOptions &options = settings.rules[layer.rule].adaptive;
           return options.live && options.control;
         });
}

std::vector<int64_t> WindowControl::ruleWindows(const WindowRule &rule, size_t ruleNumber, size_t site,
                                                int64_t step) const {
  const std::vector<int64_t> &heads = rule.heads[site];
  const std::string stream = absl::StrCat("windows/", settings.sites[site].path);
  std::vector<int64_t> result;
  switch (rule.kind) {
  case WindowRule::Kind::Fixed:
    return std::vector<int64_t>(heads.size(), rule.windows[0]);
  case WindowRule::Kind::Listed:
    return rule.targets[site];
  case WindowRule::Kind::File:
    if (!rule.permuted)
      return rule.targets[site];
    for (int64_t place : permutation(static_cast<int64_t>(heads.size()), rule.seed, stream + "/deal", 0))
      result.push_back(rule.targets[site][static_cast<size_t>(place)]);
    return result;
  case WindowRule::Kind::Random: {
    const Philox numbers(rule.seed, stream + "/draw");
    const int64_t draw = rule.redraw ? (step - rule.from) / kControlInterval : 0;
    for (int64_t head : heads)
      result.push_back(
          drawn(rule.windows, rule.share,
                numbers.uniform(static_cast<uint64_t>(draw * settings.sites[site].heads + head))));
    return result;
  }
  case WindowRule::Kind::Adaptive:
    break;
  }
  for (const Layer &layer : controlled)
    if (layer.rule == ruleNumber && layer.site == site) {
      const std::vector<int64_t> windows = layer.controller.windows();
      result.assign(heads.size(), 0); // of heads that left: taken from the site
      for (size_t i = 0; i < windows.size(); ++i)
        result[static_cast<size_t>(std::lower_bound(heads.begin(), heads.end(), layer.controller.heads()[i]) -
                                   heads.begin())] = windows[i];
    }
  return result;
}

std::vector<std::vector<int64_t>> WindowControl::windowsAt(int64_t step) const {
  std::vector<std::vector<int64_t>> result;
  for (size_t site = 0; site < settings.sites.size(); ++site) {
    std::vector<int64_t> windows = settings.sites[site].windows;
    for (size_t number = 0; number < settings.rules.size(); ++number) {
      const WindowRule &rule = settings.rules[number];
      if (step < rule.from || rule.heads[site].empty())
        continue;
      const std::vector<int64_t> given = ruleWindows(rule, number, site, step);
      for (size_t i = 0; i < given.size(); ++i)
        windows[static_cast<size_t>(rule.heads[site][i])] = given[i];
    }
    for (const auto &[head, window] : settings.sites[site].left)
      windows[static_cast<size_t>(head)] = window;
    result.push_back(std::move(windows));
  }
  return result;
}

absl::Status WindowControl::writeWindows(Machine &machine) {
  for (size_t i = 0; i < settings.sites.size(); ++i) {
    const WindowSite &site = settings.sites[i];
    if (written.size() > i && written[i] == inForce[i])
      continue;
    const StateEntry *entry = findEntry(machine, "control/windows/" + site.path);
    if (!entry)
      continue; // its windows are constants
    Tensor value(entry->type, entry->shape);
    std::span<int32_t> numbers = value.as<int32_t>();
    const std::vector<int64_t> live = site.live();
    const auto rows = static_cast<int64_t>(numbers.size());
    if (entry->type != ElementType::I32 || (rows != site.heads && rows != static_cast<int64_t>(live.size())))
      return absl::FailedPreconditionError(absl::StrCat("state '", entry->name, "': expected ", live.size(),
                                                        " windows, found room for ", rows));
    for (int64_t head = 0; head < site.heads; ++head)
      if (rows == site.heads || !site.left.contains(head))
        numbers[rowOf(site, head, rows)] = static_cast<int32_t>(inForce[i][static_cast<size_t>(head)]);
    if (absl::Status status = machine.writeState(entry->name, value); !status.ok())
      return status;
  }
  written = inForce;
  return absl::OkStatus();
}

absl::Status WindowControl::recall(const ControlState *saved, int64_t step) {
  if (saved)
    if (absl::Status status = restore(*saved); !status.ok())
      return status;
  for (const WindowRule &rule : settings.rules)
    if (!rule.problem.empty())
      return absl::NotFoundError(rule.problem);
  inForce = windowsAt(step);
  return absl::OkStatus();
}

absl::Status WindowControl::begin(Machine &machine, const ControlState *saved, int64_t step) {
  absl::Status status = recall(saved, step);
  written.clear();
  return status.ok() ? writeWindows(machine) : status;
}

absl::Status WindowControl::before(Machine &machine) {
  for (const WindowSite &site : settings.sites)
    if (const StateEntry *entry = findEntry(machine, "control/statistics/" + site.path))
      if (absl::Status status = machine.writeState(entry->name, Tensor(entry->type, entry->shape));
          !status.ok())
        return status;
  return absl::OkStatus();
}

absl::Status WindowControl::startReading(Machine &machine, const Layer &layer) {
  absl::StatusOr<uint64_t> number =
      machine.startRead("control/statistics/" + settings.sites[layer.site].path, sums[layer.site]);
  if (number.ok())
    coming.push_back(*number);
  return number.status();
}

absl::Status WindowControl::endReading(Machine &machine) {
  for (uint64_t number : std::exchange(coming, {}))
    if (absl::Status status = machine.wait(number); !status.ok())
      return status;
  return absl::OkStatus();
}

/// From statistics that have come.
std::vector<std::optional<Feature>> WindowControl::featuresOf(const Layer &layer) const {
  const WindowSite &site = settings.sites[layer.site];
  const Tensor &read = sums.at(layer.site);
  const int64_t rows = read.elements() / kStatisticCount;
  std::vector<float> numbers;
  for (int64_t i = 0; i < read.elements(); ++i) // the reference machine keeps F64
    numbers.push_back(read.type == ElementType::F64 ? static_cast<float>(read.as<double>()[i])
                                                    : read.as<float>()[i]);
  std::vector<std::optional<Feature>> features;
  for (int64_t head : layer.controller.heads()) {
    const double window =
        static_cast<double>(std::min(inForce[layer.site][static_cast<size_t>(head)], settings.positions));
    features.push_back(featureOf(
        std::span<const float>(numbers).subspan(rowOf(site, head, rows) * kStatisticCount, kStatisticCount),
        site.channels, site.valueChannels, window / static_cast<double>(settings.positions)));
  }
  return features;
}

/// Updates `layer` from the features of its heads; false when some were not usable.
bool WindowControl::decide(Layer &layer, const std::vector<std::optional<Feature>> &features, int64_t step) {
  return layer.controller.update(features, step, step >= settings.warmupSteps);
}

/// Windows decided for the step itself: q, k and v of this pass, diagnostics of
/// the last control step, zero before the first.
absl::Status WindowControl::rehearsed(Machine &machine, int64_t number, int64_t index) {
  Layer &layer = controlled[dueLayers(number - 1, true)[static_cast<size_t>(index)]];
  if (absl::Status status = startReading(machine, layer); !status.ok())
    return status;
  if (absl::Status status = endReading(machine); !status.ok())
    return status;
  std::vector<std::optional<Feature>> features = featuresOf(layer);
  for (size_t i = 0; i < features.size(); ++i)
    if (std::optional<Feature> &feature = features[i]) {
      const std::optional<Feature> &last = layer.observed[static_cast<size_t>(layer.controller.heads()[i])];
      for (int column = kFeatureCount - 3; column < kFeatureCount; ++column)
        (*feature)[column] = last ? (*last)[column] : 0;
    }
  decide(layer, features, number - 1);
  inForce = windowsAt(number - 1);
  return writeWindows(machine);
}

std::vector<size_t> WindowControl::dueLayers(int64_t step) const {
  std::vector<size_t> due = dueLayers(step, false), same = dueLayers(step, true);
  due.insert(due.end(), same.begin(), same.end());
  return due;
}

absl::Status WindowControl::look(Machine &machine, int64_t number) {
  for (size_t place : dueLayers(number - 1))
    if (absl::Status status = startReading(machine, controlled[place]); !status.ok())
      return status;
  lookedAt = number;
  return absl::OkStatus();
}

absl::StatusOr<std::string> WindowControl::after(Machine &machine, int64_t number) {
  const int64_t step = number - 1;
  if (lookedAt != number)
    if (absl::Status status = look(machine, number); !status.ok())
      return status;
  lookedAt = 0;
  if (absl::Status status = endReading(machine); !status.ok())
    return status;
  ratio = acr();
  ratioSum += ratio;
  ++ratioSteps;
  std::string warning;
  for (bool same : {false, true})
    for (size_t place : dueLayers(step, same)) {
      Layer &layer = controlled[place];
      std::vector<std::optional<Feature>> features = featuresOf(layer);
      for (size_t i = 0; i < features.size(); ++i)
        if (features[i])
          layer.observed[static_cast<size_t>(layer.controller.heads()[i])] = features[i];
      if (!same && !decide(layer, features, step) && warning.empty())
        warning = absl::StrCat("warning: step ", number, ": heads of '", settings.sites[layer.site].path,
                               "' gave features or logits that are no numbers; they keep their windows");
    }
  inForce = windowsAt(number);
  if (absl::Status status = writeWindows(machine); !status.ok())
    return status;
  return warning;
}

std::vector<int64_t> WindowControl::flat(bool liveOnly) const {
  std::vector<int64_t> all;
  for (size_t site = 0; site < inForce.size(); ++site)
    for (int64_t head = 0; head < settings.sites[site].heads; ++head)
      if (!liveOnly || !settings.sites[site].left.contains(head))
        all.push_back(inForce[site][static_cast<size_t>(head)]);
  return all;
}

std::vector<int64_t> WindowControl::flatPlaces() const {
  std::vector<int64_t> all;
  for (const WindowSite &site : settings.sites) {
    const std::vector<int64_t> places = site.placesOfHeads();
    all.insert(all.end(), places.begin(), places.end());
  }
  return all;
}

double WindowControl::acr() const { return contextRatio(flat(false), settings.positions, flatPlaces()); }

double WindowControl::pairs() const { return pairRatio(flat(false), settings.positions, flatPlaces()); }

/// Of live heads with their windows, or of all heads with `full` ones.
double WindowControl::executedFlops(bool full) const {
  const std::vector<int32_t> oneDocument(static_cast<size_t>(settings.positions), 0);
  std::map<std::tuple<int64_t, int64_t, int64_t>, double> known; // by window and channels
  double sum = 0;
  for (size_t i = 0; i < settings.sites.size(); ++i) {
    const WindowSite &site = settings.sites[i];
    for (int64_t head = 0; head < site.heads; ++head) {
      if (!full && site.left.contains(head))
        continue;
      const int64_t window =
          full ? settings.positions : std::min(inForce[i][static_cast<size_t>(head)], settings.positions);
      auto [found, isNew] = known.emplace(std::tuple(window, site.channels, site.valueChannels), 0);
      if (isNew) {
        const AttendTiles tiles = tilesOf ? tilesOf(site.channels, site.valueChannels) : AttendTiles();
        const ExecutedFlops flops =
            rt::executedFlops(executedPairs(oneDocument, window, tiles), site.channels, site.valueChannels);
        found->second = flops.forward + flops.backward;
      }
      sum += found->second;
    }
  }
  return sum;
}

double WindowControl::executedShare() const {
  const double whole = executedFlops(true);
  return whole > 0 ? executedFlops(false) / whole : 0;
}

OrderedJson WindowControl::line(int64_t step) {
  const std::vector<int64_t> all = flat(false);
  OrderedJson json = {{"kind", "windows"},
                      {"step", step},
                      {"acr", ratioSteps ? ratio : acr()},
                      {"acr_mean", ratioSteps ? ratioSum / static_cast<double>(ratioSteps) : acr()},
                      {"acr_live", contextRatio(flat(true), settings.positions)},
                      {"pair_ratio", pairs()},
                      {"executed_ratio", executedShare()},
                      {"executed_flops", executedFlops(false)}};
  ratioSum = 0;
  ratioSteps = 0;
  OrderedJson shares = OrderedJson::object(), levels = OrderedJson::object(), windows = OrderedJson::array();
  for (const auto &[window, count] : windowCounts(all, settings.positions))
    shares[std::to_string(window)] = static_cast<double>(count) / static_cast<double>(all.size());
  int64_t updates = 0;
  for (const Layer &layer : controlled) {
    levels[settings.sites[layer.site].path] = layer.controller.state().levels;
    updates = std::max(updates, layer.controller.state().updates);
  }
  for (const std::vector<int64_t> &site : inForce) {
    windows.push_back(OrderedJson::array());
    for (int64_t window : site)
      windows.back().push_back(windowJson(window));
  }
  json["shares"] = std::move(shares);
  json["levels"] = std::move(levels);
  json["updates"] = updates;
  json["windows"] = std::move(windows);
  return json;
}

std::map<std::string, std::string> WindowControl::files() const {
  return {{"windows.json", printWindows({settings.positions, inForce})}};
}

} // namespace weft::rt
