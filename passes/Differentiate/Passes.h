//===- Passes.h - From a forward function to programs ------------*- C++ -*-===//
//
// In the order of the pipeline: simplify, form-loss-head, form-programs,
// differentiate, form-observe, fold-accumulations, expand-polar. Passes.td says what each needs and gives.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dialects/Weft/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Differentiate/Passes.h.inc"

} // namespace weft
