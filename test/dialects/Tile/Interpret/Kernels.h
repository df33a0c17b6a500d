//===- Kernels.h - Small kernels for tests of the interpreter ----*- C++ -*-===//
#pragma once

#include "dialects/Tile/Interpret/Interpret.h"

#include "mlir/Parser/Parser.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>
#include <string>

namespace weft::tile {

/// `text` with `from`, which stands in it exactly once, replaced by `to`.
inline std::string with(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(text.find(from, at + 1), std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// A module of one kernel.
struct Parsed {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelOp kernel;

  explicit Parsed(const std::string &text) {
    mlir::DialectRegistry registry;
    registerTileDialects(registry);
    context.appendDialectRegistry(registry);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    if (module)
      kernel = *module->getOps<KernelOp>().begin();
  }
};

inline std::vector<float> drawNumbers(uint32_t seed, size_t count) {
  std::mt19937 engine(seed);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = static_cast<float>(engine() % 2048) / 1024 - 1;
  return numbers;
}

/// Each of `items` items: out[64 item + i, n] = sum over k of a[64 item + i, k] b[n, k], k to 320, in five steps
/// through a ring of two stages: warpgroup 0 copies, warpgroup 1 multiplies.
inline const char *kPipeline = R"mlir(
!ring = !tile.smem<2x64x64xbf16, swizzle 128>
!tile = !tile.smem<1x64x64xbf16, swizzle 128>
!bars = !tile.barriers<2>
!acc = !tile.frag<64x64xf32>
tile.kernel @sum(%o: !tile.global<f32>, %a: !tile.map, %b: !tile.map) threads 256 shared 65536 items 3 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c5 = arith.constant 5 : i32
  %c64 = arith.constant 64 : i32
  %w64 = arith.constant 64 : i64
  %w4096 = arith.constant 4096 : i64
  %ra = tile.alloc : !ring
  %rb = tile.alloc : !ring
  %full = tile.barriers : !bars
  %empty = tile.barriers : !bars
  tile.elect cta {
    tile.init_barrier %full[%c0] count 1 : !bars
    tile.init_barrier %full[%c1] count 1 : !bars
    tile.init_barrier %empty[%c0] count 4 : !bars
    tile.init_barrier %empty[%c1] count 4 : !bars
    tile.fence_init
  }
  tile.sync %c0 threads 256
  %first = tile.cta
  %grid = tile.grid_size
  tile.specialize producer 24 {
    %x:2 = scf.for %item = %first to %c3 step %grid iter_args(%s0 = %c0, %p0 = %c1) -> (i32, i32) : i32 {
      %row = arith.muli %item, %c64 : i32
      %y:2 = scf.for %k = %c0 to %c5 step %c1 iter_args(%s = %s0, %p = %p0) -> (i32, i32) : i32 {
        %column = arith.muli %k, %c64 : i32
        %ta = tile.stage %ra[%s] : !ring -> !tile
        %tb = tile.stage %rb[%s] : !ring -> !tile
        tile.elect {
          tile.wait %empty[%s] parity %p : !bars
          tile.expect %full[%s] bytes 16384 : !bars
          tile.load_tile %a[%column, %row] to %ta barrier %full[%s] : !tile, !bars
          tile.load_tile %b[%column, %c0] to %tb barrier %full[%s] : !tile, !bars
        }
        %turn = arith.xori %s, %c1 : i32
        %flip = arith.xori %p, %s : i32
        scf.yield %turn, %flip : i32, i32
      }
      scf.yield %y#0, %y#1 : i32, i32
    }
  } consumers 240 {
    %x:2 = scf.for %item = %first to %c3 step %grid iter_args(%s0 = %c0, %p0 = %c0) -> (i32, i32) : i32 {
      %zero = tile.zero : !acc
      %y:3 = scf.for %k = %c0 to %c5 step %c1 iter_args(%s = %s0, %p = %p0, %sum = %zero) -> (i32, i32, !acc) : i32 {
        %ta = tile.stage %ra[%s] : !ring -> !tile
        %tb = tile.stage %rb[%s] : !ring -> !tile
        tile.wait %full[%s] parity %p : !bars
        tile.fence_products
        %under = tile.product %ta, %tb init %sum : !tile, !tile init !acc -> !acc
        tile.commit_products
        %next = tile.wait_products 0 (%under) : !acc -> !acc
        tile.arrive %empty[%s] : !bars
        %turn = arith.xori %s, %c1 : i32
        %flip = arith.xori %p, %s : i32
        scf.yield %turn, %flip, %next : i32, i32, !acc
      }
      %wide = arith.extsi %item : i32 to i64
      %offset = arith.muli %wide, %w4096 : i64
      tile.store_frag %y#2, %o[%offset] stride %w64 rows %c64 : !acc, !tile.global<f32>
      scf.yield %y#0, %y#1 : i32, i32
    }
  }
  tile.return
}
)mlir";

/// out[item] = item + 1, of seven items: a thread of warpgroup 0 asks for them and tells warpgroup 1.
inline const char *kItems = R"mlir(
!bars = !tile.barriers<2>
!cell = !tile.cells<1>
tile.kernel @items(%o: !tile.global<i32>) threads 256 shared 4096 items 7 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %cell = tile.cells : !cell
  %b = tile.barriers : !bars
  tile.elect cta {
    tile.init_barrier %b[%c0] count 1 : !bars
    tile.init_barrier %b[%c1] count 4 : !bars
    tile.fence_init
  }
  tile.sync %c0 threads 256
  tile.specialize producer 24 {
    tile.elect {
      %end = scf.while (%p = %c1) : (i32) -> i32 {
        %number = tile.next_item
        tile.wait %b[%c1] parity %p : !bars
        tile.write %number, %cell[%c0] : !cell
        tile.arrive %b[%c0] : !bars
        %more = arith.cmpi slt, %number, %c7 : i32
        %flip = arith.xori %p, %c1 : i32
        scf.condition(%more) %flip : i32
      } do {
      ^bb0(%p: i32):
        scf.yield %p : i32
      }
    }
  } consumers 240 {
    %end = scf.while (%p = %c0) : (i32) -> i32 {
      tile.wait %b[%c0] parity %p : !bars
      %number = tile.read %cell[%c0] : !cell
      tile.arrive %b[%c1] : !bars
      %more = arith.cmpi slt, %number, %c7 : i32
      scf.if %more {
        %place = arith.extsi %number : i32 to i64
        %next = arith.addi %number, %c1 : i32
        tile.store %next, %o[%place] : i32, !tile.global<i32>
      }
      %flip = arith.xori %p, %c1 : i32
      scf.condition(%more) %flip : i32
    } do {
    ^bb0(%p: i32):
      scf.yield %p : i32
    }
  }
  tile.return
}
)mlir";

/// Operands of kPipeline and what it should give.
struct PipelineData {
  static constexpr size_t kItems = 3, kDepth = 320, kRows = kItems * 64;
  Buffer a = Buffer::of(Element::Bf16, drawNumbers(1, kRows *kDepth));
  Buffer b = Buffer::of(Element::Bf16, drawNumbers(2, 64 * kDepth));
  Buffer out = Buffer::poisoned(Element::F32, kRows * 64);

  Arguments arguments() {
    auto map = [](Buffer &buffer, int64_t rows) {
      return TensorMap{&buffer, 0, {kDepth, rows}, {kDepth}, {64, 64}, 128};
    };
    return {{&out}, {map(a, kRows), map(b, 64)}};
  }

  /// Largest distance of the first items of `out` from the sum over k below `depth` in double, NaN if there is one.
  double distance(size_t items = kItems, size_t depth = kDepth) const {
    double worst = 0;
    for (size_t i = 0; i < items * 64; ++i)
      for (size_t n = 0; n < 64; ++n) {
        double sum = 0;
        for (size_t k = 0; k < depth; ++k)
          sum += static_cast<double>(a.values[i * kDepth + k]) * b.values[n * kDepth + k];
        double distance = std::abs(sum - out.values[i * 64 + n]);
        worst = std::isnan(distance) || distance > worst ? distance : worst;
        if (std::isnan(worst))
          return worst;
      }
    return worst;
  }
};

/// Runs kPipeline, or a text made from it.
inline absl::Status runPipeline(const std::string &text, PipelineData &data, const Schedule &schedule) {
  Parsed parsed(text);
  if (!parsed.module)
    return absl::InvalidArgumentError("the text is no module");
  return interpretTile(parsed.kernel, data.arguments(), schedule);
}

} // namespace weft::tile
