//===- Sample.cpp - Drawing the next token ----------------------*- C++ -*-===//
#include "runtime/train/Generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

absl::Status check(std::span<const double> logits, const Sampling &sampling) {
  if (!(sampling.temperature >= 0) || std::isinf(sampling.temperature))
    return absl::InvalidArgumentError(
        absl::StrCat("temperature: expected a number from 0, found ", sampling.temperature));
  if (sampling.topK < 0)
    return absl::InvalidArgumentError(absl::StrCat("top-k: expected 0 (all) or more, found ", sampling.topK));
  if (!(sampling.topP > 0 && sampling.topP <= 1))
    return absl::InvalidArgumentError(
        absl::StrCat("top-p: expected above 0 and at most 1, found ", sampling.topP));
  for (size_t id = 0; id < logits.size(); ++id)
    if (std::isnan(logits[id]) || logits[id] == HUGE_VAL)
      return absl::InvalidArgumentError(
          absl::StrCat("the logit of id ", id, " is ", logits[id], ": the weights are broken"));
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<int32_t> sample(std::span<const double> logits, const Sampling &sampling, double uniform) {
  if (absl::Status status = check(logits, sampling); !status.ok())
    return status;
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](int32_t id) { return logits[id] == -HUGE_VAL; });
  if (ids.empty())
    return absl::InvalidArgumentError("no id can be drawn: every logit is -inf");
  auto before = [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  if (sampling.temperature == 0)
    return *std::min_element(ids.begin(), ids.end(), before);

  std::sort(ids.begin(), ids.end(), before);
  if (sampling.topK > 0 && sampling.topK < static_cast<int64_t>(ids.size()))
    ids.resize(static_cast<size_t>(sampling.topK));
  std::vector<double> weights;
  for (int32_t id : ids)
    weights.push_back(std::exp((logits[id] - logits[ids[0]]) / sampling.temperature));
  if (sampling.topP < 1) {
    const double enough = sampling.topP * std::accumulate(weights.begin(), weights.end(), 0.0);
    double reached = 0;
    size_t kept = 0;
    while (kept < weights.size() && reached < enough)
      reached += weights[kept++];
    weights.resize(kept);
  }
  const double drawn = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  double reached = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if ((reached += weights[i]) > drawn)
      return ids[i];
  return ids[weights.size() - 1]; // rounding left drawn at the very end
}

} // namespace weft::rt
