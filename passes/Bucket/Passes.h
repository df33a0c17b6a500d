//===- Passes.h - Order of the heads of an attention ------------------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Bucket/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Bucket/Passes.h.inc"
} // namespace weft
