//===- Reducer.h - Mean loss over targets -----------------------*- C++ -*-===//
#pragma once

#include <cmath>
#include <cstdint>

namespace weft::rt {

/// Adds loss sums and target counts of any number of batches. The mean divides
/// once, at the end: sums 2 over 1 target and 3 over 3 give 1.25, where a mean
/// of means gives 1.5.
class Reducer {
public:
  void add(double lossSum, int64_t targetCount) {
    sum += lossSum;
    count += targetCount;
  }
  int64_t targets() const { return count; }
  /// NaN without targets.
  double mean() const { return count ? sum / static_cast<double>(count) : std::nan(""); }

private:
  double sum = 0;
  int64_t count = 0;
};

} // namespace weft::rt
