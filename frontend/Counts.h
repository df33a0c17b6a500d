//===- Counts.h - Parameters and FLOPs of parts of a model ------*- C++ -*-===//
//
// Counts without IR, for editors: the products of a forward of one row, where a
// multiply-add counts two. `a @ b` costs 2 prod(sizes of all its axes); attend
// costs 2 pairs (channels of q + channels of v) a query head, where a window of
// w leaves sum over i of min(i + 1, w) pairs. `weft flops` adds up what the ops of
// the IR say (dialects/Weft/Costs.cpp) and must come to the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Model.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>

namespace weft::lang {

/// Pairs that a causal window leaves of `positions` places.
double pairsOf(int64_t positions, int64_t window);

struct Count {
  int64_t repeats = 0; // times that it stands in the unrolled model
  int64_t parameters = 0;
  double products = 0; // FLOPs of a row
};

struct ScopeCount : Count {
  Count first; // of the first repeat
  bool alike = true;
};

class ModelCounts {
public:
  /// Counts `model` for a row of `positions`.
  ModelCounts(const Model &model, int64_t positions);

  int64_t positions() const { return length; }
  /// A layer or branch by its path without indices (`block.attn`), empty for
  /// the model; null when it is not there.
  const ScopeCount *scope(const std::string &path) const;
  /// The term of that place, or null.
  const Count *term(const Place &place) const;

private:
  friend class CountingWalk;
  using TermKey = std::tuple<int32_t, int32_t, int32_t>; // file, offset, length
  std::map<std::string, ScopeCount> scopes;
  std::map<TermKey, Count> terms;
  int64_t length;
};

} // namespace weft::lang
