//===- Evaluate.h - Loss on held-out text -----------------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/core/Json.h"
#include "runtime/data/Batches.h"
#include "runtime/measure/Regions.h"
#include "runtime/train/Control.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::rt {

/// `loss`: sum over all counted targets / their number (nats); perplexity =
/// exp(loss). `tokens`: slots run, rows x positions of all batches.
struct RegionLoss {
  std::string name;
  int64_t targets = 0;
  double lossSum = 0; // nats
};

struct EvalResult {
  double loss = 0, perplexity = 0;
  int64_t targets = 0, tokens = 0;
  double seconds = 0;
  std::vector<RegionLoss> regions; // in the labels' order; empty without labels
  std::optional<double> acr;       // of the windows that were in force, a mean over batches
};

/// Runs program `eval` over every batch of `data`: every target counts once.
/// Errors: of the machine and the data; InvalidArgument without targets.
/// With `labels` of data.tokens(), each batch runs once for each region that it
/// has targets of, and the loss is the sum over regions.
///
/// A `control` that is live (`evaluation = live`) chooses windows from the rows that
/// are measured, on a copy of its state: batch n is step n - 1, control steps take
/// statistics with `observe`, and the windows hold from the next batch. The machine's
/// windows are afterwards what they were.
absl::StatusOr<EvalResult> evaluate(Machine &machine, const EvalData &data,
                                    const RegionLabels *labels = nullptr, Control *control = nullptr);

/// {"loss","perplexity","targets","tokens","seconds"}; with a controller also "acr"; with regions also
/// "regions": [{"name","targets","loss","share","loss_share"}].
OrderedJson toJson(const EvalResult &result);
/// The list under "regions". `loss` is null where a region has no target;
/// shares of targets and of loss sum to 1; the sum of share x loss is the loss.
OrderedJson regionsJson(const EvalResult &result);

} // namespace weft::rt
