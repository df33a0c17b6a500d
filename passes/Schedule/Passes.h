//===- Passes.h - From kernels to a schedule ---------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Schedule/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Schedule/Passes.h.inc"
} // namespace weft
