//===- BenchAgainst.h - Kernels' times beside earlier ones ------*- C++ -*-===//
#pragma once

#include "runtime/core/Json.h"
#include "runtime/cpu/Profile.h"

#include <set>
#include <string>

namespace weft {

/// What an earlier `weft bench --kernels --json` printed.
class EarlierTimes {
public:
  /// Errors: NotFound; DataLoss names the key that is missing or wrong.
  static absl::StatusOr<EarlierTimes> read(const std::string &path);

  /// Errors: FailedPrecondition where it timed something else than `now` describes: another
  /// model, program, number of rows, positions, micro-batches, or documents.
  absl::Status checkSame(const rt::OrderedJson &now) const;

  /// Kernels beside those of the same name; where a kernel has changed, and its hash
  /// with it, those of the same name without it are added up and compared.
  /// {"file", "before_seconds", "seconds", "kernels": [{"name", "kind", "before_seconds",
  /// "seconds", "verdict"}]}, a run's seconds, the largest difference first; the verdict is
  /// slower or faster past 3% and 0.1% of a run, same, new or gone.
  rt::OrderedJson compare(const rt::OrderedJson &times) const;

private:
  std::string path;
  rt::Json run;
};

/// What is not the same, one line each, and how the whole changed.
std::string againstText(const rt::OrderedJson &compared);

} // namespace weft
