//===- Passes.h - What gradients find saved ----------------------*- C++ -*-===//
#pragma once

#include "passes/Recompute/Report.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Recompute/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Recompute/Passes.h.inc"

/// The pass, which also writes what it finds in @micro to `report` (null: nowhere).
std::unique_ptr<mlir::Pass> createRecomputePass(const std::string &policy, RecomputeReport *report);

} // namespace weft
