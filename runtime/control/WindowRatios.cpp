//===- WindowRatios.cpp - How much context windows leave ------------------===//
#include "runtime/control/WindowRatios.h"

#include <algorithm>

namespace weft::rt {

double contextRatio(const std::vector<int64_t> &windows, int64_t positions) {
  double sum = 0;
  for (int64_t window : windows)
    sum += static_cast<double>(std::min(window, positions));
  return windows.empty() ? 0 : sum / (static_cast<double>(windows.size()) * static_cast<double>(positions));
}

double causalPairs(int64_t window, int64_t positions) {
  const auto width = static_cast<double>(std::min(window, positions));
  return static_cast<double>(positions) * width - width * (width - 1) / 2;
}

double pairRatio(const std::vector<int64_t> &windows, int64_t positions) {
  double sum = 0;
  for (int64_t window : windows)
    sum += causalPairs(window, positions);
  return windows.empty() ? 0
                         : sum / (static_cast<double>(windows.size()) * causalPairs(positions, positions));
}

std::map<int64_t, int64_t> windowCounts(const std::vector<int64_t> &windows, int64_t positions) {
  std::map<int64_t, int64_t> counts;
  for (int64_t window : windows)
    ++counts[std::min(window, positions)];
  return counts;
}

} // namespace weft::rt
