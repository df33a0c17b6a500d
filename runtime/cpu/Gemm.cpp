//===- Gemm.cpp -----------------------------------------------------------===//
#include "runtime/cpu/Gemm.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <cblas.h>

// OpenBLAS chooses its kernels when it is loaded; these two choose anew. They
// are no part of its public interface, hence weak: without them the first
// choice stays.
extern "C" {
__attribute__((weak)) void gotoblas_dynamic_quit();
__attribute__((weak)) void gotoblas_dynamic_init();
}

namespace weft::rt {
namespace {

constexpr int64_t kUnit = 16;                // tile sizes are multiples: OpenBLAS's register blocks
constexpr int64_t kLeastTile = 128;          // below, packing costs more than a third
constexpr int64_t kLeastTileAlone = 64;      // unless workers would have nothing to do
constexpr int64_t kTilesWanted = 16;         // keeps workers busy to the end
constexpr int64_t kTilesNeeded = 4;          // the least worth the smaller tiles
constexpr double kLeastFlops = 8e6;          // of a tile: about 50 microseconds
constexpr int64_t kVectorElements = 1 << 16; // of the matrix, for one item of a vector product

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// OpenBLAS releases older than a processor fall back to AVX2 kernels, at half
/// the speed of the AVX-512 ones that the processor could run.
void chooseKernels() {
  std::string_view chosen = openblas_get_corename();
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!gotoblas_dynamic_quit || !gotoblas_dynamic_init || !avx512 || std::getenv("OPENBLAS_CORETYPE") ||
      (chosen != "Haswell" && chosen != "Zen"))
    return;
  setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");
}

CBLAS_TRANSPOSE transpose(bool is) { return is ? CblasTrans : CblasNoTrans; }

/// cblas_sgemm, or cblas_sgemv where C is one row or one column: OpenBLAS packs
/// both matrices of a product whatever their shape.
void sgemm(int64_t transA, int64_t transB, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
           int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  auto narrow = [](int64_t size) { return static_cast<blasint>(size); };
  if (m == 1) {
    blasint step = transA ? narrow(lda) : 1;
    cblas_sgemv(CblasRowMajor, transpose(!transB), narrow(transB ? n : k), narrow(transB ? k : n), alpha, b,
                narrow(ldb), a, step, beta, c, 1);
    return;
  }
  if (n == 1) {
    blasint step = transB ? 1 : narrow(ldb);
    cblas_sgemv(CblasRowMajor, transpose(transA), narrow(transA ? k : m), narrow(transA ? m : k), alpha, a,
                narrow(lda), b, step, beta, c, narrow(ldc));
    return;
  }
  cblas_sgemm(CblasRowMajor, transpose(transA), transpose(transB), narrow(m), narrow(n), narrow(k), alpha, a,
              narrow(lda), b, narrow(ldb), beta, c, narrow(ldc));
}

/// Cuts one dimension into `tiles` of a size that is a multiple of kUnit.
void cut(int64_t size, int64_t &tiles, int64_t &tile) {
  tile = ceilDiv(ceilDiv(size, tiles), kUnit) * kUnit;
  tiles = ceilDiv(size, tile);
}

} // namespace

void prepareBlas() {
  static std::once_flag once;
  std::call_once(once, [] {
    chooseKernels();
    openblas_set_num_threads(1);
  });
}

const KernelTable &kernelTable() {
  prepareBlas();
  static const KernelTable table{&sgemm};
  return table;
}

GemmTiles tilesOf(const Gemm &gemm) {
  GemmTiles tiles;
  if (gemm.m == 1 || gemm.n == 1) {
    int64_t wanted = std::clamp(ceilDiv(gemm.m * gemm.n, std::max<int64_t>(kVectorElements / gemm.k, 1)),
                                int64_t(1), kTilesWanted);
    (gemm.m == 1 ? tiles.columnTiles : tiles.rowTiles) = wanted;
  } else {
    double flops =
        2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
    while (true) {
      int64_t count = tiles.rowTiles * tiles.columnTiles;
      int64_t rows = ceilDiv(gemm.m, tiles.rowTiles), columns = ceilDiv(gemm.n, tiles.columnTiles);
      int64_t least = count * gemm.batch < kTilesNeeded ? kLeastTileAlone : kLeastTile;
      if (count * gemm.batch >= kTilesWanted || flops / static_cast<double>(count) < 2 * kLeastFlops ||
          std::max(rows, columns) < 2 * least)
        break;
      (rows >= columns ? tiles.rowTiles : tiles.columnTiles) *= 2;
    }
  }
  cut(gemm.m, tiles.rowTiles, tiles.tileRows);
  cut(gemm.n, tiles.columnTiles, tiles.tileColumns);
  return tiles;
}

int64_t gemmGrid(const Gemm &gemm) {
  GemmTiles tiles = tilesOf(gemm);
  return gemm.batch * tiles.rowTiles * tiles.columnTiles;
}

void runGemm(const Gemm &gemm, const float *a, const float *b, float *c, int64_t begin, int64_t end) {
  GemmTiles tiles = tilesOf(gemm);
  for (int64_t item = begin; item < end; ++item) {
    int64_t column = item % tiles.columnTiles * tiles.tileColumns;
    int64_t row = item / tiles.columnTiles % tiles.rowTiles * tiles.tileRows;
    int64_t batch = item / (tiles.columnTiles * tiles.rowTiles);
    const float *tileA = a + batch * gemm.strideA + row * (gemm.transA ? 1 : gemm.lda);
    const float *tileB = b + batch * gemm.strideB + column * (gemm.transB ? gemm.ldb : 1);
    float *tileC = c + batch * gemm.strideC + row * gemm.ldc + column;
    sgemm(gemm.transA, gemm.transB, std::min(tiles.tileRows, gemm.m - row),
          std::min(tiles.tileColumns, gemm.n - column), gemm.k, 1.0F, tileA, gemm.lda, tileB, gemm.ldb,
          gemm.accumulate ? 1.0F : 0.0F, tileC, gemm.ldc);
  }
}

} // namespace weft::rt
