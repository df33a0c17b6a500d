//===- Accuracy.cpp - How often the likeliest token is right ---------------===//
#include "runtime/train/Accuracy.h"

#include "runtime/train/BoundProgram.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

/// Adds one row of logits.
void addRow(const Tensor &logits, int64_t row, int64_t vocabulary, int32_t target, AccuracyResult &result,
            double &lossSum) {
  int64_t best = 0;
  double highest = floatAt(logits, row * vocabulary), sum = 0;
  for (int64_t id = 1; id < vocabulary; ++id)
    if (double value = floatAt(logits, row * vocabulary + id); value > highest) {
      highest = value;
      best = id;
    }
  for (int64_t id = 0; id < vocabulary; ++id)
    sum += std::exp(floatAt(logits, row * vocabulary + id) - highest);
  ++result.targets;
  result.right += best == target;
  lossSum += highest + std::log(sum) - floatAt(logits, row * vocabulary + target);
}

absl::Status addBatch(BoundProgram &program, Batch batch, AccuracyResult &result, double &lossSum) {
  if (absl::Status status = program.setInput("tokens", std::move(batch.tokens)); !status.ok())
    return status;
  if (program.hasInput("doc_start"))
    if (absl::Status status = program.setInput("doc_start", std::move(batch.docStart)); !status.ok())
      return status;
  if (absl::Status status = program.run(); !status.ok())
    return status;
  absl::StatusOr<const Tensor *> logits = program.result("logits");
  if (!logits.ok())
    return logits.status();
  std::span<const int32_t> targets = std::as_const(batch.targets).as<int32_t>();
  const int64_t vocabulary = (*logits)->shape.back();
  if ((*logits)->elements() != static_cast<int64_t>(targets.size()) * vocabulary)
    return absl::InvalidArgumentError(absl::StrCat("program 'prefill' gives ", (*logits)->elements(),
                                                   " logits, expected ", vocabulary, " for each of ",
                                                   targets.size(), " positions"));
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i] >= 0)
      addRow(**logits, static_cast<int64_t>(i), vocabulary, targets[i], result, lossSum);
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<AccuracyResult> accuracy(Machine &machine, const EvalData &data) {
  absl::StatusOr<BoundProgram> program = BoundProgram::bind(machine, "prefill");
  if (!program.ok())
    return program.status();
  AccuracyResult result;
  double lossSum = 0;
  for (int64_t i = 0; i < data.batches(); ++i) {
    absl::StatusOr<Batch> batch = data.at(i);
    if (!batch.ok())
      return batch.status();
    if (absl::Status status = addBatch(*program, *std::move(batch), result, lossSum); !status.ok())
      return status;
  }
  if (result.targets == 0)
    return absl::InvalidArgumentError("there is no target to be right about");
  result.loss = lossSum / static_cast<double>(result.targets);
  return result;
}

} // namespace weft::rt
