//===- ExecutableCheck.h - Is an executable safe to load? -------*- C++ -*-===//
#pragma once

#include "runtime/Executable.h"

#include <optional>

namespace weft::rt {

/// Bytes of a dense tensor, or nothing when a size is negative or the product
/// does not fit 63 bits.
std::optional<uint64_t> denseBytes(ElementType type, const std::vector<int64_t> &shape);

/// Bytes of operands A, B, C (0, 1, 2) that `gemm` touches from their start, or
/// nothing when a size, row length or stride is out of range.
std::optional<uint64_t> gemmOperandBytes(const Gemm &gemm, int operand);

/// Whether every index and offset of `executable` stays inside what it points
/// into: states in the state space, operands in their space or port, kernels
/// and ports by number, products inside their operands. Kernel code is not
/// looked at. Errors: InvalidArgument names the field.
absl::Status checkExecutable(const Executable &executable);

} // namespace weft::rt
