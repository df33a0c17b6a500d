//===- Resume.h - Plans of a run that goes on --------------------*- C++ -*-===//
#pragma once

#include "tools/weft/Session.h"

namespace weft {

/// Compares the plans of `now`, the text of run.weft, with those that the newest
/// checkpoint of `run` was trained with. Statements may be added; a `freeze` or
/// `prune` that had not begun may be another. Returns lines that say what changed.
/// Errors: FailedPrecondition names the plan and its statement: what a run has
/// used can be neither taken away nor rewritten.
absl::StatusOr<std::vector<std::string>> checkResumedPlans(const Program &now, const std::string &run);

} // namespace weft
