//===- CalibrationSplit.h - Rows that are never trained on ------*- C++ -*-===//
//
// Calibration of frozen heads has a split of its own (SAF, "Data"): the end of
// the training text, 0.5% of it or what its rows need. It is cut off before
// training starts and reported nowhere. A budget has a second one before it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Batches.h"

namespace weft::rt {

struct CalibrationSplit {
  std::shared_ptr<const TokenStream> train; // what is left
  std::shared_ptr<const EvalData> rows;     // one row a batch
  std::shared_ptr<const EvalData> budget;   // in batches of a step; null when not asked for
};

/// Cuts the split of `wanted` rows of recipe.positions off `train`. With 200
/// documents or more it begins where a document does. It takes at most half of
/// the text. Errors: InvalidArgument with the rows asked for and those there are.
absl::StatusOr<CalibrationSplit> splitCalibration(const std::shared_ptr<const TokenStream> &train,
                                                  const Recipe &recipe, int64_t wanted, bool budget);

} // namespace weft::rt
