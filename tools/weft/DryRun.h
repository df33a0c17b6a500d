//===- DryRun.h - What a run would take --------------------------*- C++ -*-===//
#pragma once

#include "tools/weft/Session.h"

namespace weft {

/// Prints FLOPs of a step, the largest buffers, and how long `steps` steps take by the
/// clock of one step on drawn tokens, run after one that is not counted. Evaluation,
/// saving and what plans do at their steps are not in it. Nothing is kept.
absl::Status printDryRun(const Program &program, rt::Machine &machine, const PipelineOptions &options,
                         const rt::Recipe &recipe, int64_t steps);

/// `3.2 ms`, `41.0 s`, `12 min`, `3.5 h`, `6.2 days`.
std::string durationText(double seconds);

} // namespace weft
