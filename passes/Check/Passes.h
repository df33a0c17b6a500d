//===- Passes.h - What the next stage may assume, as code --------*- C++ -*-===//
#pragma once

#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Check/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Check/Passes.h.inc"
} // namespace weft
