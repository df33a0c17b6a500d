//===- WholePatterns.h - Whole patterns as state -----------------*- C++ -*-===//
#pragma once

#include "tools/weft/Calibrate.h"

#include "runtime/control/FreezeRecord.h"
#include "runtime/control/WholePattern.h"

namespace weft {

/// Patterns of `heads` from a safetensors file with `pattern/SITE/p` [heads, T, T],
/// whose first axis is the heads of the site in `heads`, ascending. Only the first
/// `positions` places are used; rows are scaled to sum 1. Errors: NotFound;
/// InvalidArgument with both shapes, or the entry that is not a share.
absl::StatusOr<std::map<HeadName, rt::WholePattern>>
readWholePatterns(const std::string &path, const std::vector<rt::NamedHead> &heads, int64_t positions);

/// Patterns of the heads of `fits` as `rule` says, from a second pass over the
/// calibration rows; rows that no document reaches are those of the fits.
absl::StatusOr<std::map<HeadName, rt::WholePattern>>
makeWholePatterns(Calibrator &calibrator, const lang::FreezeRule &rule, uint64_t seed,
                  const std::map<HeadName, rt::Pattern> &fits);

/// Adds the heads to `record`, and to `given` the tables of their sites: squares
/// of heads that were frozen before are those of `trained`. Errors: those of
/// enterFrozen (FreezeTables.h).
absl::Status addWholePatterns(const std::map<HeadName, rt::WholePattern> &patterns,
                              const rt::Machine &trained, rt::FreezeRecord &record,
                              std::map<std::string, rt::Tensor> &given);

} // namespace weft
