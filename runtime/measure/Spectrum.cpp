//===- Spectrum.cpp - Singular values and ranks of a matrix ----------------===//
#include "runtime/measure/Spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::rt {
namespace {

/// W W^T or W^T W, whichever is smaller, [size, size].
std::vector<double> gram(const MatrixView &matrix, int64_t &size) {
  const bool wide = matrix.rows <= matrix.columns;
  size = wide ? matrix.rows : matrix.columns;
  const auto n = static_cast<size_t>(size), columns = static_cast<size_t>(matrix.columns);
  std::vector<double> result(n * n);
  if (wide) {
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j) {
        const double *a = &matrix.values[i * columns], *b = &matrix.values[j * columns];
        double sum = 0;
        for (size_t c = 0; c < columns; ++c)
          sum += a[c] * b[c];
        result[i * n + j] = result[j * n + i] = sum;
      }
    return result;
  }
  for (size_t r = 0; r < static_cast<size_t>(matrix.rows); ++r) {
    const double *row = &matrix.values[r * columns];
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        result[i * n + j] += row[i] * row[j];
  }
  return result;
}

/// Householder reflections from the last row up: `a` becomes tridiagonal, with
/// `diagonal` and, from index 1 on, `below` the diagonal.
void tridiagonalise(std::vector<double> &a, size_t n, std::vector<double> &diagonal,
                    std::vector<double> &below) {
  std::vector<double> v(n), p(n);
  for (size_t k = n; k-- > 2;) {
    // Reflect a[k][0..k-1] onto its last element.
    double norm = 0;
    for (size_t j = 0; j < k; ++j)
      norm += a[k * n + j] * a[k * n + j];
    norm = std::sqrt(norm);
    if (norm == 0)
      continue;
    const double alpha = a[k * n + k - 1] > 0 ? -norm : norm;
    for (size_t j = 0; j < k; ++j)
      v[j] = a[k * n + j];
    v[k - 1] -= alpha;
    double half = 0; // |v|^2 / 2
    for (size_t j = 0; j < k; ++j)
      half += v[j] * v[j] / 2;
    double vp = 0;
    for (size_t i = 0; i < k; ++i) {
      double sum = 0;
      for (size_t j = 0; j < k; ++j)
        sum += a[i * n + j] * v[j];
      p[i] = sum / half;
      vp += p[i] * v[i];
    }
    for (size_t i = 0; i < k; ++i)
      p[i] -= vp / (2 * half) * v[i];
    for (size_t i = 0; i < k; ++i)
      for (size_t j = 0; j < k; ++j)
        a[i * n + j] -= v[i] * p[j] + p[i] * v[j];
    std::fill_n(&a[k * n], k, 0.0);
    a[k * n + k - 1] = alpha;
  }
  for (size_t i = 0; i < n; ++i) {
    diagonal[i] = a[i * n + i];
    below[i] = i == 0 ? 0 : a[i * n + i - 1];
  }
}

/// One implicit QL step with Wilkinson's shift on the block [l, m]; e[i] couples i and i + 1.
void chase(std::vector<double> &d, std::vector<double> &e, size_t l, size_t m) {
  double g = (d[l + 1] - d[l]) / (2 * e[l]), r = std::hypot(g, 1.0);
  g = d[m] - d[l] + e[l] / (g + std::copysign(r, g));
  double s = 1, c = 1, p = 0;
  for (size_t i = m; i-- > l;) {
    double f = s * e[i], b = c * e[i];
    r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) { // the block splits here
      d[i + 1] -= p;
      e[m] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
}

/// Eigenvalues of a symmetric tridiagonal matrix, in `d`.
void diagonalise(std::vector<double> &d, std::vector<double> e) {
  const size_t n = d.size();
  for (size_t i = 1; i < n; ++i)
    e[i - 1] = e[i];
  if (n > 0)
    e[n - 1] = 0;
  constexpr double kEps = std::numeric_limits<double>::epsilon();
  for (size_t l = 0; l < n; ++l)
    for (int turn = 0; turn < 100; ++turn) {
      size_t m = l;
      while (m + 1 < n && std::abs(e[m]) > kEps * (std::abs(d[m]) + std::abs(d[m + 1])))
        ++m;
      if (m == l)
        break;
      chase(d, e, l, m);
    }
}

double squares(std::span<const double> values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return sum;
}

} // namespace

std::vector<double> singularValues(const MatrixView &matrix) {
  int64_t size = 0;
  std::vector<double> a = gram(matrix, size);
  const auto n = static_cast<size_t>(size);
  std::vector<double> diagonal(n), below(n);
  tridiagonalise(a, n, diagonal, below);
  diagonalise(diagonal, std::move(below));
  for (double &value : diagonal)
    value = std::sqrt(std::max(value, 0.0));
  std::ranges::sort(diagonal, std::greater<>());
  return diagonal;
}

double spectralNorm(const MatrixView &matrix) {
  const auto rows = static_cast<size_t>(matrix.rows), columns = static_cast<size_t>(matrix.columns);
  std::vector<double> x(columns), y(rows);
  // A start that no matrix of interest is orthogonal to, the same each time.
  for (size_t c = 0; c < columns; ++c)
    x[c] = 1 + 0.5 * std::sin(static_cast<double>(c * c + 1));
  double norm = 0;
  for (int turn = 0; turn < 50; ++turn) {
    const double length = std::sqrt(squares(x));
    if (length == 0)
      return 0;
    for (double &value : x)
      value /= length;
    for (size_t r = 0; r < rows; ++r) {
      y[r] = 0;
      for (size_t c = 0; c < columns; ++c)
        y[r] += matrix.values[r * columns + c] * x[c];
    }
    norm = std::sqrt(squares(y));
    std::ranges::fill(x, 0.0);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        x[c] += matrix.values[r * columns + c] * y[r];
  }
  return norm;
}

double stableRank(const MatrixView &matrix) {
  const double norm = spectralNorm(matrix);
  return norm == 0 ? 0 : squares(matrix.values) / (norm * norm);
}

double effectiveRank(std::span<const double> singular) {
  double sum = 0, entropy = 0;
  for (double value : singular)
    sum += value;
  if (sum == 0)
    return 0;
  for (double value : singular)
    if (double share = value / sum; share > 0)
      entropy -= share * std::log(share);
  return std::exp(entropy);
}

} // namespace weft::rt
