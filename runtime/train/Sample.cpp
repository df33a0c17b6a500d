//===- Sample.cpp - Drawing the next token ----------------------*- C++ -*-===//
#include "runtime/train/Generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

constexpr size_t kSortedAtOnce = 64;

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

  // Of a large vocabulary few ids are looked at: only as many as are needed get their order.
  size_t sorted = 0;
  auto sortUpTo = [&](size_t count) {
    if (count <= sorted)
      return;
    const size_t end = std::min(std::max({count, 2 * sorted, kSortedAtOnce}), ids.size());
    std::partial_sort(ids.begin() + static_cast<std::ptrdiff_t>(sorted),
                      ids.begin() + static_cast<std::ptrdiff_t>(end), ids.end(), before);
    sorted = end;
  };
  const double largest = *std::max_element(logits.begin(), logits.end());
  auto weight = [&](int32_t id) { return std::exp((logits[id] - largest) / sampling.temperature); };
  if (sampling.topK > 0 && sampling.topK < static_cast<int64_t>(ids.size())) {
    sortUpTo(static_cast<size_t>(sampling.topK));
    ids.resize(static_cast<size_t>(sampling.topK));
    sorted = ids.size();
  }
  double total = 0;
  for (int32_t id : ids)
    total += weight(id);
  if (sampling.topP < 1) {
    const double enough = sampling.topP * total;
    double reached = 0;
    size_t kept = 0;
    for (; kept < ids.size() && reached < enough; ++kept) {
      sortUpTo(kept + 1);
      reached += weight(ids[kept]);
    }
    ids.resize(kept);
    sorted = kept;
    total = reached;
  }
  const double drawn = uniform * total;
  double reached = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    sortUpTo(i + 1);
    if ((reached += weight(ids[i])) > drawn)
      return ids[i];
  }
  return ids.back(); // rounding left drawn at the very end
}

} // namespace weft::rt
