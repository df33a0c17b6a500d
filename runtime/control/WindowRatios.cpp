//===- WindowRatios.cpp - How much context windows leave ------------------===//
#include "runtime/control/WindowRatios.h"

#include <algorithm>

namespace weft::rt {

static int64_t placesOf(const std::vector<int64_t> &firstPlaces, size_t head) {
  return firstPlaces.empty() ? 0 : firstPlaces[head];
}

double contextRatio(const std::vector<int64_t> &windows, int64_t positions,
                    const std::vector<int64_t> &firstPlaces) {
  double sum = 0;
  for (size_t head = 0; head < windows.size(); ++head)
    sum += static_cast<double>(
        std::min(std::min(windows[head], positions) + placesOf(firstPlaces, head), positions));
  return windows.empty() ? 0 : sum / (static_cast<double>(windows.size()) * static_cast<double>(positions));
}

double causalPairs(int64_t window, int64_t positions, int64_t firstPlaces) {
  const auto width = static_cast<double>(std::min(window, positions));
  // Behind the window: 1, 2, ... keys of query W, W + 1, ..., at most F.
  const double queries = static_cast<double>(positions) - width;
  const double most = std::min(static_cast<double>(firstPlaces), queries);
  return static_cast<double>(positions) * width - width * (width - 1) / 2 + most * queries -
         most * (most - 1) / 2;
}

double pairRatio(const std::vector<int64_t> &windows, int64_t positions,
                 const std::vector<int64_t> &firstPlaces) {
  double sum = 0;
  for (size_t head = 0; head < windows.size(); ++head)
    sum += causalPairs(windows[head], positions, placesOf(firstPlaces, head));
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
