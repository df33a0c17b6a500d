//===- Evaluate.cpp - Loss on held-out text ---------------------*- C++ -*-===//
#include "runtime/train/Evaluate.h"

#include "runtime/train/BoundProgram.h"
#include "runtime/train/Feed.h"
#include "runtime/train/Reducer.h"
#include "runtime/train/State.h"

#include <chrono>
#include <cmath>

namespace weft::rt {

namespace {

/// `batch` with only the targets whose label is `region`.
Batch masked(const Batch &batch, const std::vector<int64_t> &places, const RegionLabels &labels,
             size_t region) {
  Batch part = batch;
  std::span<int32_t> targets = part.targets.as<int32_t>();
  part.counted = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (places[i] >= 0 && labels.at(places[i]) == region)
      ++part.counted;
    else
      targets[i] = -1;
  }
  return part;
}

/// Adds a batch to the regions, one run for each that it has targets of.
absl::Status addRegions(BoundProgram &program, const EvalData &data, int64_t index,
                        const RegionLabels &labels, const Batch &batch, std::vector<RegionLoss> &regions) {
  absl::StatusOr<std::vector<int64_t>> places = data.targetPlaces(index);
  if (!places.ok())
    return places.status();
  for (size_t region = 0; region < regions.size(); ++region) {
    Batch part = masked(batch, *places, labels, region);
    const int64_t counted = part.counted;
    if (counted == 0)
      continue;
    absl::StatusOr<double> sum = runOnBatch(program, std::move(part));
    if (!sum.ok())
      return sum.status();
    regions[region].targets += counted;
    regions[region].lossSum += *sum;
  }
  return absl::OkStatus();
}

/// A controller that runs on evaluation batches.
class LiveControl {
public:
  static absl::StatusOr<LiveControl> make(Machine &machine, const Control *control) {
    LiveControl live;
    if (!control || !control->live())
      return live;
    absl::StatusOr<BoundProgram> observe = BoundProgram::bind(machine, "observe");
    if (!observe.ok())
      return observe.status();
    live.observe = *std::move(observe);
    live.control = control->copy();
    live.control->line(0); // means start anew
    for (const StateEntry &entry : machine.executable().states)
      if (entry.role == StateEntry::Role::Control) {
        absl::StatusOr<Tensor> value = machine.readState(entry.name);
        if (!value.ok())
          return value.status();
        live.before.emplace_back(entry.name, *std::move(value));
      }
    return live;
  }

  /// Before batch `number` (from 1) is measured: windows that are decided from it.
  absl::Status ahead(Machine &machine, int64_t number, const Batch &batch) {
    const int64_t count = control && control->observes(number) ? control->rehearsals(number) : 0;
    for (int64_t i = 0; i < count; ++i) {
      if (absl::Status status = observeBatch(machine, batch); !status.ok())
        return status;
      if (absl::Status status = control->rehearsed(machine, number, i); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  /// After it was measured.
  absl::Status after(Machine &machine, int64_t number, Batch batch) {
    if (!control)
      return absl::OkStatus();
    if (control->observes(number))
      if (absl::Status status = observeBatch(machine, std::move(batch)); !status.ok())
        return status;
    return control->after(machine, number).status();
  }

  /// Of the batches so far; nothing when no controller runs.
  std::optional<double> meanAcr() {
    if (!control)
      return std::nullopt;
    return control->line(0).value("acr_mean", 1.0);
  }

  absl::Status restore(Machine &machine) const {
    for (const auto &[name, value] : before)
      if (absl::Status status = machine.writeState(name, value); !status.ok())
        return status;
    return absl::OkStatus();
  }

private:
  /// Statistics of one batch; its gradients are thrown away.
  absl::Status observeBatch(Machine &machine, Batch batch) {
    if (absl::Status status = control->before(machine); !status.ok())
      return status;
    if (absl::StatusOr<double> sum = runOnBatch(*observe, std::move(batch)); !sum.ok())
      return sum.status();
    return zeroState(machine, StateEntry::Role::Gradient);
  }

  std::unique_ptr<Control> control;
  std::optional<BoundProgram> observe;
  std::vector<std::pair<std::string, Tensor>> before;
};

} // namespace

absl::StatusOr<EvalResult> evaluate(Machine &machine, const EvalData &data, const RegionLabels *labels,
                                    Control *control) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<BoundProgram> program = BoundProgram::bind(machine, "eval");
  if (!program.ok())
    return program.status();
  if (labels && !data.tokens())
    return absl::InvalidArgumentError("regions are parts of documents, and rows of a task are none");
  absl::StatusOr<LiveControl> live = LiveControl::make(machine, control);
  if (!live.ok())
    return live.status();
  Reducer reducer;
  EvalResult result;
  for (size_t region = 0; labels && region < labels->names().size(); ++region)
    result.regions.push_back({labels->names()[region], 0, 0});
  for (int64_t i = 0; i < data.batches(); ++i) {
    absl::StatusOr<Batch> batch = data.at(i);
    if (!batch.ok())
      return batch.status();
    if (absl::Status status = live->ahead(machine, i + 1, *batch); !status.ok())
      return status;
    if (labels) {
      if (absl::Status status = addRegions(*program, data, i, *labels, *batch, result.regions); !status.ok())
        return status;
    } else {
      absl::StatusOr<double> sum = runOnBatch(*program, *batch);
      if (!sum.ok())
        return sum.status();
      reducer.add(*sum, batch->counted);
    }
    if (absl::Status status = live->after(machine, i + 1, *std::move(batch)); !status.ok())
      return status;
  }
  if (control)
    result.acr = live->meanAcr().value_or(control->acr());
  if (absl::Status status = live->restore(machine); !status.ok())
    return status;
  for (const RegionLoss &region : result.regions)
    reducer.add(region.lossSum, region.targets);
  if (reducer.targets() == 0)
    return absl::InvalidArgumentError("the held-out text has no target: expected at least 2 tokens");
  result.loss = reducer.mean();
  result.perplexity = std::exp(result.loss);
  result.targets = reducer.targets();
  result.tokens = data.batches() * data.rows() * data.positions();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

OrderedJson regionsJson(const EvalResult &result) {
  OrderedJson list = OrderedJson::array();
  const auto targets = static_cast<double>(result.targets);
  for (const RegionLoss &region : result.regions) {
    const auto count = static_cast<double>(region.targets);
    list.push_back({{"name", region.name},
                    {"targets", region.targets},
                    {"loss", region.lossSum / count},
                    {"share", count / targets},
                    {"loss_share", region.lossSum / (result.loss * targets)}});
  }
  return list;
}

OrderedJson toJson(const EvalResult &result) {
  OrderedJson json = {{"loss", result.loss},
                      {"perplexity", result.perplexity},
                      {"targets", result.targets},
                      {"tokens", result.tokens},
                      {"seconds", result.seconds}};
  if (result.acr)
    json["acr"] = *result.acr;
  if (!result.regions.empty())
    json["regions"] = regionsJson(result);
  return json;
}

} // namespace weft::rt
