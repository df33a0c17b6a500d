//===- PatternStatistics.h - How a head attends in calibration --*- C++ -*-===//
//
// What calibration measures of one head over N documents, by blocks of rows:
// memory is documents x 32 x T, never T x T. Sums of squares are taken about
// the mean of their own block (two passes over it), so they are never negative.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/Pattern.h"

#include <functional>

namespace weft::rt {

/// A document as one head sees it: q and k as they enter the product, row i at
/// q + i * queryStride.
struct HeadDocument {
  const float *q = nullptr, *k = nullptr;
  int64_t queryStride = 0, keyStride = 0; // elements
  int64_t length = 0;                     // rows
  const float *v = nullptr;               // of meanOutputs alone
  int64_t valueStride = 0;
};

struct HeadInput {
  std::vector<HeadDocument> documents;
  int64_t channels = 0;
  double scale = 1; // of the scores
  int64_t window = kNoWindow;
  int64_t length = 0; // T of the pattern; no document is longer
};

/// With A_x the attention of document x, M their mean at a row, and R the number
/// of rows of all documents:
///
///   score     = 1/R sum_x sum_i ||A_x[i] - M[i]||^2   (SAF appendix B.1, per row)
///   forwardKl = 1/R sum_x sum_i KL(A_x[i] || M[i])
///   entropy   = mean of the row's entropy / log(its keys), rows with one key: 0
///   recent, first = mean mass on the newest 64 keys, on the document's first key
///   mean, sharp = moments of M, and of the softmax of the mean scores
struct HeadStatistics {
  PatternMoments mean, sharp;
  double score = 0, forwardKl = 0, entropy = 0, recent = 0, first = 0;
};
HeadStatistics headStatistics(const HeadInput &input);

/// What the head would give by its mean: for each document, M[i] v_x of its rows,
/// [length, channels].
std::vector<std::vector<float>> meanOutputs(const HeadInput &input, int64_t channels);

/// Distances of A_x to a pattern, means over all rows: ||A - P||^2, KL(A || P),
/// squared Hellinger 1 - sum sqrt(A P), total variation 1/2 sum |A - P|
/// (SAF Table 4).
struct PatternDistances {
  double frobenius = 0, kl = 0, hellinger = 0, variation = 0;
};
/// `rowOf` gives a row's entries of its newest keys, as patternRow does; none: 0.
PatternDistances distancesTo(const HeadInput &input,
                             const std::function<std::vector<double>(int64_t)> &rowOf);
PatternDistances distancesTo(const HeadInput &input, const Pattern &pattern);

} // namespace weft::rt
