// Whole patterns against NumPy's attention of the same documents
// (test/numpy/pattern_fit.py); samplers against the moments that arithmetic gives.
#include "runtime/control/WholePattern.h"

#include "test/runtime/control/numpy-check.h"

#include "runtime/core/Philox.h"

#include <cmath>
#include <cstring>
#include <set>

namespace weft::rt {
namespace {

constexpr int64_t kChannels = 5;
constexpr double kHalf = 1.0 / 256; // twice the rounding of a bfloat16, as a share

/// Documents of normal numbers, and what NumPy makes of them.
struct Calibration {
  explicit Calibration(std::vector<int64_t> lengths, int64_t length, int64_t window = kNoWindow,
                       double scale = 0.7) {
    input.channels = kChannels;
    input.scale = scale;
    input.window = window;
    input.length = length;
    Json documents = Json::array();
    for (int64_t rows : lengths) {
      Json document;
      for (const char *name : {"q", "k"}) {
        const Philox philox(7, name + std::to_string(kept.size()));
        std::vector<float> values(static_cast<size_t>(rows * kChannels));
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>(philox.normal(i));
        Json list = Json::array();
        for (int64_t i = 0; i < rows; ++i)
          list.push_back(
              std::vector<float>(values.begin() + i * kChannels, values.begin() + (i + 1) * kChannels));
        document[name] = list;
        kept.push_back(std::move(values));
      }
      documents.push_back(document);
    }
    for (size_t x = 0; x < lengths.size(); ++x)
      input.documents.push_back(
          {kept[2 * x].data(), kept[2 * x + 1].data(), kChannels, kChannels, lengths[x]});
    wanted = test::numpyAnswer("pattern_fit.py", {{"kind", "rows"},
                                                  {"documents", documents},
                                                  {"scale", scale},
                                                  {"window", std::min(window, length)},
                                                  {"length", length}});
    fit = {std::vector<float>(static_cast<size_t>(length)), std::vector<float>(static_cast<size_t>(length)),
           window};
  }

  WholePattern make(const std::string &kind, double concentration = 0, uint64_t seed = 3,
                    const std::string &stream = "test") const {
    return wholePattern(input, {kind, concentration, seed, stream}, fit);
  }
  double of(const char *what, int64_t i, int64_t j) const {
    return wanted[what][static_cast<size_t>(i)][static_cast<size_t>(j)].get<double>();
  }

  HeadInput input;
  std::vector<std::vector<float>> kept;
  Json wanted;
  Pattern fit; // uniform
};

float at(const WholePattern &pattern, int64_t i, int64_t j) {
  return pattern.p[static_cast<size_t>(i * pattern.length + j)];
}

/// Rows of shares, zero outside of what a row sees, every number one of bfloat16.
void expectPattern(const WholePattern &pattern) {
  for (int64_t i = 0; i < pattern.length; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < pattern.length; ++j) {
      const float value = at(pattern, i, j);
      EXPECT_GE(value, 0);
      if (j > i || j <= i - pattern.window) {
        EXPECT_EQ(value, 0) << i << " " << j;
      }
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      EXPECT_EQ(bits & 0xffff, 0U);
      sum += static_cast<double>(value);
    }
    EXPECT_NEAR(sum, 1, kHalf) << i;
  }
}

// Mutations caught: the mean over all documents where few reach a row; the softmax of a sum of
// scores; a window one too wide; a row that no document reaches left at zero.
TEST(WholePattern, MeanAndSharpAgreeWithNumpy) {
  for (int64_t window : {kNoWindow, int64_t(9)}) {
    const Calibration given({33, 60, 1, 41}, 64, window);
    for (const char *kind : {"mean", "sharp"}) {
      const WholePattern found = given.make(kind);
      expectPattern(found);
      for (int64_t i = 0; i < 60; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          const double value = given.of(kind, i, j);
          EXPECT_NEAR(static_cast<double>(at(found, i, j)), value, value * kHalf + 1e-6);
        }
      const auto keys = static_cast<double>(std::min<int64_t>(64, window));
      EXPECT_NEAR(static_cast<double>(at(found, 63, 63)), 1 / keys, kHalf / keys); // of the fit
    }
  }
}

// Mutations caught: one document for all rows; entries of a row from several documents.
TEST(WholePattern, ResampledRowsAreRowsOfOneDocument) {
  const Calibration given({50, 50, 50, 50}, 50);
  const WholePattern found = given.make("resample");
  expectPattern(found);
  std::set<size_t> used;
  for (int64_t i = 1; i < 50; ++i) {
    std::vector<size_t> matches;
    for (size_t x = 0; x < 4; ++x) {
      bool same = true;
      for (int64_t j = 0; j <= i; ++j) {
        const double value =
            given.wanted["maps"][x][static_cast<size_t>(i)][static_cast<size_t>(j)].get<double>();
        same &= std::abs(static_cast<double>(at(found, i, j)) - value) <= value * kHalf + 1e-6;
      }
      if (same)
        matches.push_back(x);
    }
    ASSERT_EQ(matches.size(), 1U) << i;
    used.insert(matches[0]);
  }
  EXPECT_EQ(used.size(), 4U);
}

/// Mean and variance of entry (row, key) over many draws of the whole pattern.
struct Moments {
  std::vector<double> mean, variance;
};
Moments momentsOf(const Calibration &given, const std::string &kind, double concentration, int64_t row,
                  int draws) {
  Moments moments{std::vector<double>(static_cast<size_t>(row + 1)),
                  std::vector<double>(static_cast<size_t>(row + 1))};
  for (int n = 0; n < draws; ++n) {
    const WholePattern drawn = given.make(kind, concentration, 3, "draw " + std::to_string(n));
    for (size_t j = 0; j < moments.mean.size(); ++j) {
      const auto value = static_cast<double>(at(drawn, row, static_cast<int64_t>(j)));
      moments.mean[j] += value / draws;
      moments.variance[j] += value * value / draws;
    }
  }
  for (size_t j = 0; j < moments.mean.size(); ++j)
    moments.variance[j] -= moments.mean[j] * moments.mean[j];
  return moments;
}

// Dir(a): mean M, variance M (1 - M) / (sum a + 1), with sum a = concentration x keys.
// Mutations caught: the scale without the number of keys; Gamma(a + 1) without its power of U.
TEST(WholePattern, DirichletHasItsMoments) {
  const Calibration given({8, 8, 8}, 8);
  constexpr int kDraws = 20000;
  for (double concentration : {4.0, 0.05})
    for (int64_t row : {1, 7}) {
      const Moments found = momentsOf(given, "dirichlet", concentration, row, kDraws);
      for (int64_t j = 0; j <= row; ++j) {
        const double mean = given.of("mean", row, j);
        const double variance = mean * (1 - mean) / (concentration * static_cast<double>(row + 1) + 1);
        EXPECT_NEAR(found.mean[static_cast<size_t>(j)], mean, 5 * std::sqrt(variance / kDraws) + 1e-4);
        EXPECT_NEAR(found.variance[static_cast<size_t>(j)] / variance, 1, 0.08) << concentration << " " << j;
      }
    }
}

// Where nothing falls below 0, x_j = (M_j + s_j z_j) / (1 + sum s z): to second order in s the mean
// is M_j - s_j^2 + M_j S and the variance s_j^2 (1 - 2 M_j) + M_j^2 S, with S the sum of s^2.
// Mutations caught: the sample variance in place of the population's; one z for all keys.
TEST(WholePattern, GaussianHasItsMoments) {
  const Calibration given({4, 4}, 4, kNoWindow, 0.05);
  constexpr int kDraws = 20000;
  const Moments found = momentsOf(given, "gaussian", 0, 3, kDraws);
  double total = 0;
  for (int64_t j = 0; j < 4; ++j) {
    total += given.of("variance", 3, j);
    ASSERT_GT(given.of("mean", 3, j), 5 * std::sqrt(given.of("variance", 3, j)));
  }
  for (int64_t j = 0; j < 4; ++j) {
    const double mean = given.of("mean", 3, j), square = given.of("variance", 3, j);
    const double variance = square * (1 - 2 * mean) + mean * mean * total;
    EXPECT_NEAR(found.mean[static_cast<size_t>(j)], mean - square + mean * total,
                5 * std::sqrt(variance / kDraws) + 1e-4);
    EXPECT_NEAR(found.variance[static_cast<size_t>(j)] / variance, 1, 0.08) << j;
  }
}

// Large variances: what falls below 0 is 0, and a row stays one of shares.
TEST(WholePattern, GaussianIsClipped) {
  const Calibration given({40, 40, 40}, 40, kNoWindow, 3);
  const WholePattern found = given.make("gaussian");
  expectPattern(found);
  int64_t zeros = 0;
  for (int64_t j = 0; j < 40; ++j)
    zeros += at(found, 39, j) == 0;
  EXPECT_GT(zeros, 5);
}

// Mutations caught: a draw that depends on the window, on other heads or on the thread.
TEST(WholePattern, DrawsFollowSeedAndStream) {
  const Calibration given({20, 20, 20}, 20);
  for (const char *kind : {"resample", "gaussian", "dirichlet"}) {
    const std::vector<float> first = given.make(kind, 4).p;
    EXPECT_EQ(first, given.make(kind, 4).p);
    EXPECT_NE(first, given.make(kind, 4, 4).p);
    EXPECT_NE(first, given.make(kind, 4, 3, "other").p);
  }
}

// Rows of P with a = 0 and r = (0, log 2, log 3): weights 1, 2, 3 by distance 0, 1, 2.
TEST(WholePattern, WritesACompactPatternOutAndCutsIt) {
  const Pattern pattern{{0, 0, 0}, {0, std::log(2.0F), std::log(3.0F)}, kNoWindow};
  const WholePattern whole = wholePattern(pattern);
  expectPattern(whole);
  EXPECT_NEAR(static_cast<double>(at(whole, 2, 0)), 3.0 / 6, kHalf);
  EXPECT_NEAR(static_cast<double>(at(whole, 2, 1)), 2.0 / 6, kHalf);
  EXPECT_NEAR(static_cast<double>(at(whole, 1, 0)), 2.0 / 3, kHalf);
  const WholePattern cut = cutTo(whole, 2);
  expectPattern(cut);
  EXPECT_NEAR(static_cast<double>(at(cut, 2, 1)), 2.0 / 3, kHalf);
  EXPECT_EQ(cut.row(2).size(), 2U);
}

} // namespace
} // namespace weft::rt
