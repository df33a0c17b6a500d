//===- Passes.h - Frozen and pruned heads ------------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Freeze/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Freeze/Passes.h.inc"
} // namespace weft
