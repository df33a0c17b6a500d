//===- WholePattern.h - Patterns with a number a pair -----------*- C++ -*-===//
//
// The dense controls of SAF (appendix C.2): P[i, j] is stored for every pair of
// places of a document, T x T numbers a head. Sampled ones are drawn once, when
// the head is frozen, and kept. Numbers are those of bfloat16, so that every
// machine mixes by the same pattern whatever it stores.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/PatternStatistics.h"

#include <string>

namespace weft::rt {

/// The longest row that whole patterns are made for: 8 MiB a head in bfloat16.
constexpr int64_t kMostWholePlaces = 2048;

/// p[i T + j]; 0 for j > i and j <= i - window. A row sums to 1, but for the
/// rounding of its entries (2^-9 of each).
struct WholePattern {
  std::vector<float> p;
  int64_t length = 0; // T
  int64_t window = kNoWindow;

  /// Entries of keys max(0, row - window + 1) .. row.
  std::vector<double> row(int64_t row) const;
  /// Makes `values` the entries of the row's newest keys, scaled to sum 1.
  void setRow(int64_t row, std::span<const double> values);
};

/// How rows are made from the rows A_x[i] of the N documents that reach row i, n
/// its keys, M their mean and V their (population) variance, entry by entry:
///
///   mean       M[i]
///   sharp      softmax of the mean scores
///   resample   A_x[i] of one document, each alike
///   gaussian   max(0, M[i, j] + sqrt(V[i, j]) z), z standard normal, over its sum
///   dirichlet  a draw of Dir(concentration n M[i])
///
/// Numbers are those of Philox streams (seed, stream/...), by place of the pair.
struct PatternMaking {
  std::string kind;
  double concentration = 0; // of dirichlet
  uint64_t seed = 0;
  std::string stream;
};

/// Rows that no document reaches are those of `fit`.
WholePattern wholePattern(const HeadInput &input, const PatternMaking &making, const Pattern &fit);

/// The same pattern, every pair written out.
WholePattern wholePattern(const Pattern &pattern);

/// `pattern` behind `window`: what is cut off goes to the rest of its row in proportion.
WholePattern cutTo(WholePattern pattern, int64_t window);

} // namespace weft::rt
