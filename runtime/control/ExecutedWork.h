//===- ExecutedWork.h - What attention kernels really do --------*- C++ -*-===//
//
// A kernel of attention goes over tiles: a block of queries (or keys) against
// the keys (queries) that some row of the block may see. What lies inside a tile
// and is masked is multiplied all the same, so executed pairs are more than
// allowed ones. The numbers here follow the kernels' own ranges, of the CPU
// (passes/Codegen/Attend*.cpp) or of tiles on a GPU (passes/Codegen/Gpu/Attend*.cpp),
// from the same windows and documents.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>

namespace weft::rt {

/// Rows (queries or keys) of a tile of the CPU kernels, and the widest vector:
/// a short row of T < 64 places has one tile of T rounded up to it.
constexpr int64_t kAttendTile = 64, kAttendLanes = 16;

/// How kernels on a GPU's tiles go about it; as it stands, the CPU's kernels. Ranges
/// belong to 64 rows each and are whole blocks of what goes by.
struct AttendTiles {
  int64_t forwardBlock = 0, queryBlock = 0; // keys a block
  int64_t keyValueBlock = 0;                // queries a block
  int64_t keyValueRows = 0;                 // keys whose documents end a range together
  /// Forward leaves out halves of a range's first and last block that no row sees, but of
  /// an only block and, where the first is halved, of the second of two.
  bool forwardHalves = false;
};

/// (query, key) pairs whose products are computed, of each kernel.
struct ExecutedPairs {
  int64_t forward = 0, gradQuery = 0, gradKeyValue = 0;
  ExecutedPairs &operator+=(const ExecutedPairs &other);
};

/// Of one head with `window` (at least 1) in one row of docStart.size()
/// positions; docStart[i]: first place of the document of place i.
ExecutedPairs executedPairs(std::span<const int32_t> docStart, int64_t window, const AttendTiles &tiles = {});

/// Over all rows of `docStart` [rows, positions] and heads of `windows`.
ExecutedPairs executedPairs(std::span<const int32_t> docStart, int64_t positions,
                            std::span<const int32_t> windows, const AttendTiles &tiles = {});

/// Floating-point operations of their matrix products, a multiply-add as two:
/// forward q k and p v; for dq the scores, dout v and ds k; for dk and dv the
/// scores, dout v, ds q and p dout. `channel` of q and k, `valueChannel` of v.
struct ExecutedFlops {
  double forward = 0, backward = 0;
};
ExecutedFlops executedFlops(const ExecutedPairs &pairs, int64_t channel, int64_t valueChannel);

} // namespace weft::rt
