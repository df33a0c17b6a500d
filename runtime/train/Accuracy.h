//===- Accuracy.h - How often the likeliest token is right ------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/data/Batches.h"

#include <cstdint>

namespace weft::rt {

/// Over all counted targets. `right`: targets whose logit is above all others
/// of the vocabulary; of equal logits the lowest id is the answer. `loss`: mean
/// of log(sum exp) - logit, nats.
struct AccuracyResult {
  int64_t targets = 0, right = 0;
  double loss = 0;
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(targets); }
};

/// Runs program `prefill`, which gives `logits` [rows, positions, vocabulary],
/// over every batch of `data`. Errors: of the machine and the data; NotFound
/// when the model has no such output; InvalidArgument without targets.
absl::StatusOr<AccuracyResult> accuracy(Machine &machine, const EvalData &data);

} // namespace weft::rt
