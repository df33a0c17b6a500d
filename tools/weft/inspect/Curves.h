//===- Curves.h - Long curves with few points -------------------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <vector>

namespace weft::inspect {

/// A number over steps, in the order of the log.
struct Curve {
  std::vector<double> steps, values; // values that are not finite are kept here
};

/// What a picture needs of a curve.
struct ThinCurve {
  std::vector<double> steps, values; // finite
  size_t points = 0;                 // finite ones before
  size_t broken = 0;                 // those that are not finite
  std::vector<double> brokenSteps;   // the first 50 of them
};

/// At most about `most` points: of each of most / 4 stretches of equal numbers of
/// points the first, the least, the greatest and the last, in order, so that no peak
/// is lost. Curves that are short enough stay as they are.
ThinCurve thinned(const Curve &curve, size_t most);

} // namespace weft::inspect
