//===- Passes.h - From rolled to unrolled ------------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Unroll/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Unroll/Passes.h.inc"
} // namespace weft
