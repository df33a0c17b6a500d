#include "runtime/cpu/Gemm.h"

#include "runtime/cpu/ThreadPool.h"

#include <cmath>
#include <cstring>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

namespace weft::rt {
namespace {

struct Problem {
  Gemm gemm;
  std::vector<float> a, b, c;
};

/// Rows are longer than they need to be and batches further apart, so that a
/// mixed-up length reads numbers that belong to nothing.
Problem make(int64_t m, int64_t n, int64_t k, bool transA, bool transB, bool accumulate, int64_t batch) {
  Problem problem;
  Gemm &gemm = problem.gemm;
  gemm.m = m, gemm.n = n, gemm.k = k, gemm.batch = batch;
  gemm.transA = transA, gemm.transB = transB, gemm.accumulate = accumulate;
  gemm.lda = (transA ? m : k) + 3, gemm.ldb = (transB ? k : n) + 5, gemm.ldc = n + 7;
  gemm.strideA = (transA ? k : m) * gemm.lda + 11, gemm.strideB = (transB ? n : k) * gemm.ldb + 13;
  gemm.strideC = m * gemm.ldc + 17;
  std::mt19937 random(static_cast<unsigned>(m * 131 + n * 17 + k));
  std::uniform_real_distribution<float> values(-1, 1);
  for (auto [data, size] :
       {std::pair(&problem.a, gemm.strideA * batch), std::pair(&problem.b, gemm.strideB * batch),
        std::pair(&problem.c, gemm.strideC * batch)}) {
    data->resize(static_cast<size_t>(size));
    for (float &value : *data)
      value = values(random);
  }
  return problem;
}

/// In double, from the definition.
std::vector<double> expectedOf(const Problem &problem) {
  const Gemm &gemm = problem.gemm;
  std::vector<double> c(problem.c.begin(), problem.c.end());
  for (int64_t batch = 0; batch < gemm.batch; ++batch)
    for (int64_t i = 0; i < gemm.m; ++i)
      for (int64_t j = 0; j < gemm.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < gemm.k; ++p) {
          int64_t a = batch * gemm.strideA + (gemm.transA ? p * gemm.lda + i : i * gemm.lda + p);
          int64_t b = batch * gemm.strideB + (gemm.transB ? j * gemm.ldb + p : p * gemm.ldb + j);
          sum += static_cast<double>(problem.a[static_cast<size_t>(a)]) * problem.b[static_cast<size_t>(b)];
        }
        double &value = c[static_cast<size_t>(batch * gemm.strideC + i * gemm.ldc + j)];
        value = sum + (gemm.accumulate ? value : 0);
      }
  return c;
}

void runAll(Problem &problem, ThreadPool &pool) {
  pool.run(gemmGrid(problem.gemm), [&](int64_t begin, int64_t end, int) {
    runGemm(problem.gemm, problem.a.data(), problem.b.data(), problem.c.data(), begin, end);
  });
}

class GemmTest : public ::testing::Test {
protected:
  void SetUp() override { prepareBlas(); }
};

// Catches a swapped transpose or row length, a tile written twice under
// `accumulate`, and writes between rows (all of C is compared).
TEST_F(GemmTest, AgreesWithDoubleLoops) {
  constexpr int64_t kSizes[][4] = {
      {1, 1, 1, 1},      {1, 37, 19, 2},    {37, 1, 19, 2},    {5, 7, 3, 4},       {33, 65, 17, 1},
      {200, 300, 64, 1}, {1, 3001, 130, 1}, {3001, 1, 130, 1}, {129, 64, 1500, 1}, {64, 48, 32, 6}};
  ThreadPool pool(2);
  for (const auto &size : kSizes)
    for (int flags = 0; flags < 8; ++flags) {
      Problem problem = make(size[0], size[1], size[2], flags & 1, flags & 2, flags & 4, size[3]);
      std::vector<double> expected = expectedOf(problem);
      runAll(problem, pool);
      double tolerance = 1e-6 * std::sqrt(static_cast<double>(size[2])) + 1e-6;
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(problem.c[i], expected[i], tolerance * 8)
            << size[0] << "x" << size[1] << "x" << size[2] << " flags " << flags << " at " << i;
    }
}

// Catches tiles cut by the number of workers, and threads inside BLAS.
TEST_F(GemmTest, SameBitsForAnyNumberOfWorkers) {
  for (auto [m, n, k] : {std::tuple(512, 384, 256), std::tuple(128, 512, 2048), std::tuple(1, 4096, 512)}) {
    Problem first = make(m, n, k, false, true, true, 1);
    Problem second = first, third = first;
    ThreadPool one(1), two(2), five(5);
    runAll(first, one);
    runAll(second, two);
    runAll(third, five);
    EXPECT_EQ(std::memcmp(first.c.data(), second.c.data(), first.c.size() * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(first.c.data(), third.c.data(), first.c.size() * sizeof(float)), 0);
  }
}

TEST_F(GemmTest, TilesCoverTheProductAndShareWork) {
  for (auto [m, n, k] : {std::tuple(1000, 900, 300), std::tuple(128, 128, 2048), std::tuple(2048, 128, 128),
                         std::tuple(64, 64, 64), std::tuple(1, 50304, 768)}) {
    Gemm gemm;
    gemm.m = m, gemm.n = n, gemm.k = k;
    GemmTiles tiles = tilesOf(gemm);
    EXPECT_GE(tiles.tileRows * tiles.rowTiles, m);
    EXPECT_LT(tiles.tileRows * (tiles.rowTiles - 1), m);
    EXPECT_GE(tiles.tileColumns * tiles.columnTiles, n);
    EXPECT_LT(tiles.tileColumns * (tiles.columnTiles - 1), n);
    bool small = 2.0 * m * n * k < 16e6;
    EXPECT_EQ(gemmGrid(gemm) == 1, small) << m << " " << n << " " << k;
  }
}

TEST_F(GemmTest, TableMultipliesWithAlphaAndBeta) {
  std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 2, 1, 0, 3}, c{10, 20, 30, 40};
  kernelTable().sgemm(0, 0, 2, 2, 3, 2.0F, a.data(), 3, b.data(), 2, 0.5F, c.data(), 2);
  // A B = [[5, 11], [14, 23]]
  EXPECT_EQ(c, (std::vector<float>{15, 32, 43, 66}));
  std::vector<float> row{100, 100};
  kernelTable().sgemm(0, 1, 1, 2, 3, 1.0F, a.data(), 3, b.data(), 3, 0.0F, row.data(), 2);
  EXPECT_EQ(row, (std::vector<float>{7, 10})); // B' has rows (1,0,2), (1,0,3)
}

// NaN times zero would stay NaN: beta 0 must overwrite.
TEST_F(GemmTest, WithoutAccumulateOldValuesDoNotMatter) {
  for (auto [m, n] : {std::pair(1, 40), std::pair(40, 1), std::pair(40, 40)}) {
    Problem problem = make(m, n, 16, false, false, false, 1);
    std::fill(problem.c.begin(), problem.c.end(), std::nanf(""));
    runGemm(problem.gemm, problem.a.data(), problem.b.data(), problem.c.data(), 0, gemmGrid(problem.gemm));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        ASSERT_FALSE(std::isnan(problem.c[static_cast<size_t>(i * problem.gemm.ldc + j)]));
  }
}

} // namespace
} // namespace weft::rt
