//===- PatternFit.cpp - Two tables for a mean pattern ---------------------===//
#include "runtime/control/Pattern.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weft::rt {
namespace {

constexpr double kFloor = -40;

/// The fit in double: exp of the tables, and what a pattern sums to.
class Scaling {
public:
  Scaling(const PatternMoments &moments, const Pattern *start) : moments(moments) {
    length = 0; // rows that some document reaches
    while (length < static_cast<int64_t>(moments.rows.size()) &&
           moments.rows[static_cast<size_t>(length)] > 0)
      ++length;
    window = std::min(moments.window, length);
    a.assign(static_cast<size_t>(length), 0.0);
    r.assign(static_cast<size_t>(window), 0.0);
    if (start) {
      std::copy_n(start->a.begin(), length, a.begin());
      std::copy_n(start->r.begin(), window, r.begin());
    }
    refresh();
  }

  /// One round; the largest difference of a moment before it moved.
  double round() {
    double worst = move(r, moments.diagonals, diagonalSums());
    refresh();
    worst = std::max(worst, move(a, moments.columns, columnSums()));
    refresh();
    return worst;
  }

  /// The largest difference of a moment as things stand.
  double difference() const {
    return std::max(worstOf(moments.diagonals, diagonalSums(), window),
                    worstOf(moments.columns, columnSums(), length));
  }

  Pattern finished() const;

private:
  /// Row weights over Z, from exp of the tables.
  void refresh() {
    expA.resize(a.size());
    expR.resize(r.size());
    for (size_t j = 0; j < a.size(); ++j)
      expA[j] = std::exp(a[j]);
    for (size_t d = 0; d < r.size(); ++d)
      expR[d] = std::exp(r[d]);
    share.resize(a.size());
    for (int64_t i = 0; i < length; ++i) {
      double z = 0;
      for (int64_t d = 0; d <= std::min(i, window - 1); ++d)
        z += expR[static_cast<size_t>(d)] * expA[static_cast<size_t>(i - d)];
      share[static_cast<size_t>(i)] = moments.rows[static_cast<size_t>(i)] / z;
    }
  }

  std::vector<double> diagonalSums() const {
    std::vector<double> sums(static_cast<size_t>(window));
    for (int64_t d = 0; d < window; ++d)
      sums[static_cast<size_t>(d)] = expR[static_cast<size_t>(d)] *
                                     std::inner_product(share.begin() + d, share.end(), expA.begin(), 0.0);
    return sums;
  }

  std::vector<double> columnSums() const {
    std::vector<double> sums(static_cast<size_t>(length));
    for (int64_t j = 0; j < length; ++j)
      sums[static_cast<size_t>(j)] =
          expA[static_cast<size_t>(j)] * std::inner_product(share.begin() + j,
                                                            share.begin() + std::min(length, j + window),
                                                            expR.begin(), 0.0);
    return sums;
  }

  double worstOf(const std::vector<double> &wanted, const std::vector<double> &found, int64_t count) const {
    double worst = 0;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      worst = std::max(worst, std::abs(wanted[i] - found[i]));
    return worst / moments.total();
  }

  double move(std::vector<double> &table, const std::vector<double> &wanted,
              const std::vector<double> &found) const {
    const double worst = worstOf(wanted, found, static_cast<int64_t>(table.size()));
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = wanted[i] > 0 && found[i] > 0 ? table[i] + std::log(wanted[i] / found[i]) : kFloor * 2;
    // What the gauge leaves free must not drift out of the range of exp.
    const double top = *std::max_element(table.begin(), table.end());
    for (double &value : table)
      value = std::max(value - top, kFloor * 2);
    return worst;
  }

  const PatternMoments &moments;
  int64_t length, window;
  std::vector<double> a, r, expA, expR, share;
};

/// The gauge: no slope in a, both tables end at 0.
Pattern Scaling::finished() const {
  double meanJ = static_cast<double>(length - 1) / 2, top = 0, bottom = 0, mean = 0;
  for (double value : a)
    mean += value / static_cast<double>(length);
  for (int64_t j = 0; j < length; ++j) {
    top += (static_cast<double>(j) - meanJ) * (a[static_cast<size_t>(j)] - mean);
    bottom += (static_cast<double>(j) - meanJ) * (static_cast<double>(j) - meanJ);
  }
  const double c = bottom > 0 ? -top / bottom : 0;
  auto table = [&](const std::vector<double> &from) {
    std::vector<double> turned(from.size());
    for (size_t i = 0; i < from.size(); ++i)
      turned[i] = from[i] + c * static_cast<double>(i);
    const double most = *std::max_element(turned.begin(), turned.end());
    std::vector<float> result(moments.rows.size());
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = static_cast<float>(std::max(turned[std::min(i, turned.size() - 1)] - most, kFloor));
    return result;
  };
  return {table(a), table(r), moments.window};
}

} // namespace

double PatternMoments::total() const { return std::accumulate(rows.begin(), rows.end(), 0.0); }

PatternFit fitPattern(const PatternMoments &moments, const PatternFitOptions &options, const Pattern *start) {
  PatternFit fit;
  if (moments.rows.empty() || moments.rows[0] <= 0) { // nothing was seen: uniform
    fit.pattern = {std::vector<float>(moments.rows.size()), std::vector<float>(moments.rows.size()),
                   moments.window};
    fit.rowsUnreached = static_cast<int64_t>(moments.rows.size());
    return fit;
  }
  Scaling scaling(moments, start);
  while (fit.rounds < options.rounds && scaling.difference() > options.stop) {
    scaling.round();
    ++fit.rounds;
  }
  fit.difference = scaling.difference();
  fit.pattern = scaling.finished();
  fit.kl = patternKl(moments, fit.pattern);
  fit.rowsUnreached =
      std::count_if(moments.rows.begin(), moments.rows.end(), [](double n) { return n <= 0; });
  return fit;
}

double patternKl(const PatternMoments &moments, const Pattern &pattern) {
  double sum = moments.information;
  const auto length = static_cast<int64_t>(moments.rows.size());
  for (int64_t i = 0; i < length; ++i) {
    const auto at = static_cast<size_t>(i);
    if (moments.columns[at] > 0)
      sum -= moments.columns[at] * static_cast<double>(pattern.a[at]);
    if (moments.diagonals[at] > 0)
      sum -= moments.diagonals[at] * static_cast<double>(pattern.r[at]);
    if (moments.rows[at] <= 0)
      continue;
    double z = 0;
    for (int64_t j = std::max<int64_t>(0, i - pattern.window + 1); j <= i; ++j)
      z += std::exp(static_cast<double>(pattern.a[static_cast<size_t>(j)]) +
                    static_cast<double>(pattern.r[static_cast<size_t>(i - j)]));
    sum += moments.rows[at] * std::log(z);
  }
  return sum / moments.total();
}

std::vector<double> patternRow(const Pattern &pattern, int64_t row) {
  std::vector<double> values;
  double z = 0;
  for (int64_t j = std::max<int64_t>(0, row - pattern.window + 1); j <= row; ++j) {
    values.push_back(std::exp(static_cast<double>(pattern.a[static_cast<size_t>(j)]) +
                              static_cast<double>(pattern.r[static_cast<size_t>(row - j)])));
    z += values.back();
  }
  for (double &value : values)
    value /= z;
  return values;
}

int64_t effectiveWindow(const Pattern &pattern, double negligible) {
  int64_t needed = 1;
  const int64_t bound = std::min(pattern.window, pattern.length());
  if (negligible <= 0)
    return pattern.window;
  for (int64_t i = 0; i < pattern.length(); ++i) {
    std::vector<double> row = patternRow(pattern, i);
    double dropped = 0;
    size_t first = 0; // oldest key that stays
    while (first + 1 < row.size() && dropped + row[first] <= negligible)
      dropped += row[first++];
    needed = std::max(needed, static_cast<int64_t>(row.size() - first));
  }
  return needed >= bound ? pattern.window : needed;
}

} // namespace weft::rt
