//===- WindowFeatures.cpp - What the controller sees of a head ------------===//
#include "runtime/control/WindowFeatures.h"

#include <algorithm>
#include <cmath>

namespace weft::rt {
namespace {

constexpr double kTiny = 1e-6;

/// From sums of |x|, x and x^2 over `count` numbers: mean |x| and deviation.
void meanAndDeviation(std::span<const float> sums, double count, double *out) {
  const double mean = sums[1] / count;
  out[0] = sums[0] / count;
  out[1] = std::sqrt(std::max(0.0, sums[2] / count - mean * mean));
}

} // namespace

std::optional<Feature> featureOf(std::span<const float> sums, int64_t channels, int64_t valueChannels,
                                 double usage) {
  const double rows = sums[11];
  if (!(rows > 0))
    return std::nullopt;
  Feature feature{};
  const auto keys = static_cast<double>(channels), values = static_cast<double>(valueChannels);
  meanAndDeviation(sums.subspan(0, 3), rows * keys, &feature[0]);
  meanAndDeviation(sums.subspan(3, 3), rows * keys, &feature[2]);
  meanAndDeviation(sums.subspan(6, 3), rows * values, &feature[4]);
  feature[6] = sums[9] / rows;
  feature[7] = std::sqrt(std::max(0.0, sums[10] / (rows * values)));
  feature[8] = usage;
  // max(0, NaN) is 0: the sums themselves are asked.
  const bool finite = std::all_of(sums.begin(), sums.end(), [](float sum) { return std::isfinite(sum); });
  return finite ? std::optional(feature) : std::nullopt;
}

void smooth(Feature &average, const Feature &now, double keep) {
  for (int i = 0; i < kFeatureCount; ++i)
    average[i] = keep * average[i] + (1 - keep) * now[i];
}

double norm(const Feature &feature) {
  double sum = 0;
  for (double number : feature)
    sum += number * number;
  return std::sqrt(sum);
}

double cosine(const Feature &a, const Feature &b) {
  const double lengthA = norm(a), lengthB = norm(b);
  if (lengthA < kTiny || lengthB < kTiny)
    return 0;
  double product = 0;
  for (int i = 0; i < kFeatureCount; ++i)
    product += a[i] * b[i];
  return product / (lengthA * lengthB);
}

double similarity(const Feature &a, const Feature &b, double penalty) {
  const double lengthA = norm(a), lengthB = norm(b);
  return cosine(a, b) - penalty * std::fabs(lengthA - lengthB) / std::max({lengthA, lengthB, kTiny});
}

} // namespace weft::rt
