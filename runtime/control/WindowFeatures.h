//===- WindowFeatures.h - What the controller sees of a head ----*- C++ -*-===//
//
// AAH section 5.3. The nine numbers of head h:
//
//   mean|q|, std q, mean|k|, std k, mean|v|, std v, entropy, output norm, usage
//
// Means and (population) standard deviations run over batch, positions and
// channels, q and k as they enter the product. Entropy is the mean over rows of
// the row's entropy divided by the log of the number of its allowed keys (a row
// with one key: 0); output norm the root mean square of the head's output;
// usage the executed window as a share of T.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace weft::rt {

constexpr int kFeatureCount = 9;
/// Columns of control/statistics/SITE: sums over rows that count of |q|, q, q^2,
/// |k|, k, k^2, |v|, v, v^2, normalised entropy, out^2, and the number of rows.
constexpr int kStatisticCount = 12;

using Feature = std::array<double, kFeatureCount>;

/// The features of a head from its sums. `channels` of q and k, `valueChannels`
/// of v and the output. Nullopt without rows, or when a number is not finite.
std::optional<Feature> featureOf(std::span<const float> sums, int64_t channels, int64_t valueChannels,
                                 double usage);

/// average = keep * average + (1 - keep) * now.
void smooth(Feature &average, const Feature &now, double keep);

double norm(const Feature &feature);

/// 0 where a norm is below 1e-6.
double cosine(const Feature &a, const Feature &b);

/// cos(a, b) - penalty * | |a| - |b| | / max(|a|, |b|, 1e-6): AAH section 5.4.
double similarity(const Feature &a, const Feature &b, double penalty);

} // namespace weft::rt
