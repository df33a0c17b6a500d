//===- rows-test.cpp - Fused kernels against float64 loops ----------------===//
#include "test/passes/Codegen/KernelHarness.h"

#include <gtest/gtest.h>

namespace weft::test {
namespace {

const std::string kEps = "{eps = 1.0e-5 : f64}";

std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Text with X, G, P, S for the types of a row tensor, a gain, its parts and a row's number.
std::string inRows(const std::string &text, int64_t rows, int64_t width, int64_t chunks) {
  std::string row = "batch:1 pos:" + std::to_string(rows), dim = " dim:" + std::to_string(width);
  std::string result = replaceAll(text, "$X", tensor(row + dim));
  result = replaceAll(result, "$G", tensor(dim));
  result = replaceAll(result, "$P", tensor("chunk:" + std::to_string(chunks) + dim));
  result = replaceAll(result, "$N", std::to_string(chunks));
  return replaceAll(result, "$E", kEps);
}

/// Odd sizes: below, at and above the vector width; more chunks than rows.
const std::vector<std::array<int64_t, 3>> kShapes{
    {5, 7, 2}, {3, 16, 8}, {9, 33, 4}, {17, 128, 5}, {2, 771, 3}};

// Catches: a mean over the padded width, a gain along the wrong axis, a lost
// residual, a result written before its last reader.
TEST(Rows, residualAndNorm) {
  for (auto [rows, width, chunks] : kShapes)
    for (int shared : {0, 1}) {
      KernelHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
        (%x: $X, %y: $X, %g: $G, %b: $G) -> ($X, $X) {
          %z = weft.binary add %x, %y : ($X, $X) -> $X
          %n = weft.layer_norm %z $E : ($X) -> $X
          %h = weft.binary mul %n, %g : ($X, $G) -> $X
          %o = weft.binary add %h, %b : ($X, $G) -> $X
          weft.yield %z, %o : $X, $X
        })",
                                   rows, width, chunks));
      if (shared)
        harness.inPlace = {{0, 0}, {1, 1}};
      harness.check(2e-6);
    }
}

// Catches: partial sums of a neighbour's rows, chunks without rows left as they
// were, statistics of dy instead of dy g.
TEST(Rows, backwardOfNorm) {
  for (auto [rows, width, chunks] : kShapes) {
    KernelHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
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
    harness.inPlace = {{0, 3}};
    harness.check(4e-6);
  }
}

TEST(Rows, rmsNormAndItsGradient) {
  for (auto [rows, width, chunks] : kShapes) {
    KernelHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
      (%x: $X, %dy: $X) -> ($X, $X) {
        %n = weft.rms_norm %x $E : ($X) -> $X
        %dx = weft.rms_norm_grad %x, %dy $E : ($X, $X) -> $X
        weft.yield %n, %dx : $X, $X
      })",
                                 rows, width, chunks));
    // In the storage of x, which the second loop reads: it must wait.
    harness.inPlace = {{0, 0}, {1, 1}};
    harness.check(4e-6);
  }
}

TEST(Rows, softmaxAndItsGradient) {
  for (auto [rows, width, chunks] : kShapes) {
    KernelHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
      (%x: $X, %dy: $X) -> ($X, $X) {
        %y = weft.softmax %x : ($X) -> $X
        %dx = weft.softmax_grad %y, %dy : ($X, $X) -> $X
        weft.yield %y, %dx : $X, $X
      })",
                                 rows, width, chunks));
    harness.fill[0] = [](size_t, size_t i) { return static_cast<double>(i * 37 % 101) - 90; };
    harness.check(4e-6);
  }
}

// Rotation of normalised heads: the tail of half a head, positions of another axis.
TEST(Rows, headsAndRope) {
  for (int64_t head : {2, 8, 32, 40, 256}) {
    std::string q = tensor("batch:2 pos:5 heads:3 head:" + std::to_string(head));
    std::string g = tensor("head:" + std::to_string(head)), position = tensor("batch:2 pos:5", "i32");
    std::string table = "tensor<9x" + std::to_string(head / 2) + "x2xf32, #weft.axes<place, half, two>>";
    std::string part = tensor("chunk:4 head:" + std::to_string(head));
    for (const char *inverse : {"", "inverse "}) {
      KernelHarness harness("weft.kernel @k rows [\"batch\", \"pos\"] chunks 4 (%q: " + q + ", %g: " + g +
                            ", %p: " + position + ", %t: " + table + ") -> (" + q + ", " + part +
                            ") {\n"
                            "%n = weft.rms_norm %q {eps = 1.0e-6 : f64} : (" +
                            q + ") -> " + q + "\n%h = weft.binary mul %n, %g : (" + q + ", " + g + ") -> " +
                            q + "\n%r = weft.rope %h, %p table %t " + inverse + "{base = 1.0e4 : f64} : (" +
                            q + ", " + position + ", " + table + ") -> " + q +
                            "\n%s = weft.partial_sum %r over [\"batch\", \"pos\"] : (" + q + ") -> " + part +
                            "\nweft.yield %r, %s : " + q + ", " + part + " }");
      harness.fill[2] = [](size_t, size_t i) { return static_cast<double>(i * 5 % 9); };
      harness.fill[3] = [head](size_t, size_t i) {
        double angle = static_cast<double>(i / static_cast<size_t>(head)) *
                       std::pow(1e4, -static_cast<double>(i % static_cast<size_t>(head) / 2) * 2 /
                                         static_cast<double>(head));
        return i % 2 ? std::sin(angle) : std::cos(angle);
      };
      harness.check(3e-6);
    }
  }
}

TEST(Rows, sumOfInnerAxes) {
  std::string x = tensor("batch:2 pos:3 heads:4 dim:21"), kept = tensor("batch:2 pos:3 dim:21");
  std::string number = tensor("batch:2 pos:3"), heads = tensor("batch:2 pos:3 heads:4");
  KernelHarness harness(
      "weft.kernel @k rows [\"batch\", \"pos\"] chunks 3 (%x: " + x + ") -> (" + kept + ", " + number + ", " +
      heads + ", " + x + ") {\n%a = weft.sum_to %x : (" + x + ") -> " + kept + "\n%b = weft.sum_to %x : (" +
      x + ") -> " + number + "\n%c = weft.sum_to %x : (" + x + ") -> " + heads +
      "\n%d = weft.binary mul %x, %b : (" + x + ", " + number + ") -> " + x +
      "\nweft.yield %a, %b, %c, %d : " + kept + ", " + number + ", " + heads + ", " + x + " }");
  harness.check(1e-5);
}

/// All functions and slopes over a range that reaches both ends.
TEST(Rows, functions) {
  for (const char *fn :
       {"neg", "exp", "log", "sqrt", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "relu"}) {
    SCOPED_TRACE(fn);
    std::string t = tensor("n:1003");
    KernelHarness harness("weft.kernel @k rows [] chunks 7 (%x: " + t + ", %dy: " + t + ") -> (" + t + ", " +
                          t + ") {\n%y = weft.unary " + fn + " %x : (" + t + ") -> " + t +
                          "\n%dx = weft.unary_grad " + fn + " %x, %dy : (" + t + ", " + t + ") -> " + t +
                          "\nweft.yield %y, %dx : " + t + ", " + t + " }");
    bool positive = std::string(fn) == "log" || std::string(fn) == "sqrt";
    harness.fill[0] = [positive](size_t, size_t i) {
      double x = static_cast<double>(i) / 25 - 20;
      return positive ? std::abs(x) + 0.01 : x;
    };
    harness.inPlace = {{1, 1}};
    harness.check(1e-6);
  }
}

TEST(Rows, nanStays) {
  for (const char *fn : {"exp", "log", "sqrt", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "relu"}) {
    SCOPED_TRACE(fn);
    std::string t = tensor("n:19");
    KernelHarness harness("weft.kernel @k rows [] chunks 1 (%x: " + t + ") -> (" + t +
                          ") {\n%y = weft.unary " + fn + " %x : (" + t + ") -> " + t +
                          "\nweft.yield %y : " + t + " }");
    harness.fill[0] = [](size_t, size_t i) { return i % 2 ? std::nan("") : 1.0; };
    harness.check(1e-6);
  }
}

TEST(Rows, powers) {
  for (const char *power : {"2.0", "3.0", "-1.0", "0.5", "-0.5", "0.0", "1.7"}) {
    SCOPED_TRACE(power);
    std::string t = tensor("n:37");
    KernelHarness harness("weft.kernel @k rows [] chunks 2 (%x: " + t + ", %z: " + t + ") -> (" + t + ", " +
                          t + ") {\n%c = weft.constant {value = " + power + " : f64} : " + t +
                          "\n%y = weft.binary pow %x, %c : (" + t + ", " + t + ") -> " + t +
                          "\n%w = weft.binary pow %x, %z : (" + t + ", " + t + ") -> " + t +
                          "\nweft.yield %y, %w : " + t + ", " + t + " }");
    harness.fill[0] = [](size_t, size_t i) { return 0.1 + static_cast<double>(i) / 7; };
    harness.check(5e-6);
  }
}

// Catches: another key, stream or counter, a mask by place in the chunk.
TEST(Rows, dropout) {
  for (std::string rows : {"[]", "[\"batch\", \"pos\"]"}) {
    std::string x = tensor("batch:2 pos:3 dim:23");
    KernelHarness harness("weft.kernel @k rows " + rows + " chunks 3 (%x: " + x + ", %s: tensor<i32>) -> (" +
                          x + ") {\n%y = weft.dropout %x noise %s \"block.2.attn\" {rate = 0.3 : f64} : (" +
                          x + ", tensor<i32>) -> " + x + "\nweft.yield %y : " + x + " }");
    harness.fill[1] = [](size_t, size_t) { return 20241130.0; };
    harness.check(1e-6);
  }
}

TEST(Rows, adamw) {
  for (double norm : {0.5, 40.0, std::nan("")}) {
    std::string t = tensor("n:75");
    KernelHarness harness(
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
    harness.check(2e-6);
  }
}

// Muon's step with its skip: a scale that is NaN keeps what there was, whatever the new values are.
TEST(Rows, accept) {
  for (double scale : {0.5, std::nan("")}) {
    std::string t = tensor("n:75");
    KernelHarness harness("weft.kernel @k rows [] chunks 4 (%p: " + t + ", %y: " + t +
                          ", %r: tensor<f32>, %s: tensor<f32>) -> (" + t +
                          ") {\n%d = weft.binary mul %y, %r : (" + t + ", tensor<f32>) -> " + t +
                          "\n%n = weft.binary sub %p, %d : (" + t + ", " + t + ") -> " + t +
                          "\n%a = weft.accept %p, %n scale %s : (" + t + ", " + t + ", tensor<f32>) -> " + t +
                          "\nweft.yield %a : " + t + " }");
    harness.fill[2] = [](size_t, size_t) { return 0.02; };
    harness.fill[3] = [scale](size_t, size_t) { return scale; };
    harness.inPlace = {{0, 0}};
    harness.check(2e-6);
  }
}

/// The same numbers from narrow vectors: no width is baked in.
TEST(Rows, narrowVectors) {
  for (int bits : {128, 256}) {
    KernelHarness harness(inRows(R"(weft.kernel @k rows ["batch", "pos"] chunks $N
      (%x: $X, %g: $G) -> ($X) {
        %n = weft.layer_norm %x $E : ($X) -> $X
        %o = weft.binary mul %n, %g : ($X, $G) -> $X
        weft.yield %o : $X
      })",
                                 5, 37, 2));
    harness.vectorBits = bits;
    harness.check(2e-6);
  }
}

} // namespace
} // namespace weft::test
