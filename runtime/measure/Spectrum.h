//===- Spectrum.h - Singular values and ranks of a matrix -------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::rt {

/// A matrix [rows, columns], row-major; `values` holds rows x columns numbers.
struct MatrixView {
  std::span<const double> values;
  int64_t rows = 0, columns = 0;
};

/// All min(rows, columns) singular values, largest first: roots of the
/// eigenvalues of the smaller Gram matrix (Householder to tridiagonal form, then
/// implicit QL), in float64. Those below 1e-8 of the largest are noise.
std::vector<double> singularValues(const MatrixView &matrix);

/// The largest singular value by 50 power iterations on the Gram matrix.
double spectralNorm(const MatrixView &matrix);

/// ||W||_F^2 / ||W||_2^2, from 1 to min(rows, columns) (SAN, "Mechanism"). 0 for a zero matrix.
double stableRank(const MatrixView &matrix);

/// exp of the entropy of s_i / sum s, from 1 to their number. 0 when all are 0.
double effectiveRank(std::span<const double> singular);

} // namespace weft::rt
