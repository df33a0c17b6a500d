//===- FreezeTables.h - Pattern tables as state ------------------*- C++ -*-===//
#pragma once

#include "tools/weft/Calibrate.h"

#include "runtime/control/FreezeRecord.h"

namespace weft {

/// Patterns of `heads` from a safetensors file with `pattern/SITE/a` and `/r`
/// [heads, T], whose rows are the heads of the site in `heads`, ascending (a
/// checkpoint's control.safetensors is one). Only the first `positions` places
/// are used. Errors: NotFound; InvalidArgument with both shapes.
absl::StatusOr<std::map<HeadName, rt::Pattern>>
readPatterns(const std::string &path, const std::vector<rt::NamedHead> &heads, int64_t positions);

/// Enters a frozen head in `record`, with what it sees (PatternCut, Pattern.h). Errors: FailedPrecondition when its site has
/// heads of the other kind, trained or fixed, dense or compact.
absl::Status enterFrozen(const HeadName &name, const rt::PatternCut &sees, bool isTrained, bool isDense,
                         rt::FreezeRecord &record);

/// Adds the heads to `record`, and to `given` the tables of their sites: rows of
/// heads that were frozen before are those of `trained`. Moments of trained
/// patterns start at zero. Errors: those of enterFrozen.
absl::Status addPatterns(const std::map<HeadName, rt::Pattern> &patterns, bool isTrained,
                         const rt::Machine &trained, rt::FreezeRecord &record,
                         std::map<std::string, rt::Tensor> &given);

} // namespace weft
