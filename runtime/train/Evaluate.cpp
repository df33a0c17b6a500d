//===- Evaluate.cpp - Loss on held-out text ---------------------*- C++ -*-===//
#include "runtime/train/Evaluate.h"

#include "runtime/train/BoundProgram.h"
#include "runtime/train/Feed.h"
#include "runtime/train/Reducer.h"

#include <chrono>
#include <cmath>

namespace weft::rt {

absl::StatusOr<EvalResult> evaluate(Machine &machine, const EvalData &data) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<BoundProgram> program = BoundProgram::bind(machine, "eval");
  if (!program.ok())
    return program.status();
  Reducer reducer;
  for (int64_t i = 0; i < data.batches(); ++i) {
    absl::StatusOr<Batch> batch = data.at(i);
    if (!batch.ok())
      return batch.status();
    const int64_t counted = batch->counted;
    absl::StatusOr<double> sum = runOnBatch(*program, *std::move(batch));
    if (!sum.ok())
      return sum.status();
    reducer.add(*sum, counted);
  }
  if (reducer.targets() == 0)
    return absl::InvalidArgumentError("the held-out text has no target: expected at least 2 tokens");
  EvalResult result;
  result.loss = reducer.mean();
  result.perplexity = std::exp(result.loss);
  result.targets = reducer.targets();
  result.tokens = data.batches() * data.rows() * data.positions();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

OrderedJson toJson(const EvalResult &result) {
  return {{"loss", result.loss},
          {"perplexity", result.perplexity},
          {"targets", result.targets},
          {"tokens", result.tokens},
          {"seconds", result.seconds}};
}

} // namespace weft::rt
