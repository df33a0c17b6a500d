//===- MixShape.h - What the kernels of fixed patterns share ----*- C++ -*-===//
//
// exp(a[j] + r[i - j]) between a block of queries and one of keys is a Toeplitz
// tile with scaled rows: one slice of exp(r) along the diagonals, zero before the
// key and behind the window, and one number a key. Nothing is exponentiated a
// pair.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "passes/Codegen/Builders.h"
#include "passes/Codegen/Tiles.h"

namespace weft {

/// Sizes and operands of one mix or gradient: values [batch, keys, kvHeads,
/// channel], patterns [heads, places], results [batch, queries, heads, channel].
struct MixShape {
  int64_t batch, queries, keys, heads, kvHeads, channel, places;
  int64_t lanes, rows;    // of a tile: a multiple of any vector width, and keyBlock or queryBlock
  bool twoRanges = false; // `windows` has first places, too
  mlir::Value a, r, windows, starts, kvTable, offset;

  /// Of the op's types alone.
  MixShape(mlir::Value value, mlir::Value pattern, mlir::Value docStart);
  template <typename Op>
  MixShape(Op op, mlir::Value value, const KernelBody &body) : MixShape(value, op.getA(), op.getDocStart()) {
    a = body.argument(op.getA());
    r = body.argument(op.getR());
    windows = body.argument(op.getWindows());
    twoRanges = mlir::cast<mlir::RankedTensorType>(op.getWindows().getType()).getDimSize(0) != heads;
    starts = body.argument(op.getDocStart());
    kvTable = op.getKvOf() ? body.argument(op.getKvOf()) : mlir::Value();
  }

  int64_t blocks(int64_t places) const { return (places + lanes - 1) / lanes; }
  /// Floats of a slice of diagonals.
  int64_t diagonals() const { return lanes + rows; }

  mlir::Value kvOf(Emitter &e, mlir::Value head) const;
  /// Places of a document's beginning that `head` sees beyond its window; with twoRanges alone.
  mlir::Value firstPlaces(Emitter &e, mlir::Value head) const {
    return e.loadIndex(windows, e.addi(head, heads));
  }
  /// Row, head (one of `count`) and first place of item `number`, the last block first: those
  /// of queries see most.
  struct Item {
    mlir::Value row, head, place;
  };
  Item item(Emitter &e, mlir::Value number, int64_t count, int64_t blocks) const;

  /// From one place of one row and head on.
  Strided valueRows(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value kv) const;
  Strided outRows(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value head) const;
  Strided perQuery(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value head) const;
  mlir::Value startsOf(Emitter &e, mlir::Value row) const;
  mlir::Value patternOf(Emitter &e, mlir::Value base, mlir::Value head) const;
};

/// slice[m] = exp(r[first + m]) for m < count (a multiple of the width), 0 at
/// distances below 0, below `least` where it is given, or from `limit` on. `r` is
/// the head's.
void emitDiagonals(Emitter &e, mlir::Value slice, mlir::Value r, mlir::Value first, mlir::Value limit,
                   int64_t count, mlir::Value least = {});

/// places[k] = place in its document of key `key` + k, weights[k] = exp(a of it),
/// for k < valid; weights up to `count` are 0 behind. `starts` are the row's
/// document starts by place, or (`one`) that of its only query.
void emitKeyWeights(Emitter &e, mlir::Value weights, mlir::Value places, mlir::Value a, mlir::Value starts,
                    bool one, mlir::Value key, mlir::Value valid, int64_t count);

/// Takes the weights of keys away whose place in their document is `first` or later.
void emitFirstWeights(Emitter &e, mlir::Value weights, mlir::Value places, mlir::Value first, int64_t count);

/// to[i] = exp(-lse(i)) for i < valid, 0 up to `count`.
void emitInverses(Emitter &e, mlir::Value to, const Strided &lse, mlir::Value valid, int64_t count);

} // namespace weft
