//===- Pipelines.h - The order of passes -------------------------*- C++ -*-===//
#pragma once

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weft {

/// How far a module is taken.
enum class Stage {
  Rolled,   // as emitted, after the plan's drops
  Unrolled, // `weft`: one function, static sizes
  Programs, // `grad`: programs with their gradients
  Fused,    // fused regions
  Kernels,  // launches of kernels
  Schedule, // calls on planned memory
};

/// What the gradients of a program find saved (docs/decisions/0016).
enum class MemoryPolicy {
  Fast,  // all
  Lean,  // no results of elementwise and row kernels: they are made again
  Tight, // no products either, where a byte costs few operations
};

/// fast, lean, tight.
const char *policyName(MemoryPolicy policy);

struct RecomputeReport; // passes/Recompute/Report.h

struct PipelineOptions {
  int64_t batch = 1, positions = 16;
  bool float64 = false;
  std::string chip;                          // sm_90a, sm_80: schedules for that GPU; empty: the CPU
  std::vector<std::string> programs{"eval"}; // micro, update, observe, eval, prefill, decode
  int64_t cacheLength = 0;                   // of decode; 0: positions
  bool lastPosition = false;                 // of prefill: outputs of the last position alone
  MemoryPolicy memory = MemoryPolicy::Fast;  // of programs with gradients
  RecomputeReport *recompute = nullptr;      // filled with what @micro saves and makes again
  Stage stage = Stage::Schedule;
  /// Passes that a check puts in: a planted fault, for one.
  std::function<std::unique_ptr<mlir::Pass>()> afterUnroll, afterPlan;
};

/// Adds the passes up to `options.stage` in their one order.
void buildPipeline(mlir::PassManager &manager, const PipelineOptions &options);

/// Weft's passes, and the upstream ones that it uses, under their flags.
void registerWeftPasses();

} // namespace weft
