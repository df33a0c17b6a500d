//===- LowerHarness.h - Texts of tile kernels to PTX and reports -*- C++ -*-===//
#pragma once

#include "passes/Tile/GpuTarget.h"
#include "passes/Tile/Ptxas.h"

#include <string>

namespace weft::testing {

/// The text of Inputs/NAME.mlir.
std::string inputText(const std::string &name);

/// PTX of the kernel in `text`, or "error: " and the first diagnostic.
std::string ptxOf(const std::string &text, const GpuTarget &target = {});

/// Times `pattern` (literal) stands in `text`.
int count(const std::string &text, const std::string &pattern);

} // namespace weft::testing
