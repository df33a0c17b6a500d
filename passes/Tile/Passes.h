//===- Passes.h - From tiles to the LLVM dialect -----------------*- C++ -*-===//
#pragma once

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace weft {
#define GEN_PASS_DECL
#include "passes/Tile/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Tile/Passes.h.inc"
} // namespace weft
