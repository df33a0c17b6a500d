//===- Sweep.cpp - Which rate is best, and what is noise --------------------===//
#include "runtime/measure/Sweep.h"

#include <cmath>
#include <vector>

namespace weft::rt {

std::optional<double> bestFactor(const std::map<double, double> &losses) {
  std::optional<double> best;
  for (const auto &[factor, loss] : losses)
    if (std::isfinite(loss) && (!best || loss < losses.at(*best)))
      best = factor;
  return best;
}

std::optional<double> nextFactor(const std::map<double, double> &losses) {
  if (losses.empty())
    return 1;
  const double lowest = losses.begin()->first, highest = losses.rbegin()->first;
  const std::optional<double> best = bestFactor(losses);
  if (!best || *best == lowest)
    return lowest / 2;
  if (*best == highest)
    return highest * 2;
  return std::nullopt;
}

bool PairedDifference::withinNoise() const { return pairs < 2 || std::abs(mean) < 2 * sd; }

PairedDifference pairedDifference(const std::map<uint64_t, double> &a, const std::map<uint64_t, double> &b) {
  std::vector<double> differences;
  for (const auto &[seed, loss] : a)
    if (auto other = b.find(seed); other != b.end())
      differences.push_back(other->second - loss);
  PairedDifference result;
  result.pairs = static_cast<int64_t>(differences.size());
  const auto count = static_cast<double>(differences.size());
  for (double difference : differences)
    result.mean += difference / count;
  double squares = 0;
  for (double difference : differences)
    squares += (difference - result.mean) * (difference - result.mean);
  result.sd = differences.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return result;
}

} // namespace weft::rt
