//===- WindowRatios.h - How much context windows leave ----------*- C++ -*-===//
#pragma once

#include "runtime/control/WindowPlan.h"

#include <cstdint>
#include <map>
#include <vector>

namespace weft::rt {

/// AAH section 5.10: sum of min(W, T) / (heads T), rectangular. 0 without heads. `firstPlaces`, one a head, or
/// empty: F places that stay in sight behind a frozen head's window (Pattern.h) count as min(W + F, T)
/// *[Weft's own]*.
double contextRatio(const std::vector<int64_t> &windows, int64_t positions,
                    const std::vector<int64_t> &firstPlaces = {});

/// Allowed (query, key) pairs of one head in a row of T: T W - W (W - 1) / 2, W = min(window, T); with F first
/// places min(F, i - W + 1) more for each query i from W on.
double causalPairs(int64_t window, int64_t positions, int64_t firstPlaces = 0);

/// Allowed pairs as a share of those of full attention. 0 without heads.
double pairRatio(const std::vector<int64_t> &windows, int64_t positions,
                 const std::vector<int64_t> &firstPlaces = {});

/// How many heads have each window (min(W, T)).
std::map<int64_t, int64_t> windowCounts(const std::vector<int64_t> &windows, int64_t positions);

} // namespace weft::rt
