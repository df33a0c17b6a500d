//===- Pattern.h - A fixed pattern of a frozen head -------------*- C++ -*-===//
//
// A pattern is two tables (SAF, "Compact fit"):
//
//   P[i, j] = exp(a[j] + r[i - j]) / Z[i],  j <= i, and i - j < W or j < F
//
// where F, the first places that stay in sight, is 0 but for a pattern whose
// middle was cut (cutMiddle). i and j count from the start of the document, so that a row of several
// documents uses prefixes of one table. (a + c j + u, r + c d + w) is the same
// pattern for any c, u, w: what is compared is P, never a or r.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace weft::rt {

/// A window without a bound, as in `control/windows/SITE`.
constexpr int64_t kNoWindow = std::numeric_limits<int32_t>::max();

struct Pattern {
  std::vector<float> a, r; // [T] each, -40 <= value <= 0
  int64_t window = kNoWindow;
  int64_t firstPlaces = 0; // F: a multiple of kPlacesGrain
  int64_t length() const { return static_cast<int64_t>(a.size()); }
};

/// First places that stay in sight are whole blocks of keys of the kernels' tiles.
constexpr int64_t kPlacesGrain = 64;

/// What the fit needs to know of a mean pattern M of T rows, where row i is the
/// mean of the rows[i] documents that reach it:
///
///   columns[j]   = sum_i rows[i] M[i, j]
///   diagonals[d] = sum_i rows[i] M[i, i - d]
///   information  = sum_i rows[i] sum_j M[i, j] log M[i, j]
struct PatternMoments {
  std::vector<double> rows, columns, diagonals; // [T] each
  double information = 0;
  int64_t window = kNoWindow;
  double total() const; // sum of rows
};

struct PatternFitOptions {
  int64_t rounds = 200; // at most
  double stop = 1e-4;   // largest difference of a moment, divided by the sum of rows
};

struct PatternFit {
  Pattern pattern;
  double kl = 0; // KL(M || P) in nats, mean over rows weighted by documents
  int64_t rounds = 0;
  double difference = 0;     // of the worst moment, as `stop` counts it
  int64_t rowsUnreached = 0; // rows of T that no calibration document reaches
};

/// Minimises the row-averaged KL(M || P) by alternating scaling,
///   r[d] += log(diagonals[d] of M / of P), a[j] += log(columns[j] of M / of P).
/// Each half is generalised iterative scaling with one active feature an entry,
/// so KL never rises. Rows, columns and distances that no document reaches go
/// on with the last fitted value. `start`: where to begin, or null for zeros.
/// The result has the slope of `a` taken out and max a = max r = 0, so that
/// exp(a) folded into the values has the least range; the floor is -40.
PatternFit fitPattern(const PatternMoments &moments, const PatternFitOptions &options,
                      const Pattern *start = nullptr);

/// KL(M || P) of a given pattern, as in PatternFit::kl.
double patternKl(const PatternMoments &moments, const Pattern &pattern);

/// log Z of each row of P.
std::vector<double> patternLogSums(const Pattern &pattern);

/// Row `row` of P: entries of keys max(0, row - W + 1) .. row; of all keys up to
/// `row` where first places stay in sight.
std::vector<double> patternRow(const Pattern &pattern, int64_t row);

/// The smallest window whose rows all drop at most `negligible` of their mass
/// (language.md, `negligible`); at most pattern.window. 0 keeps the window.
int64_t effectiveWindow(const Pattern &pattern, double negligible);

/// What is left of a pattern without a window when of each row at most `negligible`
/// of its mass may go (language.md, `cut = middle`): of the multiples F of
/// kPlacesGrain, each with the smallest window W for which every row drops at most
/// that beyond W and behind F, the pair that leaves the fewest pairs of places; the
/// smallest F of equal ones. F is 0 where first places save nothing, and for a
/// pattern with a window, which effectiveWindow cuts. Source: arXiv:2609.34650 has
/// the tables; leaving places out of them is Weft's own.
struct PatternCut {
  int64_t window = kNoWindow, firstPlaces = 0;
};
PatternCut cutMiddle(const Pattern &pattern, double negligible);

/// Pairs of places of `length` rows that a pattern keeps: i - j < W or j < F.
int64_t keptPairs(int64_t length, const PatternCut &cut);

} // namespace weft::rt
