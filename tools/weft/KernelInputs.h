//===- KernelInputs.h - What a kernel is tried on ---------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Interpret/Interpret.h"

#include <cstdint>

namespace weft {

/// One array an argument, drawn from `seed`: floats are normal numbers, rounded
/// to what the argument stores; indices lie in what they index; windows are 1 to
/// beyond the positions; documents are of uneven lengths, one token too;
/// moments are not negative; log-sums bound the probabilities that kernels make
/// of them. With `whole`, windows have no bound, each row is one document and
/// large arrays repeat their first numbers.
llvm::SmallVector<Array> kernelInputs(KernelOp kernel, uint64_t seed, bool whole = false);

} // namespace weft
