//===- MemoryPolicies.h - What gradients find saved -------------*- C++ -*-===//
#pragma once

#include "passes/Recompute/Report.h"
#include "tools/weft/Device.h"
#include "tools/weft/PlannedMemory.h"

#include "runtime/core/Json.h"

namespace weft {

/// The policy of a machine's programs and what it came to.
struct MemoryReport {
  MemoryPolicy policy = MemoryPolicy::Fast;
  bool chosen = false; // by `auto`
  PlannedMemory planned;
  RecomputeReport values;
};

/// A module at `options.stage` under the recipe's policy (auto where there is none),
/// and its report. `auto` is the first of fast, lean and tight whose plan fits
/// `room` bytes, tight with no more products than it takes; else all of tight. Programs without gradients are as under fast and have
/// no report. Errors: as of lower, and of `room`, which is asked only by `auto`.
struct WithinMemory {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<const MemoryReport> report;
};
absl::StatusOr<WithinMemory> lowerWithin(const Program &program, PipelineOptions options,
                                         const TrailOptions &trail, mlir::MLIRContext &context,
                                         const std::function<absl::StatusOr<uint64_t>()> &room);

/// The recipe's policy where nothing is known of a device: `auto` is fast.
MemoryPolicy policyOf(const Program &program);

/// Lines: the policy, bytes saved and made again, and of each layer (equal ones
/// once) the values with their bytes, FLOPs and bytes moved.
std::string memoryText(const MemoryReport &report);
rt::OrderedJson memoryJson(const MemoryReport &report);

} // namespace weft
