//===- FreezeSelect.h - Which heads are frozen or pruned --------*- C++ -*-===//
//
// Selectors of SAF (section 3 and appendix B.2) over what calibration measured
// of each head. A head is named by its number in the model (Plan.h), its site
// (an attend by path, `block.3.attn`) and its place among the site's query heads.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/core/Json.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::rt {

/// A head that may be chosen: addressed, not frozen, not pruned.
struct HeadCandidate {
  int64_t number = 0; // in the model; ties are broken by it
  std::string site;
  int64_t head = 0;  // in the site
  int64_t group = 0; // its key-value head in the site
  /// By word of `by`; what the selector needs must be there. `kl`: of the fit.
  std::map<std::string, double, std::less<>> scores;
  double kl = 0;
};

struct HeadSelection {
  std::string by = "variance";
  bool highest = false, perSite = false, groups = false;
  std::optional<double> share;     // of the candidates; else `count`
  int64_t count = 0;               // a site when perSite
  std::optional<double> tolerance; // nats a row
  uint64_t seed = 0;               // of random
};

struct HeadChoice {
  size_t candidate = 0; // index
  double score = 0;
  bool chosen = false;
  std::string reason; // why not: "tolerance", "gradient veto"; empty otherwise
};

struct HeadChoices {
  std::vector<HeadChoice> ranked; // in rank order
  int64_t wanted = 0, chosen = 0, passed = 0;
};

/// Ranks all candidates, lowest score first (highest: last first), ties by
/// number, and takes the first that may be taken until rint(share x candidates)
/// are. One whose kl exceeds the tolerance is passed over and the next tried.
///
///   rank_sum        rank by variance + rank by qk_gradient
///   gradient_veto   by variance; the quarter of heads highest by qk_gradient
///                   is passed over
///   random(matched) as many a site as variance takes under the same options
///
/// `groups`: heads of one key-value head have the mean of their scores and go
/// together; the number of groups is rint(heads wanted / heads a group).
HeadChoices chooseHeads(const std::vector<HeadCandidate> &candidates, const HeadSelection &selection);

/// Words of `by` whose scores `selector` needs.
std::vector<std::string> scoresNeeded(const std::string &selector);

/// The contents of heads.json, which `file(...)` of a plan reads:
/// {"heads": [{"layer", "site", "head", "score", "kl", "chosen", "reason"}, ..]}.
OrderedJson toJson(const std::vector<HeadCandidate> &candidates, const HeadChoices &choices);

/// The chosen heads of a heads.json: (site, head). A file without sites names
/// heads by layer: then site is "" and `layer` its number.
struct NamedHead {
  int64_t layer = -1;
  std::string site;
  int64_t head = 0;
};
absl::StatusOr<std::vector<NamedHead>> readHeads(const std::string &path);

/// The first number in a site's path, or -1: block.3.attn -> 3.
int64_t layerOf(const std::string &site);

} // namespace weft::rt
