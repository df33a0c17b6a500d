//===- Costs.h - What parts of a model cost ---------------------*- C++ -*-===//
#pragma once

#include "dialects/Weft/Weft.h"
#include "passes/Unroll/Scope.h"

#include "absl/status/statusor.h"

#include <string>

namespace weft {

/// Costs of the ops in `body`, fused regions entered.
Cost costOf(mlir::Region &body);

/// `block[3].attn` for `block.3.attn`.
std::string addressOf(llvm::StringRef path);

/// The outermost layer around a scope, `block[3]` for `block.3.attn`; empty
/// outside layers.
std::string layerOf(llvm::StringRef scope);

/// What people call the op: its name, or the function of a unary or binary op.
std::string kindOf(mlir::Operation *op);

struct Program;
struct PipelineOptions;

/// FLOPs of a training step of the recipe: all micro-batches and the optimiser.
absl::StatusOr<double> stepFlops(const Program &program, const PipelineOptions &options);

/// Whether the file's own model has a recipe (a file that can't be read has none).
bool hasRecipe(const std::string &path); // FILE.weft or FILE.weft:MODEL

} // namespace weft
