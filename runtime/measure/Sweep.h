//===- Sweep.h - Which rate is best, and what is noise ----------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace weft::rt {

/// The factor whose loss is least (of equal ones the lowest); a loss that is not
/// finite never is. Nothing when none is finite.
std::optional<double> bestFactor(const std::map<double, double> &losses);

/// The boundary rule (SAN, "Setup"): while the best factor of a sweep is at an
/// edge, the factor to try next is twice as far that way. Nothing when the best
/// one has both neighbours. With no finite loss: half of the lowest.
std::optional<double> nextFactor(const std::map<double, double> &losses);

/// Differences b - a of losses by seed, over seeds that both have.
struct PairedDifference {
  double mean = 0, sd = 0; // sd of the sample (n - 1); 0 for one pair
  int64_t pairs = 0;
  /// Less than twice the sd away from 0, or a single pair.
  bool withinNoise() const;
};
PairedDifference pairedDifference(const std::map<uint64_t, double> &a, const std::map<uint64_t, double> &b);

} // namespace weft::rt
