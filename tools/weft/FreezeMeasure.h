//===- FreezeMeasure.h - Scores and fits of a statement's heads -*- C++ -*-===//
#pragma once

#include "tools/weft/Calibrate.h"
#include "tools/weft/FreezeReport.h"

#include <chrono>

namespace weft {

/// Where the seconds of a calibration went.
class Laps {
public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun).count(); }
  /// Notes what took the seconds since the lap before.
  void lap(const std::string &what);
  /// `fits 0.12 s, distances 0.36 s`.
  const std::string &text() const { return words; }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun = Clock::now();
  double last = 0;
  std::string words;
};

/// Statistics and fits of `candidates`, which get their KL and the scores that the rule's
/// selector needs. `onHost` is told what the machine does not do. Errors: of the programs.
absl::StatusOr<std::map<HeadName, Measured>>
measureHeads(Calibrator &calibrator, const lang::FreezeRule &rule, std::vector<rt::HeadCandidate> &candidates,
             Laps &laps, const std::function<void(const std::string &what)> &onHost);

} // namespace weft
