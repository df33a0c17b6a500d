//===- PatternFit.cpp - Two tables for a mean pattern ---------------------===//
#include "runtime/control/Pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace weft::rt {
namespace {

constexpr double kFloor = -40;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__)
#define WEFT_LANES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WEFT_LANES
#endif

/// Outputs that are summed at once; what they read ahead of x's end is 0.
using Eight = double __attribute__((vector_size(64)));
constexpr int64_t kBlock = 32;

/// sums[n] = sum_m x[n + m] y[m], m < count, for kBlock numbers; each in order of m.
WEFT_LANES void correlateBlock(const double *x, const double *y, int64_t count, double *sums) {
  Eight first{}, second{}, third{}, fourth{}; // named, to stay in registers
  for (int64_t m = 0; m < count; ++m) {
    Eight a, b, c, d;
    std::memcpy(&a, x + m, sizeof a);
    std::memcpy(&b, x + m + 8, sizeof b);
    std::memcpy(&c, x + m + 16, sizeof c);
    std::memcpy(&d, x + m + 24, sizeof d);
    first += a * y[m], second += b * y[m], third += c * y[m], fourth += d * y[m];
  }
  for (const Eight &eight : {first, second, third, fourth}) {
    std::memcpy(sums, &eight, sizeof eight);
    sums += 8;
  }
}

/// sums[n] = sum over m of x[n + m] y[m], n + m < x's size, for each n below `count`.
std::vector<double> correlate(std::vector<double> x, const std::vector<double> &y, int64_t count) {
  const auto size = static_cast<int64_t>(x.size());
  x.resize(x.size() + 2 * kBlock);
  std::vector<double> sums(static_cast<size_t>(count + kBlock));
  for (int64_t n = 0; n < count; n += kBlock)
    correlateBlock(x.data() + n, y.data(), std::min(size - n, static_cast<int64_t>(y.size())),
                   sums.data() + n);
  sums.resize(static_cast<size_t>(count));
  return sums;
}

/// z[i] = sum_d r[d] a[i - d], d < r's size: the sums of a pattern's rows.
std::vector<double> rowSums(std::vector<double> a, const std::vector<double> &r) {
  std::reverse(a.begin(), a.end());
  const auto count = static_cast<int64_t>(a.size());
  std::vector<double> sums = correlate(std::move(a), r, count);
  std::reverse(sums.begin(), sums.end());
  return sums;
}

/// exp of the first `count` numbers of a table.
std::vector<double> powersOf(const std::vector<float> &table, int64_t count) {
  std::vector<double> powers;
  for (int64_t i = 0; i < count; ++i)
    powers.push_back(std::exp(static_cast<double>(table[static_cast<size_t>(i)])));
  return powers;
}

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

  /// Whether every moment is right to `stop`; cheap where a diagonal is not.
  bool isRight(double stop) {
    diagonals = diagonalSums();
    return worstOf(moments.diagonals, diagonals, window) <= stop &&
           worstOf(moments.columns, columnSums(), length) <= stop;
  }

  /// One round, after isRight.
  void round() {
    move(r, moments.diagonals, diagonals);
    refresh();
    move(a, moments.columns, columnSums());
    refresh();
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
    share = rowSums(expA, expR);
    for (size_t i = 0; i < share.size(); ++i)
      share[i] = moments.rows[i] / share[i];
  }

  std::vector<double> diagonalSums() const {
    std::vector<double> sums = correlate(share, expA, window);
    for (size_t d = 0; d < sums.size(); ++d)
      sums[d] *= expR[d];
    return sums;
  }

  std::vector<double> columnSums() const {
    std::vector<double> sums = correlate(share, expR, length);
    for (size_t j = 0; j < sums.size(); ++j)
      sums[j] *= expA[j];
    return sums;
  }

  double worstOf(const std::vector<double> &wanted, const std::vector<double> &found, int64_t count) const {
    double worst = 0;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      worst = std::max(worst, std::abs(wanted[i] - found[i]));
    return worst / moments.total();
  }

  static void move(std::vector<double> &table, const std::vector<double> &wanted,
                   const std::vector<double> &found) {
    for (size_t i = 0; i < table.size(); ++i)
      table[i] = wanted[i] > 0 && found[i] > 0 ? table[i] + std::log(wanted[i] / found[i]) : kFloor * 2;
    // What the gauge leaves free must not drift out of the range of exp.
    const double top = *std::max_element(table.begin(), table.end());
    for (double &value : table)
      value = std::max(value - top, kFloor * 2);
  }

  const PatternMoments &moments;
  int64_t length, window;
  std::vector<double> a, r, expA, expR, share, diagonals;
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
  while (fit.rounds < options.rounds && !scaling.isRight(options.stop)) {
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

std::vector<double> patternLogSums(const Pattern &pattern) {
  std::vector<double> sums = rowSums(powersOf(pattern.a, pattern.length()),
                                     powersOf(pattern.r, std::min(pattern.window, pattern.length())));
  if (pattern.firstPlaces > 0) {
    // First places alone, at distances from the window on.
    std::vector<double> a = powersOf(pattern.a, pattern.length()), r = powersOf(pattern.r, pattern.length());
    std::fill(a.begin() + std::min(pattern.firstPlaces, pattern.length()), a.end(), 0.0);
    std::fill(r.begin(), r.begin() + std::min(pattern.window, pattern.length()), 0.0);
    const std::vector<double> behind = rowSums(std::move(a), r);
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += behind[i];
  }
  for (double &sum : sums)
    sum = std::log(sum);
  return sums;
}

double patternKl(const PatternMoments &moments, const Pattern &pattern) {
  double sum = moments.information;
  const std::vector<double> logSums = patternLogSums(pattern);
  for (size_t i = 0; i < moments.rows.size(); ++i) {
    if (moments.columns[i] > 0)
      sum -= moments.columns[i] * static_cast<double>(pattern.a[i]);
    if (moments.diagonals[i] > 0)
      sum -= moments.diagonals[i] * static_cast<double>(pattern.r[i]);
    if (moments.rows[i] > 0)
      sum += moments.rows[i] * logSums[i];
  }
  return sum / moments.total();
}

std::vector<double> patternRow(const Pattern &pattern, int64_t row) {
  std::vector<double> values;
  double z = 0;
  const int64_t oldest = std::max<int64_t>(0, row - pattern.window + 1);
  for (int64_t j = pattern.firstPlaces > 0 ? 0 : oldest; j <= row; ++j) {
    const bool kept = j >= oldest || j < pattern.firstPlaces;
    values.push_back(kept ? std::exp(static_cast<double>(pattern.a[static_cast<size_t>(j)]) +
                                     static_cast<double>(pattern.r[static_cast<size_t>(row - j)]))
                          : 0);
    z += values.back();
  }
  for (double &value : values)
    value /= z;
  return values;
}

int64_t effectiveWindow(const Pattern &pattern, double negligible) {
  const int64_t bound = std::min(pattern.window, pattern.length());
  if (negligible <= 0)
    return pattern.window;
  const std::vector<double> a = powersOf(pattern.a, pattern.length()), r = powersOf(pattern.r, bound),
                            sums = rowSums(a, r);
  int64_t needed = 1;
  for (int64_t i = 0; i < pattern.length(); ++i) {
    const double most = negligible * sums[static_cast<size_t>(i)];
    double dropped = 0;
    int64_t first = std::max<int64_t>(0, i - bound + 1); // oldest key that stays
    while (first < i) {
      dropped += a[static_cast<size_t>(first)] * r[static_cast<size_t>(i - first)];
      if (dropped > most)
        break;
      ++first;
    }
    needed = std::max(needed, i - first + 1);
  }
  return needed >= bound ? pattern.window : needed;
}

int64_t keptPairs(int64_t length, const PatternCut &cut) {
  int64_t pairs = 0;
  for (int64_t i = 1; i <= length; ++i) // keys of a row
    pairs += std::min(i, cut.window) + std::min(cut.firstPlaces, std::max<int64_t>(0, i - cut.window));
  return pairs;
}

PatternCut cutMiddle(const Pattern &pattern, double negligible) {
  if (pattern.window < pattern.length() || negligible <= 0)
    return {effectiveWindow(pattern, negligible), 0};
  const int64_t length = pattern.length(), choices = (length + kPlacesGrain - 1) / kPlacesGrain;
  const std::vector<double> a = powersOf(pattern.a, length), r = powersOf(pattern.r, length);
  std::vector<int64_t> needed(static_cast<size_t>(choices), 1); // window by F / kPlacesGrain
  std::vector<double> before(static_cast<size_t>(length) + 1);  // mass of a row before a key
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      before[static_cast<size_t>(j) + 1] =
          before[static_cast<size_t>(j)] + a[static_cast<size_t>(j)] * r[static_cast<size_t>(i - j)];
    const double most = negligible * before[static_cast<size_t>(i) + 1];
    int64_t oldest = 0; // first key behind F that stays
    for (int64_t choice = 0; choice * kPlacesGrain <= i; ++choice) {
      const int64_t first = choice * kPlacesGrain;
      oldest = std::max(oldest, first);
      while (oldest < i &&
             before[static_cast<size_t>(oldest) + 1] - before[static_cast<size_t>(first)] <= most)
        ++oldest;
      auto &window = needed[static_cast<size_t>(choice)];
      window = std::max(window, i - oldest + 1);
    }
  }
  PatternCut best{std::min(needed[0], length), 0};
  for (int64_t choice = 1; choice < choices; ++choice)
    if (const PatternCut cut{needed[static_cast<size_t>(choice)], choice * kPlacesGrain};
        keptPairs(length, cut) < keptPairs(length, best))
      best = cut;
  if (best.window >= length)
    best.window = kNoWindow;
  return best;
}

} // namespace weft::rt
