//===- Lanes.h - arith and math on one element or many -----------*- C++ -*-===//
#pragma once

#include "mlir/IR/Operation.h"

#include "absl/status/status.h"

#include <span>
#include <vector>

namespace weft::tile {

/// An operand: `numbers` of a float type, `integers` of an integer or index type; one element counts for all.
struct LanesView {
  std::span<const float> numbers;
  std::span<const int64_t> integers;
  size_t size() const { return numbers.size() + integers.size(); }
};

struct Lanes {
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  LanesView view() const { return {numbers, integers}; }
};

/// Bits of an integer or index type.
unsigned bitsOf(mlir::Type type);

/// The result of an op of arith, math or tile.exp2 with one result: as many elements as its widest operand.
/// Errors: Unimplemented for an op without meaning here.
absl::Status evaluate(mlir::Operation *op, std::span<const LanesView> operands, Lanes &result);

} // namespace weft::tile
