//===- Initialize.h - Starting values of state entries ----------*- C++ -*-===//
#pragma once

#include "runtime/Executable.h"
#include "runtime/Tensor.h"

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace weft::rt {

/// Fills `tensor` (F32, F64 or BF16) as `rule` says, from the numbers of stream
/// "init/NAME" under `seed`, computed in double and rounded once.
///
///   Constant    x = a
///   Normal      x = a z, z standard normal number i
///   Uniform     x = a + (b - a) u, u uniform number i
///   Truncated   x = a z, z standard normal given |z| <= 2 (a is the std
///               before the cut; after it, the std is 0.8796 a)
///   Orthogonal  the tensor seen as a matrix (first axis, rest): its shorter
///               side's vectors are orthonormal, times a
///
/// i is the element's row-major number, so a value depends on the entry's own
/// name and shape and on nothing else.
///
/// Errors    InvalidArgument  the tensor is not of a float type
absl::Status initialize(Tensor &tensor, const InitRule &rule, std::string_view name, uint64_t seed);

} // namespace weft::rt
