//===- AttendShape.h - What the kernels of attention share ------*- C++ -*-===//
#pragma once

#include "passes/Codegen/Builders.h"
#include "passes/Codegen/RowProgram.h"
#include "passes/Codegen/Tiles.h"

namespace weft {

/// Rows from place `place` on of row `row` and head `head` in [rows, places, heads, width].
Strided headRows(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value head,
                 int64_t places, int64_t heads, int64_t width);

/// Sizes of one attention: q [batch, queries, heads, channel], k [batch, keys,
/// kvHeads, channel], v [.., valueChannel], heads counted row-major.
struct AttendShape {
  int64_t batch, queries, keys, heads, kvHeads, channel, valueChannel;
  Axes headAxes, kvAxes;
  double scale;
  int64_t queryBlock, keyBlock; // tiles; the first is a multiple of any vector width
  mlir::Value kvTable;          // kv(h) of each head, where it does not follow from names

  AttendShape(mlir::Value q, mlir::Value k, mlir::Value v, double scale);
  /// In a kernel that may have `kvOf`, the table of kv(h); null otherwise.
  AttendShape(mlir::Value q, mlir::Value k, mlir::Value v, mlir::Value kvOf, const KernelBody &body,
              double scale);

  int64_t queryBlocks() const { return (queries + queryBlock - 1) / queryBlock; }
  int64_t keyBlocks() const { return (keys + keyBlock - 1) / keyBlock; }

  /// Number of the key-value head that `head` reads.
  mlir::Value kvOf(Emitter &e, mlir::Value head) const;
  /// Calls `visit` for each head that reads `kv`.
  void forEachHead(Emitter &e, mlir::Value kv, llvm::function_ref<void(mlir::Value)> visit) const;

  /// Row, head (or key-value head) and first place of work item `number`, one of
  /// `blocks` of each: row by row; or, with an order of heads, head by head.
  struct Item {
    mlir::Value row, head, place;
  };
  Item item(Emitter &e, mlir::Value number, int64_t count, int64_t blocks,
            std::optional<llvm::ArrayRef<int32_t>> order) const;

  // Rows from place `place` of row `row` on.
  Strided queryRows(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value head) const;
  Strided keyRows(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value kv) const;
  Strided valueRows(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value kv) const;
  /// As q, with the channel of v.
  Strided outRows(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value head) const;
  /// One number a query and head: lse, delta.
  Strided perQuery(Emitter &e, mlir::Value base, mlir::Value row, mlir::Value place, mlir::Value head) const;
};

/// A row's first key and how many after it a query sees: j is seen when
/// (j - first) <= span without sign.
struct Visible {
  mlir::Value first, span;
};

/// Which keys are seen. All numbers are i64 but for those in lanes (i32).
struct AttendMask {
  mlir::Value starts; // doc_start of the row, or null
  mlir::Value window; // of the head
  mlir::Value offset; // of query 0

  /// First key that the query at `place` sees, before 0 is cut off.
  mlir::Value firstKey(Emitter &e, mlir::Value place) const;
  /// Of queries place, place + 1, ... in lanes; lanes from `valid` on see nothing.
  Visible ofLanes(Emitter &e, mlir::Value place, mlir::Value valid) const;
  /// Of one query, for keys in lanes.
  Visible ofOne(Emitter &e, mlir::Value place) const;
};

/// Lanes of `keys` (i32) that are seen.
mlir::Value isSeen(Emitter &e, mlir::Value keys, const Visible &visible);

mlir::Value loadWindow(Emitter &e, mlir::Value windows, mlir::Value head);

} // namespace weft
