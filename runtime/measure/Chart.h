//===- Chart.h - Lines and points as an SVG picture -------------*- C++ -*-===//
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft::rt {

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points; // drawn in order; those not finite are left out
};

struct Chart {
  std::string title, x, y; // names of the axes, with units
  bool logX = false;       // points with x <= 0 are then left out
  std::vector<Series> series;
};

/// A picture of 720 x 440 with ticks at 1, 2 and 5 times powers of ten, a legend
/// and each point's value as its tooltip. A pure function of `chart`; with no
/// point it says so.
std::string svg(const Chart &chart);

} // namespace weft::rt
