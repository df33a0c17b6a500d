//===- Gemm.h - Matrix products on the CPU ----------------------*- C++ -*-===//
//
// Products are cut into tiles that depend on their sizes alone; a tile is one
// single-threaded BLAS call, and workers take tiles in any order. Results are
// therefore the same bits for any number of workers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Executable.h"

namespace weft::rt {

/// Makes OpenBLAS single-threaded and chooses its kernels for this processor.
/// Idempotent; before the first product.
void prepareBlas();

/// What kernels reach through their table.
const KernelTable &kernelTable();

/// Rows and columns of C are cut into `rowTiles` x `columnTiles`, each tile
/// `tileRows` x `tileColumns` but the last ones.
struct GemmTiles {
  int64_t tileRows = 1, tileColumns = 1, rowTiles = 1, columnTiles = 1;
};
GemmTiles tilesOf(const Gemm &gemm);

/// Work items of a product: tiles times batch.
int64_t gemmGrid(const Gemm &gemm);

/// Items [begin, end) of C = beta C + A B.
void runGemm(const Gemm &gemm, const float *a, const float *b, float *c, int64_t begin, int64_t end);

} // namespace weft::rt
