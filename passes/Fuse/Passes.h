//===- Passes.h - From ops to kernels ----------------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Fuse/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Fuse/Passes.h.inc"
} // namespace weft
