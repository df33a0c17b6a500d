//===- FreezeReport.h - What a decision about heads says ---------*- C++ -*-===//
#pragma once

#include "runtime/control/FreezeSelect.h"
#include "runtime/control/PatternStatistics.h"
#include "runtime/control/Ranking.h"

namespace weft {

/// What is known of a head after calibration.
struct Measured {
  rt::HeadStatistics statistics;
  rt::PatternFit fit;
};

/// One head of the report; what is null is left out.
rt::OrderedJson entryOf(const rt::HeadCandidate &candidate, const rt::HeadChoice &choice,
                        const Measured *measured, const rt::PatternDistances *distances,
                        const rt::PatternCut *sees);

/// Means of chosen and unchosen heads, and how many each site gave (SAF, B.2, B.3).
rt::OrderedJson summaryOf(const rt::OrderedJson &heads);

/// A ranking beside an earlier one (Ranking.h).
rt::OrderedJson comparisonOf(const std::vector<rt::HeadCandidate> &candidates, const rt::HeadChoices &choices,
                             const rt::Ranking &earlier);

/// A report for people.
std::string tableOf(const rt::OrderedJson &report);

} // namespace weft
