//===- Gemms.h - Contractions as products of matrices -----------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "runtime/Executable.h"

#include <optional>

namespace weft {

/// The product that `op` is, when BLAS can do it as its operands are stored; its
/// factors have to be arguments 0 and 1 of the kernel it stands in.
std::optional<rt::Gemm> gemmOf(ContractOp op);

} // namespace weft
