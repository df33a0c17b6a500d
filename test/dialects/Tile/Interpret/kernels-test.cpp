//===- kernels-test.cpp - Right kernels pass under every order ------------===//

#include "test/dialects/Tile/Interpret/Kernels.h"

#include <algorithm>

using namespace weft::tile;

namespace {

constexpr Effects kAllEffects[] = {Effects::Late, Effects::Early, Effects::Random};

TEST(TileInterpret, PipelineIsRightUnderEveryOrder) {
  Parsed parsed(kPipeline);
  ASSERT_TRUE(parsed.module);
  for (Effects effects : kAllEffects)
    for (int64_t ctas : {1, 2, 7})
      for (uint64_t seed = 0; seed < 20; ++seed) {
        PipelineData data;
        absl::Status status = interpretTile(parsed.kernel, data.arguments(), {seed, effects, ctas, true});
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_LT(data.distance(), 1e-3) << seed;
      }
}

TEST(TileInterpret, SameSeedSameBits) {
  PipelineData first, second;
  ASSERT_TRUE(runPipeline(kPipeline, first, {11, Effects::Random, 2, true}).ok());
  ASSERT_TRUE(runPipeline(kPipeline, second, {11, Effects::Random, 2, true}).ok());
  EXPECT_EQ(first.out.values, second.out.values);
}

TEST(TileInterpret, RefusesOtherArguments) {
  Parsed parsed(kPipeline);
  PipelineData data;
  Arguments arguments = data.arguments();
  arguments.maps.pop_back();
  EXPECT_EQ(interpretTile(parsed.kernel, arguments, {}).code(), absl::StatusCode::kInvalidArgument);
  arguments = data.arguments();
  arguments.maps[0].dims[1] = 193;
  EXPECT_EQ(interpretTile(parsed.kernel, arguments, {}).code(), absl::StatusCode::kInvalidArgument);
  arguments = data.arguments();
  arguments.globals[0] = &data.a;
  EXPECT_EQ(interpretTile(parsed.kernel, arguments, {}).code(), absl::StatusCode::kInvalidArgument);
}

/// Rows of x (70 of them, 16 wide, read as two tiles), scaled and masked to columns at most the row's mark; the
/// sum of each row in parts, joined at the end, and the greatest element.
const char *kRows = R"mlir(
!f = !tile.frag<64x16xf32>
!r = !tile.rows<64xf32>
tile.kernel @rows(%x: !tile.global<f32>, %mark: !tile.global<i32>, %scale: !tile.global<bf16>,
                  %y: !tile.global<bf16>, %sum: !tile.global<f32>, %top: !tile.global<f32>) threads 128 shared 0 items 2 {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %c70 = arith.constant 70 : i32
  %w0 = arith.constant 0 : i64
  %w1 = arith.constant 1 : i64
  %w16 = arith.constant 16 : i64
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %first = tile.cta
  %grid = tile.grid_size
  scf.for %item = %first to %c2 step %grid : i32 {
    %row = arith.muli %item, %c64 : i32
    %left = arith.subi %c70, %row : i32
    %start = arith.extsi %row : i32 to i64
    %offset = arith.muli %start, %w16 : i64
    %xs = tile.load_frag %x[%offset] stride %w16 rows %left : !tile.global<f32> -> !f
    %marks = tile.load_rows %mark[%start] stride %w1 rows %left : !tile.global<i32> -> !tile.rows<64xi32>
    %scales = tile.load_cols %scale[%w0] stride %w1 columns %c16 : !tile.global<bf16> -> !tile.cols<16xf32>
    %ys = tile.map (%xs, %marks, %scales, %half : !f, !tile.rows<64xi32>, !tile.cols<16xf32>, f32) coordinates {
    ^bb0(%e: f32, %m: i32, %s: f32, %h: f32, %i: i32, %j: i32):
      %t = arith.mulf %e, %s : f32
      %u = math.fma %t, %h, %zero : f32
      %in = arith.cmpi sle, %j, %m : i32
      %v = arith.select %in, %u, %zero : f32
      tile.yield %v : f32
    } -> !f
    %parts = tile.reduce add %ys partial : !f -> !r
    %sums = tile.quad add %parts : !r -> !r
    %tops = tile.reduce max %ys : !f -> !r
    tile.store_frag %ys, %y[%offset] stride %w16 rows %left : !f, !tile.global<bf16>
    tile.store_rows %sums, %sum[%start] stride %w1 rows %left : !r, !tile.global<f32>
    tile.store_rows %tops, %top[%start] stride %w1 rows %left : !r, !tile.global<f32>
  }
  tile.return
}
)mlir";

struct RowsData {
  Buffer x = Buffer::of(Element::F32, drawNumbers(3, 70 * 16));
  Buffer mark = Buffer::of([] {
    std::vector<int32_t> marks;
    for (int32_t i = 0; i < 70; ++i)
      marks.push_back(i * 5 % 16);
    return marks;
  }());
  Buffer scale = Buffer::of(Element::Bf16, drawNumbers(4, 16));
  Buffer y = Buffer::poisoned(Element::Bf16, 70 * 16), sum = Buffer::poisoned(Element::F32, 70),
         top = Buffer::poisoned(Element::F32, 70);
  Arguments arguments() { return {{&x, &mark, &scale, &y, &sum, &top}, {}}; }
};

// Catches: rows and columns swapped, lanes of a quad left out of the sum, a mask that is off by one.
TEST(TileInterpret, MapsAndSumsRows) {
  Parsed parsed(kRows);
  ASSERT_TRUE(parsed.module);
  RowsData data;
  absl::Status status = interpretTile(parsed.kernel, data.arguments(), {});
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < 70; ++i) {
    double sum = 0, top = -1e30;
    for (size_t j = 0; j < 16; ++j) {
      bool in = j <= i * 5 % 16;
      double value = in ? static_cast<double>(data.x.values[i * 16 + j]) * data.scale.values[j] / 2 : 0;
      EXPECT_NEAR(data.y.values[i * 16 + j], value, std::abs(value) / 256 + 1e-30);
      sum += value;
      top = std::max(top, value);
    }
    EXPECT_NEAR(data.sum.values[i], sum, 1e-6);
    EXPECT_NEAR(data.top.values[i], top, 1e-6);
  }
}

TEST(TileInterpret, PartsOfASumAreNoRows) {
  Parsed parsed(with(kRows, "tile.store_rows %sums", "tile.store_rows %parts"));
  RowsData data;
  absl::Status status = interpretTile(parsed.kernel, data.arguments(), {});
  EXPECT_TRUE(absl::StartsWith(status.message(), "partial rows")) << status.message();
}

/// out = (x w) w^T over 64 x 32 and 32 x 16: copies in groups, a product at once; the result through shared
/// memory as the left operand of an asynchronous one.
const char *kShared = R"mlir(
!x = !tile.smem<1x64x32xbf16>
!w = !tile.smem<1x32x16xbf16>
!h = !tile.smem<1x64x16xbf16>
tile.kernel @shared(%px: !tile.global<bf16>, %pw: !tile.global<bf16>, %out: !tile.global<f32>) threads 128 shared 65536 items 1 {
  %c0 = arith.constant 0 : i32
  %c50 = arith.constant 50 : i32
  %c64 = arith.constant 64 : i32
  %w0 = arith.constant 0 : i64
  %w16 = arith.constant 16 : i64
  %w32 = arith.constant 32 : i64
  %x = tile.alloc : !x
  %w = tile.alloc : !w
  %h = tile.alloc : !h
  tile.copy_async %px[%w0] stride %w32 rows %c50 to %x : !tile.global<bf16>, !x
  tile.copy_async %pw[%w0] stride %w16 rows %c64 to %w : !tile.global<bf16>, !w
  tile.copy_commit
  tile.copy_wait 0
  tile.fence_async
  tile.sync %c0 threads 128
  %a = tile.read_frag %x : !x -> !tile.frag<64x32xbf16>
  %p = tile.product_sync %a, %w trans_b : !tile.frag<64x32xbf16>, !w -> !tile.frag<64x16xf32>
  %q = tile.cast %p : !tile.frag<64x16xf32> -> !tile.frag<64x16xbf16>
  tile.write_frag %q, %h : !tile.frag<64x16xbf16>, !h
  // written
  tile.fence_async
  tile.sync %c0 threads 128
  tile.fence_products
  %r = tile.product %h, %w : !h, !w -> !tile.frag<64x32xf32>
  tile.commit_products
  %s = tile.wait_products 0 (%r) : !tile.frag<64x32xf32> -> !tile.frag<64x32xf32>
  tile.store_frag %s, %out[%w0] stride %w32 rows %c64 : !tile.frag<64x32xf32>, !tile.global<f32>
  tile.return
}
)mlir";

struct SharedData {
  Buffer x = Buffer::of(Element::Bf16, drawNumbers(5, 50 * 32)),
         w = Buffer::of(Element::Bf16, drawNumbers(6, 32 * 16)),
         out = Buffer::poisoned(Element::F32, 64 * 32);
  absl::Status run(const std::string &text, const Schedule &schedule) {
    Parsed parsed(text);
    return interpretTile(parsed.kernel, {{&x, &w, &out}, {}}, schedule);
  }
};

// The 14 rows past the limit are 0. Catches: either product transposed.
TEST(TileInterpret, PassesFragmentsThroughSharedMemory) {
  for (Effects effects : kAllEffects) {
    SharedData data;
    absl::Status status = data.run(kShared, {5, effects, 1, true});
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < 64; ++i)
      for (size_t n = 0; n < 32; ++n) {
        double sum = 0;
        for (size_t k = 0; k < 16 && i < 50; ++k) {
          double h = 0;
          for (size_t j = 0; j < 32; ++j)
            h += static_cast<double>(data.x.values[i * 32 + j]) * data.w.values[j * 16 + k];
          sum += h * data.w.values[n * 16 + k];
        }
        EXPECT_NEAR(data.out.values[i * 32 + n], sum, 0.05) << i << " " << n;
      }
  }
}

void expectFault(std::string_view name, const std::string &text) {
  for (Effects effects : kAllEffects) {
    SharedData data;
    absl::Status status = data.run(text, {2, effects, 1, true});
    EXPECT_TRUE(absl::StartsWith(status.message(), absl::string_view(name.data(), name.size())))
        << status.message();
  }
}

TEST(TileInterpret, JudgesPlainWritesAndGroupsOfCopies) {
  const std::string written = "  // written\n  tile.fence_async\n  tile.sync %c0 threads 128\n";
  expectFault(kMissingWait, with(kShared, written, "  tile.fence_async\n"));
  expectFault(kMissingFence, with(kShared, written, "  tile.sync %c0 threads 128\n"));
  expectFault(kMissingWait, with(kShared, "  tile.copy_wait 0\n", "  tile.copy_wait 1\n"));
  expectFault(kMissingWait, with(kShared, "  tile.copy_commit\n", ""));
  // Each thread waits for its own copies: without tile.sync those of the others may be late.
  expectFault(kMissingWait, with(kShared, "  tile.sync %c0 threads 128\n  %a", "  %a"));
  expectFault(kOutOfBounds, with(kShared, "%c50 = arith.constant 50", "%c50 = arith.constant 51"));
}

/// One thread loads a mark and a loop runs until it is passed; the sum of a row of shared memory, twice.
const char *kLoops = R"mlir(
!row = !tile.smem<1x1x64xf32>
!one = !tile.barriers<1>
tile.kernel @loops(%x: !tile.global<f32>, %n: !tile.global<i32>, %out: !tile.global<f32>) threads 128 shared 4096 items 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w0 = arith.constant 0 : i64
  %w1 = arith.constant 1 : i64
  %f0 = arith.constant 0.0 : f32
  %row = tile.alloc : !row
  %full = tile.barriers : !one
  tile.elect cta {
    tile.init_barrier %full[%c0] count 1 : !one
    tile.fence_init
  }
  tile.sync %c0 threads 128
  tile.elect cta {
    tile.expect %full[%c0] bytes 256 : !one
    tile.load_bulk %x[%w0] to %row barrier %full[%c0] : !tile.global<f32>, !row, !one
  }
  tile.wait %full[%c0] parity %c0 : !one
  %cols = tile.read_cols %row : !row -> !tile.cols<64xf32>
  %frag = tile.map (%cols : !tile.cols<64xf32>) {
  ^bb0(%v: f32):
    tile.yield %v : f32
  } -> !tile.frag<64x64xf32>
  %sum = tile.reduce add %frag : !tile.frag<64x64xf32> -> !tile.rows<64xf32>
  %end = tile.load %n[%w0] : !tile.global<i32> -> i32
  %count:2 = scf.while (%i = %c0, %all = %sum) : (i32, !tile.rows<64xf32>) -> (i32, !tile.rows<64xf32>) {
    %more = arith.cmpi slt, %i, %end : i32
    scf.condition(%more) %i, %all : i32, !tile.rows<64xf32>
  } do {
  ^bb0(%i: i32, %all: !tile.rows<64xf32>):
    %next = arith.addi %i, %c1 : i32
    %twice = tile.map (%all : !tile.rows<64xf32>) {
    ^bb0(%v: f32):
      %w = arith.addf %v, %v : f32
      tile.yield %w : f32
    } -> !tile.rows<64xf32>
    scf.yield %next, %twice : i32, !tile.rows<64xf32>
  }
  %is = arith.cmpi eq, %count#0, %end : i32
  %kept = scf.if %is -> (!tile.rows<64xf32>) {
    scf.yield %count#1 : !tile.rows<64xf32>
  } else {
    %none = tile.splat %f0 : f32 -> !tile.rows<64xf32>
    scf.yield %none : !tile.rows<64xf32>
  }
  tile.store_rows %kept, %out[%w0] stride %w1 rows %c1 : !tile.rows<64xf32>, !tile.global<f32>
  tile.return
}
)mlir";

TEST(TileInterpret, FollowsLoopsAndBulkCopies) {
  Parsed parsed(kLoops);
  ASSERT_TRUE(parsed.module);
  Buffer x = Buffer::of(Element::F32, std::vector<float>(64, 0.25f)), n = Buffer::of({3}),
         out = Buffer::poisoned(Element::F32, 1);
  for (Effects effects : kAllEffects) {
    absl::Status status = interpretTile(parsed.kernel, {{&x, &n, &out}, {}}, {1, effects, 1, true});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(out.values[0], 64 * 0.25f * 8);
  }
}

TEST(TileInterpret, RefusesBulkCopiesFromBetweenUnits) {
  Parsed parsed(with(kLoops, "tile.load_bulk %x[%w0]", "tile.load_bulk %x[%w1]"));
  Buffer x = Buffer::of(Element::F32, std::vector<float>(80, 0.25f)), n = Buffer::of({3}),
         out = Buffer::poisoned(Element::F32, 1);
  absl::Status status = interpretTile(parsed.kernel, {{&x, &n, &out}, {}}, {});
  EXPECT_TRUE(absl::StartsWith(status.message(), "misaligned")) << status.message();
}

/// A box of f32 whose first column is the number in %n.
const char *kBox = R"mlir(
!box = !tile.smem<1x8x4xf32>
!one = !tile.barriers<1>
tile.kernel @box(%n: !tile.global<i32>, %out: !tile.global<f32>, %map: !tile.map) threads 128 shared 4096 items 1 {
  %c0 = arith.constant 0 : i32
  %w0 = arith.constant 0 : i64
  %first = tile.load %n[%w0] : !tile.global<i32> -> i32
  %box = tile.alloc : !box
  %full = tile.barriers : !one
  tile.elect cta {
    tile.init_barrier %full[%c0] count 1 : !one
    tile.fence_init
  }
  tile.sync %c0 threads 128
  tile.elect cta {
    tile.expect %full[%c0] bytes 128 : !one
    tile.load_tile %map[%first, %c0] to %box barrier %full[%c0] : !box, !one
  }
  tile.wait %full[%c0] parity %c0 : !one
  tile.return
}
)mlir";

// Mutation: a box from wherever its tensor has elements, which faults on the device.
TEST(TileInterpret, RefusesBoxesFromBetweenUnits) {
  Parsed parsed(kBox);
  ASSERT_TRUE(parsed.module);
  Buffer x = Buffer::of(Element::F32, drawNumbers(5, 96)), out = Buffer::poisoned(Element::F32, 1);
  TensorMap map{&x, 0, {12, 8}, {12}, {4, 8}, 0};
  for (int32_t first : {0, 1, 3, 4, 8}) {
    Buffer n = Buffer::of({first});
    absl::Status status = interpretTile(parsed.kernel, {{&n, &out}, {map}}, {});
    EXPECT_EQ(status.ok(), first % 4 == 0) << first << ": " << status.message();
    EXPECT_EQ(absl::StartsWith(status.message(), "misaligned"), first % 4 != 0) << status.message();
  }
}

/// Every third number from the second on, five of eight, through shared memory.
const char *kStrided = R"mlir(
!row = !tile.smem<1x1x8xf32>
!one = !tile.barriers<1>
tile.kernel @strided(%x: !tile.global<f32>, %out: !tile.global<f32>) threads 128 shared 4096 items 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %w0 = arith.constant 0 : i64
  %w1 = arith.constant 1 : i64
  %w3 = arith.constant 3 : i64
  %w8 = arith.constant 8 : i64
  %row = tile.alloc : !row
  %full = tile.barriers : !one
  tile.elect cta {
    tile.init_barrier %full[%c0] count 128 : !one
    tile.fence_init
  }
  tile.sync %c0 threads 128
  tile.copy_cols %x[%w1] stride %w3 columns %c5 to %row barrier %full[%c0] : !tile.global<f32>, !row, !one
  tile.wait %full[%c0] parity %c0 : !one
  %cols = tile.read_cols %row : !row -> !tile.cols<8xf32>
  %frag = tile.map (%cols : !tile.cols<8xf32>) {
  ^bb0(%v: f32):
    tile.yield %v : f32
  } -> !tile.frag<64x8xf32>
  tile.store_frag %frag, %out[%w0] stride %w8 rows %c1 : !tile.frag<64x8xf32>, !tile.global<f32>
  tile.return
}
)mlir";

// Mutation: neighbours for strided elements, elements read beyond the limit.
TEST(TileInterpret, CopiesStridedElements) {
  Parsed parsed(kStrided);
  ASSERT_TRUE(parsed.module);
  Buffer x = Buffer::of(Element::F32, drawNumbers(5, 14)), out = Buffer::poisoned(Element::F32, 8);
  for (Effects effects : kAllEffects) {
    absl::Status status = interpretTile(parsed.kernel, {{&x, &out}, {}}, {1, effects, 1, true});
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t column = 0; column < 8; ++column)
      EXPECT_EQ(out.values[column], column < 5 ? x.values[1 + 3 * column] : 0);
  }
}

TEST(TileInterpret, FindsStridedElementsThatAreNotWaitedFor) {
  Parsed parsed(with(kStrided, "tile.wait %full[%c0] parity %c0 : !one\n", "\n"));
  ASSERT_TRUE(parsed.module);
  Buffer x = Buffer::of(Element::F32, drawNumbers(5, 14)), out = Buffer::poisoned(Element::F32, 8);
  for (Effects effects : kAllEffects)
    EXPECT_FALSE(interpretTile(parsed.kernel, {{&x, &out}, {}}, {1, effects, 1, true}).ok());
}

/// Two rows through one place in shared memory: all threads read it, then let it be filled again.
const char *kRefill = R"mlir(
!row = !tile.smem<1x1x64xf32>
!two = !tile.barriers<2>
tile.kernel @refill(%x: !tile.global<f32>, %out: !tile.global<f32>) threads 128 shared 4096 items 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %w1 = arith.constant 1 : i64
  %w64 = arith.constant 64 : i64
  %row = tile.alloc : !row
  %bars = tile.barriers : !two
  tile.elect {
    tile.init_barrier %bars[%c0] count 1 : !two
    tile.init_barrier %bars[%c1] count 4 : !two
    tile.fence_init
  }
  tile.sync %c0 threads 128
  scf.for %i = %c0 to %c2 step %c1 : i32 {
    %wide = arith.extsi %i : i32 to i64
    %from = arith.muli %wide, %w64 : i64
    %free = arith.xori %i, %c1 : i32
    tile.elect {
      tile.wait %bars[%c1] parity %free : !two
      tile.expect %bars[%c0] bytes 256 : !two
      tile.load_bulk %x[%from] to %row barrier %bars[%c0] : !tile.global<f32>, !row, !two
    }
    tile.wait %bars[%c0] parity %i : !two
    %cols = tile.read_cols %row : !row -> !tile.cols<64xf32>
    tile.arrive %bars[%c1] : !two
    %frag = tile.map (%cols : !tile.cols<64xf32>) {
    ^bb0(%v: f32):
      tile.yield %v : f32
    } -> !tile.frag<64x64xf32>
    %top = tile.reduce max %frag : !tile.frag<64x64xf32> -> !tile.rows<64xf32>
    tile.store_rows %top, %out[%wide] stride %w1 rows %c1 : !tile.rows<64xf32>, !tile.global<f32>
  }
  tile.return
}
)mlir";

// One thread that arrives says nothing about what the other 127 have read.
TEST(TileInterpret, OneThreadArrivesForItself) {
  Buffer x = Buffer::of(Element::F32, drawNumbers(7, 128)), out = Buffer::poisoned(Element::F32, 2);
  const std::string elected = with(with(kRefill, "    tile.arrive %bars[%c1] : !two\n",
                                        "    tile.elect {\n      tile.arrive %bars[%c1] : !two\n    }\n"),
                                   "%bars[%c1] count 4", "%bars[%c1] count 1");
  for (Effects effects : kAllEffects) {
    Parsed all(kRefill), one(elected);
    ASSERT_TRUE(all.module && one.module);
    absl::Status status = interpretTile(all.kernel, {{&x, &out}, {}}, {1, effects, 1, true});
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(out.values[i], *std::max_element(x.values.begin() + static_cast<long>(64 * i),
                                                 x.values.begin() + static_cast<long>(64 * i + 64)));
    status = interpretTile(one.kernel, {{&x, &out}, {}}, {1, effects, 1, true});
    EXPECT_TRUE(absl::StartsWith(status.message(), "early release")) << status.message();
  }
}

} // namespace
