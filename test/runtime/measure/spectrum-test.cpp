//===- spectrum-test.cpp - Singular values and ranks ------------------------===//
#include "runtime/core/Philox.h"
#include "runtime/measure/Spectrum.h"

#include <cmath>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

struct Matrix {
  int64_t rows, columns;
  std::vector<double> values;
  MatrixView view() const { return {values, rows, columns}; }
};

/// U diag(values) V^T, U and V products of plane rotations.
Matrix withSpectrum(const std::vector<double> &values, int64_t rows, int64_t columns) {
  Matrix m{rows, columns, std::vector<double>(static_cast<size_t>(rows * columns))};
  for (size_t i = 0; i < values.size(); ++i)
    m.values[i * static_cast<size_t>(columns) + i] = values[i];
  Philox philox(1, "rotate");
  uint64_t next = 0;
  auto at = [&](int64_t r, int64_t c) -> double & { return m.values[static_cast<size_t>(r * columns + c)]; };
  for (int turn = 0; turn < 400; ++turn) {
    double angle = philox.uniform(next++) * 6.28, c = std::cos(angle), s = std::sin(angle);
    auto i = static_cast<int64_t>(philox.uniform(next++) * static_cast<double>(rows)),
         j = (i + 1 + turn) % rows;
    for (int64_t k = 0; k < columns && i != j; ++k) {
      double a = at(i, k), b = at(j, k);
      at(i, k) = c * a - s * b;
      at(j, k) = s * a + c * b;
    }
    i = static_cast<int64_t>(philox.uniform(next++) * static_cast<double>(columns)),
    j = (i + 1 + turn) % columns;
    for (int64_t k = 0; k < rows && i != j; ++k) {
      double a = at(k, i), b = at(k, j);
      at(k, i) = c * a - s * b;
      at(k, j) = s * a + c * b;
    }
  }
  return m;
}

// A square root left out, or the larger Gram matrix with its extra zeros, fails.
TEST(Spectrum, ValuesComeBack) {
  const std::vector<double> values = {7, 5, 5, 2, 0.5, 1e-3};
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{6, 6}, {6, 17}, {23, 6}}) {
    std::vector<double> found = singularValues(withSpectrum(values, rows, columns).view());
    ASSERT_EQ(found.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(found[i], values[i], 1e-7) << rows << " x " << columns << ", " << i;
  }
}

TEST(Spectrum, OneRowAndZeros) {
  Matrix row{1, 3, {2, 3, 6}};
  EXPECT_DOUBLE_EQ(singularValues(row.view())[0], 7);
  EXPECT_NEAR(stableRank(row.view()), 1, 1e-12);
  Matrix zero{4, 4, std::vector<double>(16)};
  EXPECT_EQ(stableRank(zero.view()), 0);
  EXPECT_EQ(effectiveRank(singularValues(zero.view())), 0);
}

// By hand: stable rank of (2, 1, 1) is 6 / 4; the norm in place of its square gives 3.
TEST(Spectrum, RanksByHand) {
  Matrix m = withSpectrum({2, 1, 1}, 5, 9);
  EXPECT_NEAR(stableRank(m.view()), 1.5, 1e-9);
  // Shares 1/2, 1/4, 1/4: entropy 1.5 log 2.
  EXPECT_NEAR(effectiveRank(singularValues(m.view())), std::pow(2, 1.5), 1e-6);
  EXPECT_NEAR(effectiveRank(std::vector<double>(8, 3.0)), 8, 1e-12);
}

TEST(Spectrum, PowerIterationsAgreeWithTheSpectrum) {
  Philox philox(3, "matrix");
  Matrix m{64, 48, std::vector<double>(64 * 48)};
  for (size_t i = 0; i < m.values.size(); ++i)
    m.values[i] = philox.normal(i);
  std::vector<double> all = singularValues(m.view());
  EXPECT_NEAR(spectralNorm(m.view()) / all[0], 1, 2e-3);
  double squares = 0, direct = 0;
  for (double value : all)
    squares += value * value;
  for (double value : m.values)
    direct += value * value;
  EXPECT_NEAR(squares / direct, 1, 1e-12);
}

} // namespace
} // namespace weft::rt
