//===- Rows.cpp - A recipe's data as rows ----------------------------------===//
#include "runtime/data/Rows.h"

namespace weft::rt {

absl::StatusOr<TrainData> trainRows(const Dataset &data, const Recipe &recipe) {
  return data.trainTask ? TrainData::make(data.trainTask, recipe) : TrainData::make(data.train, recipe);
}

absl::StatusOr<std::optional<EvalData>> heldOutRows(const Dataset &data, const Recipe &recipe, int64_t rows) {
  if (!data.heldOutTask && !data.heldOut)
    return std::optional<EvalData>();
  absl::StatusOr<EvalData> made = data.heldOutTask ? EvalData::make(data.heldOutTask, recipe, rows)
                                                   : EvalData::make(data.heldOut, recipe, rows);
  if (!made.ok())
    return made.status();
  return std::optional<EvalData>(*std::move(made));
}

} // namespace weft::rt
