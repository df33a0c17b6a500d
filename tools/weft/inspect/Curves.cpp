//===- Curves.cpp - Long curves with few points ---------------------------===//
#include "tools/weft/inspect/Curves.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace weft::inspect {

ThinCurve thinned(const Curve &curve, size_t most) {
  constexpr size_t kNamed = 50;
  ThinCurve thin;
  std::vector<double> steps, values;
  for (size_t i = 0; i < curve.steps.size(); ++i) {
    if (std::isfinite(curve.values[i])) {
      steps.push_back(curve.steps[i]);
      values.push_back(curve.values[i]);
    } else if (++thin.broken <= kNamed) {
      thin.brokenSteps.push_back(curve.steps[i]);
    }
  }
  thin.points = steps.size();
  const size_t stretches = std::max<size_t>(most / 4, 1);
  if (steps.size() <= most) {
    thin.steps = std::move(steps);
    thin.values = std::move(values);
    return thin;
  }
  for (size_t stretch = 0; stretch < stretches; ++stretch) {
    const size_t begin = stretch * steps.size() / stretches, end = (stretch + 1) * steps.size() / stretches;
    if (begin == end)
      continue;
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin),
               last = values.begin() + static_cast<std::ptrdiff_t>(end);
    for (const size_t i :
         std::set<size_t>{begin, static_cast<size_t>(std::min_element(first, last) - values.begin()),
                          static_cast<size_t>(std::max_element(first, last) - values.begin()), end - 1}) {
      thin.steps.push_back(steps[i]);
      thin.values.push_back(values[i]);
    }
  }
  return thin;
}

} // namespace weft::inspect
