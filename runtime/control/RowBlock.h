//===- RowBlock.h - Rows of attention of all documents ----------*- C++ -*-===//
//
// The inside of what walks a head's attention row by row (PatternStatistics,
// WholePattern): scores of a block of rows at a time, softmax of one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/PatternStatistics.h"

#include <algorithm>

namespace weft::rt {

/// Scores of the documents that reach a block of rows; keys [firstKey, end).
class RowBlock {
public:
  static constexpr int64_t kRows = 32; // at a time

  explicit RowBlock(const HeadInput &input);

  void load(int64_t row);

  int64_t firstOf(int64_t row) const { return std::max<int64_t>(0, row - input.window + 1); }

  /// Keys firstOf(row) .. row of document x.
  std::span<float> rowOf(size_t x, int64_t row) {
    const int64_t first = firstOf(row);
    return {scores.data() + (static_cast<int64_t>(x) * kRows + row - begin) * stride + first - firstKey,
            static_cast<size_t>(row - first + 1)};
  }

  /// The documents that have row `row`.
  std::vector<size_t> reaching(int64_t row) const;

private:
  const HeadInput &input;
  std::vector<float> scores;
  int64_t stride = 0, begin = 0, firstKey = 0;
};

/// Softmax in place; gives the entropy of the result in nats.
double softmax(std::span<float> row);

/// Rows of the longest document, at most T.
int64_t longestOf(const HeadInput &input);

/// Calls visit(row, documents that reach it) for each row, with its scores loaded.
template <typename Visit> void overRows(const HeadInput &input, RowBlock &block, Visit &&visit) {
  const int64_t longest = longestOf(input);
  for (int64_t row = 0; row < longest; ++row) {
    if (row % RowBlock::kRows == 0)
      block.load(row);
    visit(row, block.reaching(row));
  }
}

} // namespace weft::rt
