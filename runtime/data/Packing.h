//===- Packing.h - Which tokens stand in which row --------------*- C++ -*-===//
#pragma once

#include "runtime/Recipe.h"
#include "runtime/data/TokenStream.h"

#include <cstdint>
#include <span>
#include <vector>

namespace weft::rt {

/// `length` inputs from stream index `begin`; the targets are one further.
struct Piece {
  int64_t begin = 0, length = 0;
};

/// Rows of at most `positions` inputs.
class Packing {
public:
  explicit Packing(int64_t positions) : width(positions) {}

  int64_t positions() const { return width; }
  int64_t rows() const { return static_cast<int64_t>(ends.size()); }
  std::span<const Piece> row(int64_t row) const {
    int64_t begin = row == 0 ? 0 : ends[row - 1];
    return std::span(pieces).subspan(begin, ends[row] - begin);
  }
  /// Inputs of the documents that `long = drop` left out.
  int64_t dropped() const { return left; }
  void drop(int64_t inputs) { left += inputs; }
  /// Inputs, which is targets, of rows [0, rows).
  int64_t inputs(int64_t rows) const;

  /// Appends to the last row, or opens a row.
  void add(Piece piece, bool opensRow);
  void dropLastRow();

private:
  int64_t width, left = 0;
  std::vector<Piece> pieces;
  std::vector<int64_t> ends; // of each row's pieces
};

/// Rows for training (`long = drop` is followed; of joined rows the last short
/// one is left out) or for evaluation (every target once, in order of rows).
Packing pack(const TokenStream &stream, const Recipe &recipe, bool training);

} // namespace weft::rt
