//===- LineDiff.h - What changed between two lists of lines ------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::inspect {

/// One step of a change: `keep` lines stay, then `drop` lines leave, then `add` come.
struct Edit {
  int32_t keep = 0, drop = 0;
  std::vector<int32_t> add;
};

/// Edits that make `to` of `from`; lines are numbers, equal ones the same line. What is
/// left over after the last edit stays. Lines that stand once on both sides are matched
/// first (patience), then the rest by a shortest edit script (Myers, 1986); a stretch
/// that differs in more than kMostEdits lines and has no line of the first kind is
/// replaced whole. Time O(n log n) plus n x kMostEdits.
std::vector<Edit> diffLines(std::span<const int32_t> from, std::span<const int32_t> to);

constexpr int32_t kMostEdits = 2000;

/// `from` after `edits`.
std::vector<int32_t> applyEdits(std::span<const int32_t> from, const std::vector<Edit> &edits);

} // namespace weft::inspect
