//===- rows-test.cpp - Fused kernels as thread blocks ---------------------===//
#include "test/passes/Codegen/Gpu/GpuHarness.h"

#include "test/passes/Codegen/KernelHarness.h"

#include <cmath>
#include <gtest/gtest.h>

namespace weft::test {
namespace {

std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// $X, $G, $P, $N: a tensor of rows, a gain, its parts, their number.
std::string inRows(const std::string &text, int64_t rows, int64_t width, int64_t chunks) {
  std::string row = "batch:2 pos:" + std::to_string(rows), dim = " dim:" + std::to_string(width);
  std::string result = replaceAll(text, "$X", tensor(row + dim));
  result = replaceAll(result, "$G", tensor(dim));
  result = replaceAll(result, "$P", tensor("chunk:" + std::to_string(chunks) + dim));
  result = replaceAll(result, "$N", std::to_string(chunks));
  return replaceAll(result, "$E", "{eps = 1.0e-5 : f64}");
}

/// Below a warp's vectors, a warp's, a block's; sizes that no vector divides.
const std::vector<std::array<int64_t, 3>> kShapes{{5, 7, 2},   {3, 16, 8},  {9, 33, 4},  {6, 128, 5},
                                                  {2, 771, 3}, {3, 768, 4}, {2, 3072, 2}};

constexpr double kHalf = 8e-3, kFloat = 1e-5; // a rounding to bf16 is 2^-9 of a value

// Catches: a mean over threads without elements, a gain along the wrong axis, a
// lost residual, a barrier left out, a result written before its last reader.
TEST(GpuRows, residualAndNorm) {
  for (auto [rows, width, chunks] : kShapes)
    for (bool halves : {false, true}) {
      GpuHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
        (%x: $X, %y: $X, %g: $G, %b: $G) -> ($X, $X) {
          %z = weft.binary add %x, %y : ($X, $X) -> $X
          %n = weft.layer_norm %z $E : ($X) -> $X
          %h = weft.binary mul %n, %g : ($X, $G) -> $X
          %o = weft.binary add %h, %b : ($X, $G) -> $X
          weft.yield %z, %o : $X, $X
        })",
                                rows, width, chunks));
      if (halves)
        harness.storeHalves({0, 1}, {0, 1});
      harness.inPlace = {{0, 0}, {1, 1}};
      harness.check(halves ? kHalf : kFloat);
    }
}

// Catches: partial sums of a neighbour's rows, chunks without rows left as they
// were, statistics of dy instead of dy g, teams of a block added twice, a row read
// before its copy is there, the copy of the row after it.
TEST(GpuRows, backwardOfNorm) {
  // Teams with several rows a chunk, which are copied ahead.
  auto shapes = kShapes;
  shapes.insert(shapes.end(), {{40, 768, 2}, {9, 3072, 2}});
  for (auto [rows, width, chunks] : shapes)
    for (bool halves : {false, true}) {
      GpuHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
      (%x: $X, %dy: $X, %g: $G, %r: $X) -> ($X, $P, $P) {
        %d = weft.binary mul %dy, %g : ($X, $G) -> $X
        %n = weft.layer_norm %x $E : ($X) -> $X
        %p = weft.binary mul %dy, %n : ($X, $X) -> $X
        %dg = weft.partial_sum %p over ["batch", "pos"] : ($X) -> $P
        %db = weft.partial_sum %dy over ["batch", "pos"] : ($X) -> $P
        %dx = weft.layer_norm_grad %x, %d $E : ($X, $X) -> $X
        %s = weft.binary add %dx, %r : ($X, $X) -> $X
        weft.yield %s, %dg, %db : $X, $P, $P
      })",
                                rows, width, chunks));
      if (halves)
        harness.storeHalves({0, 1, 3}, {0});
      harness.inPlace = {{0, 3}};
      harness.check(halves ? kHalf : kFloat);
    }
}

TEST(GpuRows, rmsNormSoftmaxAndGradients) {
  for (auto [rows, width, chunks] : kShapes) {
    GpuHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
      (%x: $X, %dy: $X) -> ($X, $X, $X, $X) {
        %n = weft.rms_norm %x $E : ($X) -> $X
        %dx = weft.rms_norm_grad %x, %dy $E : ($X, $X) -> $X
        %y = weft.softmax %x : ($X) -> $X
        %ds = weft.softmax_grad %y, %dy : ($X, $X) -> $X
        weft.yield %n, %dx, %y, %ds : $X, $X, $X, $X
      })",
                              rows, width, chunks));
    harness.inPlace = {{0, 0}, {1, 1}};
    harness.check(kFloat);
  }
}

// Rotation of normalised heads; q and fewer keys in one kernel. Catches: halves
// exchanged with the wrong sign, a head's sum that reaches into the next head.
TEST(GpuRows, headsAndRope) {
  for (int64_t head : {8, 32, 64, 128})
    for (bool halves : {false, true}) {
      std::string size = std::to_string(head);
      std::string q = tensor("batch:2 pos:5 heads:3 head:" + size), g = tensor("head:" + size);
      std::string k = tensor("batch:2 pos:5 kv:1 head:" + size), position = tensor("batch:2 pos:5", "i32");
      std::string table = "tensor<9x" + std::to_string(head / 2) + "x2xf32, #weft.axes<place, half, two>>";
      std::string part = tensor("chunk:4 head:" + size);
      for (const char *inverse : {"", "inverse "}) {
        std::string rope = std::string(" table %t ") + inverse + "{base = 1.0e4 : f64} : (";
        GpuHarness harness("weft.kernel @k rows [\"batch\", \"pos\"] chunks 4 (%q: " + q + ", %g: " + g +
                           ", %p: " + position + ", %t: " + table + ", %k: " + k + ") -> (" + q + ", " +
                           part + ", " + k + ") {\n%n = weft.rms_norm %q {eps = 1.0e-6 : f64} : (" + q +
                           ") -> " + q + "\n%h = weft.binary mul %n, %g : (" + q + ", " + g + ") -> " + q +
                           "\n%r = weft.rope %h, %p" + rope + q + ", " + position + ", " + table + ") -> " +
                           q + "\n%s = weft.partial_sum %r over [\"batch\", \"pos\"] : (" + q + ") -> " +
                           part + "\n%rk = weft.rope %k, %p" + rope + k + ", " + position + ", " + table +
                           ") -> " + k + "\nweft.yield %r, %s, %rk : " + q + ", " + part + ", " + k + " }");
        harness.fill[2] = [](size_t, size_t i) { return static_cast<double>(i * 5 % 9); };
        harness.fill[3] = [head](size_t, size_t i) {
          auto at = static_cast<size_t>(head);
          double angle = static_cast<double>(i / at) *
                         std::pow(1e4, -static_cast<double>(i % at / 2) * 2 / static_cast<double>(head));
          return i % 2 ? std::sin(angle) : std::cos(angle);
        };
        if (halves)
          harness.storeHalves({0, 4}, {0, 2});
        harness.inPlace = {{2, 4}};
        harness.check(halves ? kHalf : kFloat);
      }
    }
}

// A number a head and a number a row, which one thread writes and many read.
TEST(GpuRows, sumsInsideRows) {
  std::string x = tensor("batch:2 pos:3 heads:4 dim:16");
  std::string number = tensor("batch:2 pos:3"), heads = tensor("batch:2 pos:3 heads:4");
  GpuHarness harness("weft.kernel @k rows [\"batch\", \"pos\"] chunks 3 (%x: " + x + ", %n: " + number +
                     ", %w: " + heads + ") -> (" + number + ", " + heads + ", " + x +
                     ") {\n%b = weft.sum_to %x : (" + x + ") -> " + number + "\n%c = weft.sum_to %x : (" + x +
                     ") -> " + heads + "\n%e = weft.binary add %b, %n : (" + number + ", " + number +
                     ") -> " + number + "\n%f = weft.binary mul %c, %w : (" + heads + ", " + heads + ") -> " +
                     heads + "\n%d = weft.binary mul %x, %f : (" + x + ", " + heads + ") -> " + x +
                     "\n%h = weft.binary mul %d, %e : (" + x + ", " + number + ") -> " + x +
                     "\nweft.yield %e, %f, %h : " + number + ", " + heads + ", " + x + " }");
  harness.inPlace = {{0, 1}, {1, 2}};
  harness.check(kFloat);
}

// What registers and shuffles can't do runs as on a CPU.
TEST(GpuRows, slowPath) {
  std::string x = tensor("batch:2 pos:3 heads:4 dim:21"), kept = tensor("batch:2 pos:3 dim:21");
  GpuHarness harness("weft.kernel @k rows [\"batch\", \"pos\"] chunks 3 (%x: " + x + ") -> (" + kept +
                     ") {\n%a = weft.sum_to %x : (" + x + ") -> " + kept + "\n%b = weft.unary silu %a : (" +
                     kept + ") -> " + kept + "\nweft.yield %b : " + kept + " }");
  harness.maySlow = true;
  harness.storeHalves({0}, {0});
  harness.check(kHalf);
}

/// All functions and slopes over a range that reaches both ends.
TEST(GpuFlat, functions) {
  for (const char *fn :
       {"neg", "exp", "log", "sqrt", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "relu"}) {
    SCOPED_TRACE(fn);
    std::string t = tensor("n:3003");
    GpuHarness harness("weft.kernel @k rows [] chunks 7 (%x: " + t + ", %dy: " + t + ") -> (" + t + ", " + t +
                       ") {\n%y = weft.unary " + fn + " %x : (" + t + ") -> " + t +
                       "\n%dx = weft.unary_grad " + fn + " %x, %dy : (" + t + ", " + t + ") -> " + t +
                       "\nweft.yield %y, %dx : " + t + ", " + t + " }");
    bool positive = std::string(fn) == "log" || std::string(fn) == "sqrt";
    harness.fill[0] = [positive](size_t, size_t i) {
      double x = static_cast<double>(i) / 75 - 20;
      return positive ? std::abs(x) + 0.01 : x;
    };
    harness.inPlace = {{1, 1}};
    harness.check(3e-6);
  }
}

// A convert alone, at each way that operands may lie. Catches: vectors read
// where no multiple of 16 bytes is, a tail that is left out.
TEST(GpuFlat, convertsAndPlaces) {
  for (int64_t count : {1, 5, 2048, 4099})
    for (size_t misplaced : {0, 4, 8}) {
      std::string t = tensor("n:" + std::to_string(count));
      GpuHarness harness("weft.kernel @k rows [] chunks 1 (%x: " + t + ") -> (" + t +
                         ") {\nweft.yield %x : " + t + " }");
      harness.storeHalves({}, {0});
      harness.misplaced = misplaced;
      harness.check(4e-3);
    }
}

// Catches: another key, stream or counter, a mask by place in the block.
TEST(GpuFlat, dropout) {
  for (std::string rows : {"[]", "[\"batch\", \"pos\"]"}) {
    std::string x = tensor("batch:2 pos:3 dim:24");
    GpuHarness harness("weft.kernel @k rows " + rows + " chunks 3 (%x: " + x + ", %s: tensor<i32>) -> (" + x +
                       ") {\n%y = weft.dropout %x noise %s \"block.2.attn\" {rate = 0.3 : f64} : (" + x +
                       ", tensor<i32>) -> " + x + "\nweft.yield %y : " + x + " }");
    harness.fill[1] = [](size_t, size_t) { return 20241130.0; };
    harness.check(1e-6);
  }
}

TEST(GpuFlat, adamw) {
  for (double norm : {0.5, 40.0, std::nan("")}) {
    std::string t = tensor("n:3075");
    GpuHarness harness(
        "weft.kernel @k rows [] chunks 4 (%p: " + t + ", %m: " + t + ", %v: " + t + ", %g: " + t +
        ", %h: tensor<3xf32>, %n: tensor<f32>, %f: tensor<f32>) -> (" + t + ", " + t + ", " + t +
        ", tensor<f32>) {\n%s = weft.clip_scale %n, %f 1.0 : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
        "%a, %b, %c = weft.adamw %p, %m, %v, %g hyper %h scale %s betas 0.9, 0.999 eps 1.0e-8 decay 0.1 : (" +
        t + ", " + t + ", " + t + ", " + t + ", tensor<3xf32>, tensor<f32>) -> (" + t + ", " + t + ", " + t +
        ")\nweft.yield %a, %b, %c, %s : " + t + ", " + t + ", " + t + ", tensor<f32> }");
    harness.fill[2] = [](size_t, size_t i) { return 0.01 * static_cast<double>(i + 1); };
    harness.fill[4] = [](size_t, size_t i) { return std::array{0.01, 10.0, 1000.0}[i]; };
    harness.fill[5] = [norm](size_t, size_t) { return norm; };
    harness.fill[6] = [](size_t, size_t) { return 0.25; };
    harness.inPlace = {{0, 0}, {1, 1}, {2, 2}};
    harness.check(kFloat);
  }
}

} // namespace
} // namespace weft::test
