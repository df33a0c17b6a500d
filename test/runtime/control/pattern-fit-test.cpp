// Known patterns come back, whatever the fit starts from; the general case
// against L-BFGS on the dense problem (test/numpy/pattern_fit.py).
#include "runtime/control/Pattern.h"

#include "test/runtime/control/numpy-check.h"

#include "runtime/core/Philox.h"

#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace weft::rt {
namespace {

using Matrix = std::vector<std::vector<double>>; // row i: keys 0 .. i

PatternMoments momentsOf(const Matrix &mean, const std::vector<double> &rows, int64_t window) {
  PatternMoments moments;
  moments.rows = rows;
  moments.columns.assign(rows.size(), 0);
  moments.diagonals.assign(rows.size(), 0);
  moments.window = window;
  for (size_t i = 0; i < mean.size(); ++i)
    for (size_t j = 0; j <= i; ++j) {
      moments.columns[j] += rows[i] * mean[i][j];
      moments.diagonals[i - j] += rows[i] * mean[i][j];
      moments.information += mean[i][j] > 0 ? rows[i] * mean[i][j] * std::log(mean[i][j]) : 0;
    }
  return moments;
}

/// Rows proportional to weight(i, j) over the allowed keys.
Matrix rowsOf(int64_t length, int64_t window, const std::function<double(int64_t, int64_t)> &weight) {
  Matrix rows;
  for (int64_t i = 0; i < length; ++i) {
    std::vector<double> row(static_cast<size_t>(i + 1));
    double sum = 0;
    for (int64_t j = std::max<int64_t>(0, i - window + 1); j <= i; ++j)
      sum += row[static_cast<size_t>(j)] = weight(i, j);
    for (double &value : row)
      value /= sum;
    rows.push_back(row);
  }
  return rows;
}

double farthest(const Matrix &mean, const Pattern &pattern) {
  double worst = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    std::vector<double> row = patternRow(pattern, static_cast<int64_t>(i));
    for (size_t j = 0; j < row.size(); ++j)
      worst = std::max(worst, std::abs(row[j] - mean[i][i + 1 - row.size() + j]));
  }
  return worst;
}

const PatternFitOptions kClose{20000, 1e-12};

struct Known {
  const char *name;
  std::function<double(int64_t, int64_t)> weight;
};

const Known kKnown[] = {
    {"uniform", [](int64_t, int64_t) { return 1.0; }},
    {"decay", [](int64_t i, int64_t j) { return std::exp(-0.2 * static_cast<double>(i - j)); }},
    {"previous token", [](int64_t i, int64_t j) { return i - j == 1 ? 1.0 : 1e-6; }},
    {"absolute key", [](int64_t, int64_t j) { return j % 5 == 2 ? 3.0 : 0.1; }},
    {"sink", [](int64_t i, int64_t j) { return (j == 0 ? 20.0 : 1.0) * std::exp(-0.05 * double(i - j)); }},
};

// Mutations caught: columns and diagonals taken for one another; Z not renewed
// after a half-round; the gauge's c with the wrong sign.
TEST(PatternFit, FindsKnownPatterns) {
  for (const Known &known : kKnown)
    for (int64_t window : {int64_t(7), kNoWindow}) {
      Matrix mean = rowsOf(40, std::min<int64_t>(window, 40), known.weight);
      PatternFit fit = fitPattern(momentsOf(mean, std::vector<double>(40, 3), window), kClose);
      EXPECT_LT(farthest(mean, fit.pattern), 2e-5) << known.name << " window " << window;
      EXPECT_LT(fit.kl, 1e-6) << known.name;
      EXPECT_EQ(*std::max_element(fit.pattern.a.begin(), fit.pattern.a.end()), 0) << known.name;
      EXPECT_EQ(*std::max_element(fit.pattern.r.begin(), fit.pattern.r.end()), 0) << known.name;
      EXPECT_GE(*std::min_element(fit.pattern.a.begin(), fit.pattern.a.end()), -40);
      double slope = 0; // of a, which the gauge takes out
      for (size_t j = 0; j < 40; ++j)
        slope += (static_cast<double>(j) - 19.5) * static_cast<double>(fit.pattern.a[j]) / 5330;
      EXPECT_NEAR(slope, 0, 1e-5) << known.name;
    }
}

Matrix drawn(int64_t length, int64_t window, uint64_t seed) {
  Philox philox(seed, "test/pattern");
  return rowsOf(length, window, [&](int64_t i, int64_t j) {
    return std::exp(philox.normal(static_cast<uint64_t>(i * length + j)) - 0.1 * static_cast<double>(i - j));
  });
}

// Mutation caught: rows weighted alike, though documents of many lengths reach them.
TEST(PatternFit, AgreesWithDenseOptimiser) {
  for (int64_t window : {int64_t(5), kNoWindow}) {
    const int64_t length = 24;
    Matrix mean = drawn(length, std::min(window, length), 4);
    std::vector<double> rows;
    for (int64_t i = 0; i < length; ++i)
      rows.push_back(i < 10 ? 4 : 1);
    PatternFit fit = fitPattern(momentsOf(mean, rows, window), kClose);
    Json square = Json::array();
    for (std::vector<double> row : mean) {
      row.resize(static_cast<size_t>(length));
      square.push_back(row);
    }
    Json answer = test::numpyAnswer(
        "pattern_fit.py",
        {{"kind", "fit"}, {"rows", rows}, {"mean", square}, {"window", std::min(window, length)}});
    EXPECT_NEAR(fit.kl, answer["kl"].get<double>(), 1e-6);
    Matrix best = rowsOf(length, length, [&](int64_t i, int64_t j) {
      return answer["pattern"][static_cast<size_t>(i)][static_cast<size_t>(j)].get<double>();
    });
    EXPECT_LT(farthest(best, fit.pattern), 1e-4);
    // The moments are those of the mean, to what `stop` says.
    EXPECT_LT(fit.difference, 1e-8);
  }
}

// The problem is convex: wherever it starts, the same P. KL never rises.
TEST(PatternFit, ForgetsItsStartAndNeverClimbs) {
  Matrix mean = drawn(30, 30, 9);
  PatternMoments moments = momentsOf(mean, std::vector<double>(30, 1), kNoWindow);
  Pattern start{std::vector<float>(30), std::vector<float>(30), kNoWindow};
  for (size_t i = 0; i < 30; ++i) {
    start.a[i] = -static_cast<float>(i % 7);
    start.r[i] = -static_cast<float>(i % 4);
  }
  PatternFit one = fitPattern(moments, kClose), two = fitPattern(moments, kClose, &start);
  for (int64_t i = 0; i < 30; ++i) {
    std::vector<double> first = patternRow(one.pattern, i), second = patternRow(two.pattern, i);
    for (size_t j = 0; j < first.size(); ++j)
      EXPECT_NEAR(first[j], second[j], 1e-5);
  }
  double before = 1e9;
  for (int64_t rounds = 0; rounds < 12; ++rounds) {
    double kl = fitPattern(moments, {rounds, 0}, &start).kl;
    EXPECT_LE(kl, before + 1e-7);
    before = kl;
  }
}

TEST(PatternFit, StopsAtTheAskedDifference) {
  Matrix mean = drawn(30, 30, 2);
  PatternFit fit = fitPattern(momentsOf(mean, std::vector<double>(30, 1), kNoWindow), {200, 1e-4});
  EXPECT_LT(fit.difference, 1e-4);
  EXPECT_LT(fit.rounds, 200);
  PatternFit two = fitPattern(momentsOf(mean, std::vector<double>(30, 1), kNoWindow), {2, 0});
  EXPECT_EQ(two.rounds, 2);
}

// Rows that no document reaches: the tables go on with their last value.
TEST(PatternFit, GoesOnBeyondTheLongestDocument) {
  Matrix mean = drawn(10, 10, 3);
  std::vector<double> rows(10, 2);
  PatternMoments moments = momentsOf(mean, rows, kNoWindow);
  for (std::vector<double> *table : {&moments.rows, &moments.columns, &moments.diagonals})
    table->resize(16);
  PatternFit fit = fitPattern(moments, kClose);
  EXPECT_EQ(fit.rowsUnreached, 6);
  EXPECT_EQ(fit.pattern.length(), 16);
  for (size_t i = 10; i < 16; ++i) {
    EXPECT_EQ(fit.pattern.a[i], fit.pattern.a[9]);
    EXPECT_EQ(fit.pattern.r[i], fit.pattern.r[9]);
  }
}

// exp(-d / 4): the tail beyond W keys holds about exp(-W / 4); 2^-11 = exp(-7.62)
// is passed at 31 keys.
TEST(Pattern, LeavesOutNegligibleMass) {
  Pattern pattern{std::vector<float>(200), {}, kNoWindow};
  for (int d = 0; d < 200; ++d)
    pattern.r.push_back(-0.25F * static_cast<float>(std::min(d, 160)));
  EXPECT_EQ(effectiveWindow(pattern, std::pow(2, -11)), 31);
  EXPECT_EQ(effectiveWindow(pattern, 0), kNoWindow);
  Pattern flat{std::vector<float>(50), std::vector<float>(50), kNoWindow};
  EXPECT_EQ(effectiveWindow(flat, std::pow(2, -11)), kNoWindow);
}

// exp(-d / 10) over 512 places: beyond W a long row has exp(-W / 10) of its mass, and
// 10 ln 2048 = 76.2, so W = 77 with no first places: each would cost a block of 64 keys.
// A pattern whose first four places weigh e^12 times as much reaches them from everywhere:
// no window, but 64 first places beside one.
TEST(Pattern, LeavesOutTheMiddle) {
  const double share = std::pow(2, -11);
  Pattern decaying{std::vector<float>(512), {}, kNoWindow};
  for (int d = 0; d < 512; ++d)
    decaying.r.push_back(-0.1F * static_cast<float>(d < 400 ? d : 400));
  PatternCut cut = cutMiddle(decaying, share);
  EXPECT_EQ(cut.window, 77);
  EXPECT_EQ(cut.firstPlaces, 0);
  EXPECT_EQ(cut.window, effectiveWindow(decaying, share));
  Pattern sinks = decaying;
  for (size_t j = 4; j < sinks.a.size(); ++j)
    sinks.a[j] = -12;
  for (float &r : sinks.r)
    r = std::max(r, -10.0F);
  EXPECT_EQ(effectiveWindow(sinks, share), kNoWindow);
  cut = cutMiddle(sinks, share);
  EXPECT_EQ(cut.firstPlaces, 64);
  EXPECT_LT(cut.window, 200);
  EXPECT_EQ(cutMiddle(sinks, 0).window, kNoWindow);
  sinks.window = 300; // has a window: that is cut, and no first places
  EXPECT_EQ(cutMiddle(sinks, share).firstPlaces, 0);
}

/// Mass of row `row` of `whole` that `cut` leaves out.
double leftOut(const Pattern &whole, const PatternCut &cut, int64_t row) {
  const std::vector<double> values = patternRow(whole, row);
  double sum = 0;
  for (int64_t j = 0; j <= row; ++j)
    if (row - j >= cut.window && j >= cut.firstPlaces)
      sum += values[static_cast<size_t>(j)];
  return sum;
}

// All pairs of first places and window, tried one by one. Catches: a window too small for
// some row, a larger one than is needed, pairs counted of one row, the first of several
// choices that is no better.
TEST(Pattern, TheCutOfTheMiddleIsTheSmallest) {
  const int64_t length = 260;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (double share : {0.001, 0.02, 0.2}) {
    Pattern whole{{}, {}, kNoWindow};
    for (int64_t i = 0; i < length; ++i) {
      whole.a.push_back(-3 - 2 * uniform(random) * uniform(random) + (i < 70 ? 2.5F : 0));
      whole.r.push_back(std::max(-0.05F * static_cast<float>(i), -2.5F) + uniform(random) / 2);
    }
    const PatternCut found = cutMiddle(whole, share);
    int64_t best = length * (length + 1) / 2;
    PatternCut wanted;
    for (int64_t first = 0; first < length; first += kPlacesGrain)
      for (int64_t window = 1; window <= length; ++window) {
        const PatternCut cut{window, first};
        bool fits = true;
        int64_t pairs = 0;
        for (int64_t row = 0; row < length && fits; ++row) {
          fits = leftOut(whole, cut, row) <= share * (1 + 1e-12);
          for (int64_t j = 0; j <= row; ++j)
            pairs += row - j < window || j < first ? 1 : 0;
        }
        if (fits && pairs < best)
          best = pairs, wanted = cut;
      }
    EXPECT_EQ(found.window, wanted.window) << share;
    EXPECT_EQ(found.firstPlaces, wanted.firstPlaces) << share;
    EXPECT_EQ(keptPairs(length, found), best) << share;
    Pattern kept = whole;
    kept.window = found.window, kept.firstPlaces = found.firstPlaces;
    const std::vector<double> logSums = patternLogSums(kept), all = patternLogSums(whole);
    for (int64_t row = 0; row < length; row += 7) {
      const std::vector<double> values = patternRow(kept, row);
      EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0), 1, 1e-12);
      EXPECT_NEAR(std::exp(logSums[static_cast<size_t>(row)] - all[static_cast<size_t>(row)]),
                  1 - leftOut(whole, found, row), 1e-12);
    }
  }
}

} // namespace
} // namespace weft::rt
