//===- Ranking.h - Whether two selections agree -----------------*- C++ -*-===//
//
// Stability of a selection (SAF, appendix B.2 and B.3): how many heads an earlier
// calibration had chosen too, and how alike both orders are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weft::rt {

/// A head of a ranking; rankings stand in rank order.
struct RankedHead {
  std::string site; // or "", where a file names the layer alone
  int64_t layer = -1, head = 0;
  bool chosen = false;
};
using Ranking = std::vector<RankedHead>;

/// The contents of a heads.json. A head that several statements ranked stands where
/// the last of them put it. Errors: NotFound; DataLoss.
absl::StatusOr<Ranking> readRanking(const std::string &path);

/// Of the n heads that both rankings hold, d_i the difference of head i's places
/// among them:
///
///   overlap   chosen in both; byChance: what random choices of as many heads a site give,
///             sum over sites of chosen now x chosen then / heads there
///   spearman  1 - 6 sum d_i^2 / (n (n^2 - 1))
///   kendall   (pairs in one order - pairs in the other) / (n (n - 1) / 2)
///
/// With fewer than two heads both correlations are 1.
struct Agreement {
  int64_t heads = 0, chosen = 0, chosenThen = 0, overlap = 0;
  double byChance = 0, spearman = 1, kendall = 1;
};
Agreement agreementOf(const Ranking &now, const Ranking &then);

} // namespace weft::rt
