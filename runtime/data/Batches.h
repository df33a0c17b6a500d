//===- Batches.h - Rows of tokens for training and evaluation ---*- C++ -*-===//
//
// How a stream of documents becomes rows. A row is a list of pieces of the
// stream; the token at stream index i always has the target i + 1, so a piece
// of n tokens reads n + 1:
//
//   documents = joined  the stream is one document; rows are cut from it
//   documents = apart   pieces stay inside documents. boundary = skip: the last
//                       token of a document is a target only. count: it is an
//                       input too, whose target is the next document's first
//   packing   = split   documents end to end, cut at the row's end
//   packing   = whole   a document is cut only when longer than a row
//   long      = drop    a document longer than a row is left out of training
//
// Slots without a token hold token 0 and target -1, and form a document of
// their own. Batches are pure functions of (tokens, recipe, step, micro): a
// resumed run needs no position but its step number.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Recipe.h"
#include "runtime/Tensor.h"
#include "runtime/core/Philox.h"
#include "runtime/data/Mqar.h"
#include "runtime/data/Packing.h"
#include "runtime/data/TokenStream.h"

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace weft::rt {

/// I32 [rows, positions] each. `docStart`: index in the row of the first token
/// of this slot's document. `counted`: targets other than -1.
struct Batch {
  Tensor tokens, targets, docStart;
  int64_t counted = 0;
};

class TrainData {
public:
  /// Rows of `stream` as `recipe` says. Of several ranks, each takes its part of
  /// every micro-batch: rows must be divisible by microBatches x ranks.
  /// Errors: InvalidArgument ("need 1025 tokens ..., found 500").
  static absl::StatusOr<TrainData> make(std::shared_ptr<const TokenStream> stream, const Recipe &recipe,
                                        int64_t rank = 0, int64_t ranks = 1);
  /// Rows of a task that never runs out: row g of all rows ever drawn is row g of
  /// the task. Errors: InvalidArgument when `recipe` does not say how long to train.
  static absl::StatusOr<TrainData> make(std::shared_ptr<const Mqar> task, const Recipe &recipe,
                                        int64_t rank = 0, int64_t ranks = 1);

  /// Micro-batch `micro` of step `step` (from 0). Row g of all rows ever drawn,
  /// g = step x rows + its place in the step, is row g mod distinctRows() of
  /// epoch g / distinctRows(); each epoch has its own order, and uses each row
  /// once. Steps run on over the end of an epoch.
  /// Errors: OutOfRange when step < 0 or micro is not in [0, microBatches).
  absl::StatusOr<Batch> at(int64_t step, int64_t micro) const;

  /// Whole steps inside one epoch, at least 1.
  int64_t stepsPerEpoch() const;
  /// Steps of the recipe: `steps`, or enough for `tokens`, or for `epochs`.
  int64_t steps() const;
  int64_t distinctRows() const { return task ? INT64_MAX : packing.rows(); }
  /// Inputs that `long = drop` left out, over all documents.
  int64_t droppedTokens() const { return packing.dropped(); }
  int64_t rows() const { return rowsPerCall; } // of one micro-batch on one rank
  int64_t positions() const { return packing.positions(); }
  int64_t microBatches() const { return micros; }
  /// Slots of one step over all ranks, rows x positions: tokens as logs count them.
  int64_t tokensPerStep() const { return rowsPerStep * positions(); }

private:
  TrainData(std::shared_ptr<const TokenStream> stream, Packing packing, uint64_t seed)
      : stream(std::move(stream)), packing(std::move(packing)), philox(seed, "data/shuffle") {}

  void divide(const Recipe &recipe, int64_t rank, int64_t ranks);

  std::shared_ptr<const TokenStream> stream;
  std::shared_ptr<const Mqar> task; // instead of a stream
  Packing packing;
  Philox philox;
  int64_t rowsPerStep = 1, rowsPerCall = 1, micros = 1, rank = 0, ranks = 1;
  int64_t recipeSteps = 0;
};

class EvalData {
public:
  /// Rows of `rows` x positions in order. Every target of the stream is counted
  /// once: long documents are split, short rows padded. joined: tokens - 1
  /// targets; apart and skip: tokens - documents. `recipe.evalRows` > 0 keeps
  /// the first rows only. `rows` 0: recipe.rows / recipe.microBatches.
  static absl::StatusOr<EvalData> make(std::shared_ptr<const TokenStream> stream, const Recipe &recipe,
                                       int64_t rows = 0);
  /// The first task->options().rows rows of a task.
  static absl::StatusOr<EvalData> make(std::shared_ptr<const Mqar> task, const Recipe &recipe,
                                       int64_t rows = 0);

  int64_t batches() const;
  /// Errors: OutOfRange.
  absl::StatusOr<Batch> at(int64_t batch) const;
  int64_t targets() const; // over all batches
  /// For each slot of a batch, where in the stream its target stands; -1 where
  /// there is none, and for rows of a task. Errors: OutOfRange.
  absl::StatusOr<std::vector<int64_t>> targetPlaces(int64_t batch) const;
  const TokenStream *tokens() const { return stream.get(); } // null: rows of a task
  int64_t rows() const { return rowsPerBatch; }
  int64_t positions() const { return packing.positions(); }

private:
  EvalData(std::shared_ptr<const TokenStream> stream, Packing packing)
      : stream(std::move(stream)), packing(std::move(packing)) {}

  std::shared_ptr<const TokenStream> stream;
  std::shared_ptr<const Mqar> task; // instead of a stream
  Packing packing;
  int64_t rowsPerBatch = 1, usedRows = 0;
};

/// Place `index` of a permutation of [0, size) that belongs to `round` (epoch)
/// of `philox`: a Feistel network on the next power of four, walked until it
/// lands inside. Needs no memory.
int64_t permuted(const Philox &philox, int64_t round, int64_t size, int64_t index);

} // namespace weft::rt
