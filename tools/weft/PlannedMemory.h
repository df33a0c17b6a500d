//===- PlannedMemory.h - What programs will hold ----------------*- C++ -*-===//
#pragma once

#include "tools/weft/Session.h"

namespace weft {

/// Bytes by plan, known before anything is compiled or allocated.
struct PlannedMemory {
  uint64_t state = 0, arena = 0;
  uint64_t ports = 0;     // inputs and results of the largest program
  uint64_t workspace = 0; // of a GPU's products
  uint64_t sum() const { return state + arena + ports + workspace; }
};

/// Of a module at Stage::Schedule.
PlannedMemory plannedMemory(mlir::ModuleOp module, bool gpu);

/// Takes `program` through the pipeline up to planned memory. Errors: as of lower.
absl::StatusOr<PlannedMemory> plannedMemory(const Program &program, PipelineOptions options);

} // namespace weft
