//===- WindowControlState.cpp - Controllers in a checkpoint ---------------===//
//
// Tensors of statement R and site S, all by head of the model as written:
//
//   plan.windows.R.S.smoothed   [heads, 9] smoothed features; NaN: none yet
//   plan.windows.R.S.observed   [heads, 9] features of the last control step
//   plan.windows.R.S.index      [heads]    index after the resolution average
//   plan.windows.R.S.kept       [levels, heads] item of each head, -1: none
//   plan.windows.R.S.base       numbers of the scorer of one item
//   plan.windows.R.S.joint      numbers of the scorer of two siblings
//   plan.windows.R.candidates   the list
//   plan.windows.R.S.given      windows that `windows file(...)` gave to its heads
//
// Counters and options stand in the JSON. The mean for the next log line does not:
// where lines fall must not change a checkpoint.
//
//===----------------------------------------------------------------------===//
#include "runtime/control/WindowControl.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Tensor integers(std::vector<int64_t> shape, const std::vector<int64_t> &values) {
  Tensor tensor(ElementType::I64, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return tensor;
}

Tensor numbers(const std::vector<double> &values) {
  Tensor tensor(ElementType::F64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<double>().begin());
  return tensor;
}

Tensor features(const std::vector<std::optional<Feature>> &values) {
  Tensor tensor(ElementType::F64, {static_cast<int64_t>(values.size()), kFeatureCount});
  std::span<double> all = tensor.as<double>();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<Feature> &feature = values[i / kFeatureCount];
    all[i] = feature ? (*feature)[i % kFeatureCount] : kNone;
  }
  return tensor;
}

std::vector<std::optional<Feature>> featuresIn(const Tensor &tensor) {
  std::vector<std::optional<Feature>> values(static_cast<size_t>(tensor.shape[0]));
  for (size_t i = 0; i < values.size(); ++i) {
    Feature feature;
    const double *from = tensor.as<double>().data() + i * kFeatureCount;
    std::copy(from, from + kFeatureCount, feature.begin());
    if (!std::isnan(feature[0]))
      values[i] = feature;
  }
  return values;
}

Json optionsJson(const WindowRule &rule) {
  const WindowOptions &options = rule.adaptive;
  Json json = {{"every", options.every},
               {"apply_same", options.applySame},
               {"control", options.control},
               {"start", options.start},
               {"least", options.least},
               {"grouping", static_cast<int>(options.grouping)},
               {"hierarchy", options.hierarchy},
               {"capped", options.capped},
               {"kept_update", options.keptUpdate},
               {"topology", static_cast<int>(options.topology)},
               {"threshold", options.threshold},
               {"penalty", options.penalty},
               {"features", options.featureKeep},
               {"joint", options.joint},
               {"shared", options.sharedScorers},
               {"widths", {options.baseWidth, options.jointWidth}},
               {"relu", options.relu},
               {"clamp", options.clampToParent},
               {"resolution", options.resolutionKeep},
               {"shuffle", options.shuffle},
               {"kv_groups", options.kvGroups},
               {"live", options.live},
               {"from", rule.from},
               {"seed", rule.seed}};
  if (options.ramp)
    json["ramp"] = {options.ramp->first, options.ramp->second};
  if (options.passthrough)
    json["passthrough"] = *options.passthrough;
  return json;
}

/// Reads tensors of a saved state by name; the first error stays.
class Reader {
public:
  explicit Reader(const ControlState &saved) : saved(saved) {}

  const Tensor *find(const std::string &name) const {
    for (const auto &[known, tensor] : saved.tensors)
      if (known == name)
        return &tensor;
    return nullptr;
  }
  /// The tensor of this type and shape, or null.
  const Tensor *get(const std::string &name, ElementType type, const std::vector<int64_t> &shape) {
    const Tensor *tensor = find(name);
    if (tensor && tensor->type == type && tensor->shape == shape)
      return tensor;
    auto text = [](const std::vector<int64_t> &sizes) {
      std::string list;
      for (int64_t size : sizes)
        absl::StrAppend(&list, list.empty() ? "" : ", ", size);
      return absl::StrCat("[", list, "]");
    };
    if (status.ok())
      status = absl::FailedPreconditionError(
          absl::StrCat("the checkpoint's windows are another plan's or another model's: '", name,
                       "': expected ", text(shape), ", found ", tensor ? text(tensor->shape) : "nothing"));
    return nullptr;
  }

  /// `rows` lists of `columns` numbers, each from `least` to `most`; empty on errors.
  std::vector<std::vector<int64_t>> lists(const std::string &name, int64_t rows, int64_t columns,
                                          int64_t least, int64_t most) {
    std::vector<std::vector<int64_t>> result;
    std::vector<int64_t> shape = {rows, columns};
    if (const Tensor *flat = find(name); flat && flat->shape.size() == 1)
      shape = {columns};
    const Tensor *tensor = get(name, ElementType::I64, shape);
    for (int64_t row = 0; tensor && row < rows; ++row) {
      const int64_t *from = tensor->as<int64_t>().data() + row * columns;
      result.emplace_back(from, from + columns);
      for (int64_t value : result.back())
        if ((value < least || value > most) && status.ok())
          status = absl::DataLossError(absl::StrCat("the checkpoint's '", name, "': expected numbers from ",
                                                    least, " to ", most, ", found ", value));
    }
    return result;
  }
  /// A number of the JSON, or of its object `key` the number of `member`.
  double number(const std::string &key, const std::string &member = "") {
    absl::StatusOr<const Json *> object = &saved.json;
    if (!member.empty())
      object = memberOf(saved.json, key, "the checkpoint's windows");
    absl::StatusOr<double> found =
        object.ok() ? numberOf(**object, member.empty() ? key : member, "the checkpoint's windows")
                    : object.status();
    if (!found.ok() && status.ok())
      status = found.status();
    return found.ok() ? *found : 0;
  }

  absl::Status status;

private:
  const ControlState &saved;
};

} // namespace

std::string WindowControl::prefixOf(const Layer &layer) const {
  return absl::StrCat("plan.windows.", layer.rule, ".", settings.sites[layer.site].path, ".");
}

std::string WindowControl::givenName(size_t rule, size_t site) const {
  return absl::StrCat("plan.windows.", rule, ".", settings.sites[site].path, ".given");
}

/// Windows of files as they were read when the run began.
absl::Status WindowControl::restoreGiven(const ControlState &saved) {
  Reader reader(saved);
  for (size_t number = 0; number < settings.rules.size(); ++number) {
    WindowRule &rule = settings.rules[number];
    if (rule.kind != WindowRule::Kind::File)
      continue;
    for (size_t site = 0; site < settings.sites.size(); ++site) {
      const auto count = static_cast<int64_t>(rule.heads[site].size());
      if (count == 0 || !reader.find(givenName(number, site)))
        continue;
      const auto given = reader.lists(givenName(number, site), 1, count, 0, kNoBound);
      if (!reader.status.ok())
        return reader.status;
      rule.targets[site] = given[0];
      rule.problem.clear();
    }
  }
  return absl::OkStatus();
}

ControlState WindowControl::state() const {
  ControlState state;
  state.json = {{"positions", settings.positions},
                {"acr", ratio},
                {"options", Json::object()},
                {"updates", Json::object()},
                {"levels", Json::object()}};
  for (size_t rule = 0; rule < settings.rules.size(); ++rule)
    for (size_t site = 0; settings.rules[rule].kind == WindowRule::Kind::File && site < settings.sites.size();
         ++site)
      if (const std::vector<int64_t> &given = settings.rules[rule].targets[site]; !given.empty())
        state.tensors.emplace_back(givenName(rule, site),
                                   integers({static_cast<int64_t>(given.size())}, given));
  for (const Layer &layer : controlled) {
    const std::string prefix = prefixOf(layer), rule = std::to_string(layer.rule);
    const ControllerState &memory = layer.controller.state();
    const auto heads = static_cast<int64_t>(memory.index.size());
    if (!state.json["options"].contains(rule)) {
      const std::vector<int64_t> &candidates = settings.rules[layer.rule].windows;
      state.json["options"][rule] = optionsJson(settings.rules[layer.rule]);
      state.tensors.emplace_back(absl::StrCat("plan.windows.", rule, ".candidates"),
                                 integers({static_cast<int64_t>(candidates.size())}, candidates));
    }
    state.json["updates"][prefix] = memory.updates;
    state.json["levels"][prefix] = memory.levels;
    state.tensors.emplace_back(prefix + "smoothed", features(memory.smoothed));
    state.tensors.emplace_back(prefix + "observed", features(layer.observed));
    state.tensors.emplace_back(prefix + "index", integers({heads}, memory.index));
    state.tensors.emplace_back(prefix + "base", numbers(layer.controller.baseScorer().numbers()));
    state.tensors.emplace_back(prefix + "joint", numbers(layer.controller.jointScorer().numbers()));
    if (memory.kept.empty())
      continue;
    std::vector<int64_t> kept;
    for (const std::vector<int64_t> &level : memory.kept)
      kept.insert(kept.end(), level.begin(), level.end());
    state.tensors.emplace_back(prefix + "kept",
                               integers({static_cast<int64_t>(memory.kept.size()), heads}, kept));
  }
  return state;
}

absl::Status WindowControl::restore(const ControlState &saved) {
  if (absl::Status status = restoreGiven(saved); !status.ok())
    return status;
  Reader reader(saved);
  ratio = reader.number("acr");
  for (Layer &layer : controlled) {
    const std::string prefix = prefixOf(layer);
    const int64_t heads = settings.sites[layer.site].heads;
    const auto candidates = static_cast<int64_t>(settings.rules[layer.rule].windows.size());
    const Tensor *smoothed = reader.get(prefix + "smoothed", ElementType::F64, {heads, kFeatureCount});
    const Tensor *observed = reader.get(prefix + "observed", ElementType::F64, {heads, kFeatureCount});
    auto scorer = [&](const char *name, Scorer &into) {
      const auto count = static_cast<int64_t>(into.numbers().size());
      if (const Tensor *weights = reader.get(prefix + name, ElementType::F64, {count}))
        into.setNumbers({weights->as<double>().begin(), weights->as<double>().end()});
    };
    scorer("base", layer.controller.baseScorer());
    scorer("joint", layer.controller.jointScorer());
    ControllerState memory;
    const std::vector<std::vector<int64_t>> index =
        reader.lists(prefix + "index", 1, heads, 0, candidates - 1);
    if (const Tensor *kept = reader.find(prefix + "kept"))
      memory.kept =
          reader.lists(prefix + "kept", kept->shape.empty() ? 0 : kept->shape[0], heads, -1, heads - 1);
    memory.updates = static_cast<int64_t>(reader.number("updates", prefix));
    memory.levels = static_cast<int64_t>(reader.number("levels", prefix));
    if (!reader.status.ok())
      return reader.status;
    memory.index = index[0];
    memory.smoothed = featuresIn(*smoothed);
    layer.observed = featuresIn(*observed);
    layer.controller.setState(std::move(memory));
  }
  return absl::OkStatus();
}

} // namespace weft::rt
