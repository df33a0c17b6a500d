//===- Feed.h - A batch through a program -----------------------*- C++ -*-===//
#pragma once

#include "runtime/data/Batches.h"
#include "runtime/train/BoundProgram.h"

namespace weft::rt {

/// Sets tokens, targets and doc_start (each if the program reads it).
/// Errors: InvalidArgument with both shapes.
absl::Status setBatch(BoundProgram &program, Batch batch);

/// Sets tokens, targets and doc_start (each if the program reads it) and starts the
/// program; loss_sum is slot `slot`'s after its wait. Errors: as of runOnBatch.
absl::Status startOnBatch(BoundProgram &program, Batch batch, int32_t noise, size_t slot);

/// Sets tokens, targets and doc_start (each if the program reads it), runs, and
/// gives loss_sum. `noise` is what dropout draws with. Errors: of the program; InvalidArgument with both shapes.
absl::StatusOr<double> runOnBatch(BoundProgram &program, Batch batch, int32_t noise = 0);

} // namespace weft::rt
