//===- Rows.h - A recipe's data as rows -------------------------*- C++ -*-===//
#pragma once

#include "runtime/data/Batches.h"
#include "runtime/data/Corpus.h"

#include <optional>

namespace weft::rt {

/// What a run trains on: rows of `data.train`, or of its task. Errors: of TrainData::make.
absl::StatusOr<TrainData> trainRows(const Dataset &data, const Recipe &recipe);

/// What it is evaluated on, or nothing when nothing is held out. `rows`: of a
/// batch, as EvalData::make takes it. Errors: of EvalData::make.
absl::StatusOr<std::optional<EvalData>> heldOutRows(const Dataset &data, const Recipe &recipe,
                                                    int64_t rows = 0);

} // namespace weft::rt
