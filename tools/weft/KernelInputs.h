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

/// What a kernel would see that takes the document of the last 64 of 192 queries from the first of them:
/// documents that begin inside them begin behind them. Whether there is one.
bool hideDocuments(KernelOp kernel, llvm::MutableArrayRef<Array> arrays);

} // namespace weft
