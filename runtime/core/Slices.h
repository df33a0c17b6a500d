//===- Slices.h - State entries that hold part of a tensor ------*- C++ -*-===//
//
// A plan that freezes or prunes heads takes their slices out of parameters
// (arXiv:2609.34650, section 3.3). An entry then has `fullShape`, and holds the
// slices `kept` of `axisCount` axes from `firstAxis` on, counted row-major; in its
// own shape they are one axis.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Executable.h"
#include "runtime/Tensor.h"

#include "absl/status/statusor.h"

namespace weft::rt {

/// The part of `full` that `entry` holds; `full` itself when it holds all.
/// Errors    FailedPrecondition  `full` has another shape than the whole of
///                               the entry, or another type
absl::StatusOr<Tensor> sliceFor(const StateEntry &entry, const Tensor &full);

/// Shape of the tensor that `entry` is a part of: its own when it holds all.
inline const std::vector<int64_t> &wholeShape(const StateEntry &entry) {
  return entry.fullShape.empty() ? entry.shape : entry.fullShape;
}

} // namespace weft::rt
