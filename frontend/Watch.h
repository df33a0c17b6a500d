//===- Watch.h - What a recipe's `watch` looks at ---------------*- C++ -*-===//
#pragma once

#include "frontend/Model.h"
#include "runtime/Recipe.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weft::lang {

/// One call of `watch = sigmoid(gate), stable_rank(matrices)`.
struct WatchItem {
  std::string text;               // sigmoid(gate)
  std::string function;           // sigmoid | mean | norm | stable_rank
  std::vector<std::string> paths; // parameters, in order of the unrolled text
};

/// The calls of `recipe` with their parameters: those of a set (`matrices`,
/// `kernels`, `all`), those called NAME (`gate`: block.0.attn.gate, ...), or those
/// that an address covers. stable_rank takes matrices alone. A call may find none.
std::vector<WatchItem> watchItems(const rt::Recipe &recipe, const Model &model);

/// By path, how many axes of a matrix, from the left, are its rows: those that
/// the product which reads it sums, or those it keeps when it sums the last
/// ones. `wo : [heads, head, dim]` has 2, `wq : [dim, heads, head]` has 1.
std::map<std::string, int64_t> matrixRowAxes(const Model &model);

} // namespace weft::lang
