//===- Passes.h - Branches that a plan drops ---------------------*- C++ -*-===//
#pragma once

#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Drop/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Drop/Passes.h.inc"
} // namespace weft
