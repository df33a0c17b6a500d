//===- Evaluate.h - Loss on held-out text -----------------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/core/Json.h"
#include "runtime/data/Batches.h"

#include <cstdint>

namespace weft::rt {

/// `loss`: sum over all counted targets / their number (nats); perplexity =
/// exp(loss). `tokens`: slots run, rows x positions of all batches.
struct EvalResult {
  double loss = 0, perplexity = 0;
  int64_t targets = 0, tokens = 0;
  double seconds = 0;
};

/// Runs program `eval` over every batch of `data`: every target counts once.
/// Errors: of the machine and the data; InvalidArgument without targets.
absl::StatusOr<EvalResult> evaluate(Machine &machine, const EvalData &data);

/// {"loss","perplexity","targets","tokens","seconds"}
OrderedJson toJson(const EvalResult &result);

} // namespace weft::rt
