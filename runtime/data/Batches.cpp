//===- Batches.cpp - Rows of tokens for training and evaluation -----------===//
#include "runtime/data/Batches.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

absl::Status checkShape(const Recipe &recipe, int64_t parts) {
  if (recipe.rows < 1 || recipe.positions < 1 || recipe.microBatches < 1)
    return absl::InvalidArgumentError(absl::StrCat("recipe: batch = ", recipe.rows, " x ", recipe.positions,
                                                   " in ", recipe.microBatches,
                                                   " needs rows, positions and micro-batches of at least 1"));
  if (recipe.rows % parts != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("recipe: batch has ", recipe.rows, " rows, which ", parts,
                     " micro-batches over all ranks can't share evenly; make the "
                     "rows a multiple of ",
                     parts));
  return absl::OkStatus();
}

Batch emptyBatch(int64_t rows, int64_t positions) {
  Batch batch;
  for (Tensor *tensor : {&batch.tokens, &batch.targets, &batch.docStart})
    *tensor = Tensor(ElementType::I32, {rows, positions});
  std::ranges::fill(batch.targets.as<int32_t>(), -1);
  return batch;
}

/// Writes the pieces of a row, and what is left of it as padding.
void fillRow(Batch &batch, int64_t row, const TokenStream &stream, const Packing &packing,
             std::span<const Piece> pieces) {
  int64_t positions = packing.positions(), at = 0;
  int32_t *tokens = batch.tokens.as<int32_t>().data() + row * positions;
  int32_t *targets = batch.targets.as<int32_t>().data() + row * positions;
  int32_t *docStart = batch.docStart.as<int32_t>().data() + row * positions;
  for (const Piece &piece : pieces) {
    stream.copy(piece.begin, piece.length, tokens + at);
    stream.copy(piece.begin + 1, piece.length, targets + at);
    std::fill_n(docStart + at, piece.length, static_cast<int32_t>(at));
    at += piece.length;
  }
  batch.counted += at;
  std::fill(docStart + at, docStart + positions, static_cast<int32_t>(at));
}

void fillRow(Batch &batch, int64_t row, const Mqar &task, int64_t index) {
  const auto positions = static_cast<size_t>(batch.tokens.shape[1]),
             at = static_cast<size_t>(row) * positions;
  task.row(index, batch.tokens.as<int32_t>().subspan(at, positions),
           batch.targets.as<int32_t>().subspan(at, positions));
  batch.counted += task.options().pairs;
}

} // namespace

int64_t permuted(const Philox &philox, int64_t round, int64_t size, int64_t index) {
  int bits = std::bit_width(static_cast<uint64_t>(size - 1)), half = std::max(1, (bits + 1) / 2);
  uint64_t mask = (uint64_t{1} << half) - 1, place = static_cast<uint64_t>(index);
  do {
    uint64_t left = place >> half, right = place & mask;
    for (uint64_t turn = 0; turn < 8; ++turn) {
      // A counter for each (round, turn, right): right < 2^31, turn < 8.
      uint64_t counter = static_cast<uint64_t>(round) << 34 | turn << 31 | right;
      uint64_t mixed = left ^ (philox.bits(counter) & mask);
      left = right;
      right = mixed;
    }
    place = left << half | right;
  } while (place >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(place);
}

absl::StatusOr<TrainData> TrainData::make(std::shared_ptr<const TokenStream> stream, const Recipe &recipe,
                                          int64_t rank, int64_t ranks) {
  if (absl::Status status = checkShape(recipe, recipe.microBatches * ranks); !status.ok())
    return status;
  bool whole = recipe.documentsApart && recipe.packWhole;
  if (!whole && stream->size() < recipe.positions + 1)
    return absl::InvalidArgumentError(
        absl::StrCat("training data is too short for rows of ", recipe.positions, " positions: need ",
                     recipe.positions + 1, " tokens (each input has the next token as its target), found ",
                     stream->size(), "; use more text or a smaller batch = ROWS x POSITIONS"));
  TrainData data(stream, pack(*stream, recipe, /*training=*/true), recipe.seed);
  if (data.packing.rows() == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "training data has no target: ", stream->documents().size(), " documents with ", stream->size(),
        " tokens in all, and none gives a row of ", recipe.positions, " positions",
        recipe.longDrop ? "; long = split keeps documents longer than a row" : ""));
  data.divide(recipe, rank, ranks);
  double rows = static_cast<double>(recipe.rows), distinct = static_cast<double>(data.distinctRows());
  if (recipe.steps)
    data.recipeSteps = *recipe.steps;
  else if (recipe.tokens)
    data.recipeSteps = static_cast<int64_t>(std::ceil(*recipe.tokens / (rows * recipe.positions)));
  else
    data.recipeSteps = static_cast<int64_t>(std::ceil(recipe.epochs.value_or(1) * distinct / rows));
  return data;
}

void TrainData::divide(const Recipe &recipe, int64_t ofRank, int64_t ofRanks) {
  rowsPerStep = recipe.rows;
  micros = recipe.microBatches;
  rowsPerCall = recipe.rows / (recipe.microBatches * ofRanks);
  rank = ofRank;
  ranks = ofRanks;
}

absl::StatusOr<TrainData> TrainData::make(std::shared_ptr<const Mqar> task, const Recipe &recipe,
                                          int64_t rank, int64_t ranks) {
  if (absl::Status status = checkShape(recipe, recipe.microBatches * ranks); !status.ok())
    return status;
  if (!recipe.steps && !recipe.tokens)
    return absl::InvalidArgumentError(
        "recipe: mqar draws new rows without end; say how long to train with steps or tokens");
  TrainData data(nullptr, Packing(recipe.positions), recipe.seed);
  data.task = std::move(task);
  data.divide(recipe, rank, ranks);
  data.recipeSteps =
      recipe.steps ? *recipe.steps
                   : static_cast<int64_t>(
                         std::ceil(*recipe.tokens / static_cast<double>(recipe.rows * recipe.positions)));
  return data;
}

absl::StatusOr<Batch> TrainData::at(int64_t step, int64_t micro) const {
  if (step < 0 || micro < 0 || micro >= micros)
    return absl::OutOfRangeError(absl::StrCat("no batch at step ", step, ", micro-batch ", micro,
                                              ": steps start at 0 and micro-batches end at ", micros - 1));
  Batch batch = emptyBatch(rowsPerCall, positions());
  int64_t first = step * rowsPerStep + (micro * ranks + rank) * rowsPerCall;
  for (int64_t r = 0; task && r < rowsPerCall; ++r)
    fillRow(batch, r, *task, first + r);
  for (int64_t r = 0; !task && r < rowsPerCall; ++r) {
    int64_t epoch = (first + r) / distinctRows(), index = (first + r) % distinctRows();
    fillRow(batch, r, *stream, packing, packing.row(permuted(philox, epoch, distinctRows(), index)));
  }
  return batch;
}

int64_t TrainData::stepsPerEpoch() const { return std::max<int64_t>(1, distinctRows() / rowsPerStep); }
int64_t TrainData::steps() const { return recipeSteps; }

absl::StatusOr<EvalData> EvalData::make(std::shared_ptr<const TokenStream> stream, const Recipe &recipe,
                                        int64_t rows) {
  if (absl::Status status = checkShape(recipe, 1); !status.ok())
    return status;
  EvalData data(stream, pack(*stream, recipe, /*training=*/false));
  data.rowsPerBatch = rows > 0 ? rows : std::max<int64_t>(1, recipe.rows / recipe.microBatches);
  data.usedRows = data.packing.rows();
  if (recipe.evalRows > 0)
    data.usedRows = std::min(data.usedRows, recipe.evalRows);
  if (data.usedRows == 0)
    return absl::InvalidArgumentError(
        absl::StrCat("held-out data has no target: need a document of at least 2 tokens, found ",
                     stream->documents().size(), " documents with ", stream->size(), " tokens in all"));
  return data;
}

absl::StatusOr<EvalData> EvalData::make(std::shared_ptr<const Mqar> task, const Recipe &recipe,
                                        int64_t rows) {
  if (absl::Status status = checkShape(recipe, 1); !status.ok())
    return status;
  EvalData data(nullptr, Packing(recipe.positions));
  data.usedRows = task->options().rows;
  if (recipe.evalRows > 0)
    data.usedRows = std::min(data.usedRows, recipe.evalRows);
  data.task = std::move(task);
  data.rowsPerBatch = rows > 0 ? rows : std::max<int64_t>(1, recipe.rows / recipe.microBatches);
  return data;
}

int64_t EvalData::batches() const { return (usedRows + rowsPerBatch - 1) / rowsPerBatch; }
int64_t EvalData::targets() const {
  return task ? usedRows * task->options().pairs : packing.inputs(usedRows);
}

absl::StatusOr<Batch> EvalData::at(int64_t index) const {
  if (index < 0 || index >= batches())
    return absl::OutOfRangeError(
        absl::StrCat("no evaluation batch ", index, ": there are ", batches(), ", counted from 0"));
  Batch batch = emptyBatch(rowsPerBatch, positions());
  for (int64_t r = 0; r < rowsPerBatch; ++r) {
    int64_t row = index * rowsPerBatch + r;
    if (task && row < usedRows)
      fillRow(batch, r, *task, row);
    if (!task)
      fillRow(batch, r, *stream, packing, row < usedRows ? packing.row(row) : std::span<const Piece>());
  }
  return batch;
}

absl::StatusOr<std::vector<int64_t>> EvalData::targetPlaces(int64_t index) const {
  if (index < 0 || index >= batches())
    return absl::OutOfRangeError(
        absl::StrCat("no evaluation batch ", index, ": there are ", batches(), ", counted from 0"));
  std::vector<int64_t> places(static_cast<size_t>(rowsPerBatch * positions()), -1);
  for (int64_t r = 0; r < rowsPerBatch && !task; ++r) {
    int64_t row = index * rowsPerBatch + r, at = r * positions();
    if (row >= usedRows)
      break;
    for (const Piece &piece : packing.row(row))
      for (int64_t i = 0; i < piece.length; ++i)
        places[static_cast<size_t>(at++)] = piece.begin + i + 1;
  }
  return places;
}

} // namespace weft::rt
