//===- golden-test.cpp - Faults that others reported, worked by hand -------===//
#include "test/dialects/Weft/Interpret/Fixture.h"

using namespace weft;
using namespace weft::test;

namespace {

/// Runs the one function @f of `text` on `inputs`.
llvm::SmallVector<Array> runText(const std::string &text, llvm::ArrayRef<Array> inputs) {
  Fixture fixture;
  auto module = fixture.parse(text);
  auto results = module ? fixture.run(*module, inputs) : std::nullopt;
  EXPECT_TRUE(results) << fixture.messages;
  return results ? *results : llvm::SmallVector<Array>{};
}

Array scalar(double value) { return Array(llvm::ArrayRef<int64_t>{}, std::vector<double>{value}); }

void expectNear(const Array &found, const std::vector<double> &expected, double tolerance = 1e-12) {
  ASSERT_EQ(found.data.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found.data[i], expected[i], tolerance) << "element " << i;
}

/// Flat probe: q is zero, the value of key j is j, so row i is the mean of the
/// places that it sees.
std::vector<double> flatProbe(int64_t places, int64_t window, const std::vector<double> &documents) {
  Axes rows = {{"batch", 1}, {"pos", places}}, values = {{"batch", 1}, {"pos", places}, {"channel", 1}};
  std::string r = tensor(rows, "i32"), v = tensor(values), w = "tensor<1xi32, #weft.axes<heads>>";
  std::string lse = tensor(rows);
  std::string text = "func.func @f(%v: " + v + ", %d: " + r + ") -> " + v + " {\n" +
                     "%q = weft.constant {value = 0.0 : f64} : " + v + "\n" + "%w = weft.integers [" +
                     std::to_string(window) + "] : " + w + "\n" +
                     "%o:2 = weft.attend %q, %q, %v windows %w documents %d {scale = 1.0 : f64} : (" + v +
                     ", " + v + ", " + v + ", " + w + ", " + r + ") -> (" + v + ", " + lse +
                     ")\nreturn %o#0 : " + v + "\n}";
  std::vector<double> places0;
  for (int64_t j = 0; j < places; ++j)
    places0.push_back(static_cast<double>(j));
  auto results = runText(text, {Array({1, places, 1}, places0), Array({1, places}, documents)});
  return results.empty() ? std::vector<double>{} : results.front().data;
}

// M1. One key too many gives 1.5 in row 3, one too few 6.5 in row 7.
TEST(Golden, WindowCountsTheQueryItself) {
  std::vector<double> one(8, 0.0);
  expectNear(Array({8}, flatProbe(8, 3, one)), {0, 0.5, 1, 2, 3, 4, 5, 6});
  expectNear(Array({8}, flatProbe(8, 1, one)), {0, 1, 2, 3, 4, 5, 6, 7});
  expectNear(Array({8}, flatProbe(8, 2, one)), {0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5});
  expectNear(Array({8}, flatProbe(8, 2147483647, one)), {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5});
}

TEST(Golden, DocumentsDoNotSeeEachOther) {
  expectNear(Array({6}, flatProbe(6, 100, {0, 0, 2, 3, 3, 3})), {0, 0.5, 2, 3, 3.5, 4});
  expectNear(Array({6}, flatProbe(6, 2, {0, 0, 2, 3, 3, 3})), {0, 0.5, 2, 3, 3.5, 4.5});
}

// M4 (b). Rows 2 and 3 have no key: zeros, and nothing of them reaches the others.
TEST(Golden, RowsWithoutKeysAreZero) {
  expectNear(Array({4}, flatProbe(4, 100, {0, 0, 9, 9})), {0, 0.5, 0, 0});
}

// M4 (a).
TEST(Golden, WindowBelowOneIsRefused) {
  Fixture fixture;
  auto module = fixture.parse(
      "func.func @f(%q: tensor<1x2x1xf64, #weft.axes<batch, pos, c>>, %w: tensor<1xi32, #weft.axes<heads>>) "
      "-> "
      "tensor<1x2x1xf64, #weft.axes<batch, pos, c>> {\n"
      "%o:2 = weft.attend %q, %q, %q windows %w {scale = 1.0 : f64} : (tensor<1x2x1xf64, #weft.axes<batch, "
      "pos, "
      "c>>, tensor<1x2x1xf64, #weft.axes<batch, pos, c>>, tensor<1x2x1xf64, #weft.axes<batch, pos, c>>, "
      "tensor<1xi32, #weft.axes<heads>>) -> (tensor<1x2x1xf64, #weft.axes<batch, pos, c>>, tensor<1x2xf64, "
      "#weft.axes<batch, pos>>)\n return %o#0 : tensor<1x2x1xf64, #weft.axes<batch, pos, c>>\n}");
  ASSERT_TRUE(module);
  EXPECT_FALSE(fixture.run(*module, {Array({1, 2, 1}, {1, 2}), Array({1}, {0})}));
  EXPECT_NE(fixture.messages.find("window of head 0"), std::string::npos) << fixture.messages;
}

// S1. Six query heads on two key heads: repeated, not tiled.
TEST(Golden, QueryHeadsOfAGroupFollowOneAnother) {
  constexpr int64_t kPlaces = 5;
  std::string rows = tensor({{"batch", 1}, {"pos", kPlaces}}, "i32");
  std::string q = tensor({{"batch", 1}, {"pos", kPlaces}, {"kv", 2}, {"group", 3}, {"c", 1}});
  std::string k = tensor({{"batch", 1}, {"pos", kPlaces}, {"kv", 2}, {"c", 1}});
  std::string lse = tensor({{"batch", 1}, {"pos", kPlaces}, {"kv", 2}, {"group", 3}});
  std::string w = tensor({{"heads", 6}}, "i32"), in = q + ", " + k + ", " + k + ", " + w + ", " + rows;
  std::string text =
      "func.func @f(%v: " + k + ", %dout: " + q + ", %d: " + rows + ") -> (" + q + ", " + k + ") {\n" +
      "%q = weft.constant {value = 0.0 : f64} : " + q + "\n%k = weft.constant {value = 0.0 : f64} : " + k +
      "\n" + "%w = weft.integers [9, 9, 9, 9, 9, 9] : " + w + "\n" +
      "%o:2 = weft.attend %q, %k, %v windows %w documents %d {scale = 1.0 : f64} : (" + in + ") -> (" + q +
      ", " + lse + ")\n" +
      "%g:2 = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o#0, %o#1, %dout {scale = " +
      "1.0 : f64} : (" + in + ", " + q + ", " + lse + ", " + q + ") -> (" + q + ", " + lse + ")\n" +
      "%h:2 = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %o#1, %g#1, %dout {scale = 1.0 "
      ": f64}" +
      " : (" + in + ", " + lse + ", " + lse + ", " + q + ") -> (" + k + ", " + k +
      ")\nreturn %o#0, %h#1 : " + q + ", " + k + "\n}";
  std::vector<double> v, dout;
  for (int64_t i = 0; i < kPlaces; ++i) {
    v.insert(v.end(), {10, 20});
    dout.insert(dout.end(), {1, 2, 3, 4, 5, 6}); // the loss counts head h h + 1 times
  }
  auto results = runText(text, {Array({1, kPlaces, 2, 1}, v), Array({1, kPlaces, 2, 3, 1}, dout),
                                Array({1, kPlaces}, std::vector<double>(kPlaces, 0))});
  ASSERT_EQ(results.size(), 2u);
  for (int64_t i = 0; i < kPlaces; ++i)
    for (int64_t h = 0; h < 6; ++h)
      EXPECT_NEAR(results[0].data[i * 6 + h], h < 3 ? 10 : 20, 1e-12);
  double sums[2] = {0, 0};
  for (int64_t i = 0; i < 2 * kPlaces; ++i)
    sums[i % 2] += results[1].data[i];
  EXPECT_NEAR(sums[0], 6.0 * kPlaces, 1e-12); // tiling gives 9 and 12
  EXPECT_NEAR(sums[1], 15.0 * kPlaces, 1e-12);
}

std::string ropeText(int64_t width) {
  std::string x = tensor({{"batch", 1}, {"pos", 1}, {"c", width}}),
              p = tensor({{"batch", 1}, {"pos", 1}}, "i32");
  return "func.func @f(%x: " + x + ", %p: " + p + ") -> " + x +
         " {\n%y = weft.rope %x, %p {base = 10000.0 : f64} : (" + x + ", " + p + ") -> " + x +
         "\nreturn %y : " + x + "\n}";
}

// R5. Position 257 as 256 gives -0.0398; interleaved pairs give (0.54, 0.84, 0, 0).
TEST(Golden, RopeTurnsHalvesByExactAngles) {
  auto far = runText(ropeText(2), {Array({1, 1, 2}, {1, 0}), Array({1, 1}, {257})});
  expectNear(far[0], {0.8193, -0.5734}, 5e-5);
  auto end = runText(ropeText(2), {Array({1, 1, 2}, {1, 0}), Array({1, 1}, {131071})});
  expectNear(end[0], {std::cos(131071.0), std::sin(131071.0)});
  auto halves = runText(ropeText(4), {Array({1, 1, 4}, {1, 0, 0, 0}), Array({1, 1}, {1})});
  expectNear(halves[0], {0.5403023058681398, 0, 0.8414709848078965, 0});
}

// R1. Norm, then RoPE; the other order gives (-0.9871, 1.3253).
TEST(Golden, QkNormBeforeRope) {
  std::string x = tensor({{"batch", 1}, {"pos", 1}, {"c", 2}}), p = tensor({{"batch", 1}, {"pos", 1}}, "i32");
  std::string w = tensor({{"c", 2}});
  auto results = runText("func.func @f(%x: " + x + ", %w: " + w + ", %p: " + p + ") -> " + x +
                             " {\n%n = weft.rms_norm %x {eps = 0.0 : f64}" + " : (" + x + ") -> " + x +
                             "\n%s = weft.binary mul %n, %w : (" + x + ", " + w + ") -> " + x +
                             "\n%y = weft.rope %s, %p {base = 10000.0 : f64} : (" + x + ", " + p + ") -> " +
                             x + "\nreturn %y : " + x + "\n}",
                         {Array({1, 1, 2}, {3, 4}), Array({2}, {2, 1}), Array({1, 1}, {1})});
  expectNear(results[0], {-0.0351, 2.0393}, 5e-5);
}

// L5. A norm that is not finite makes the scale NaN, and a step with it changes no bit.
TEST(Golden, StepsWithoutAFiniteNormAreSkipped) {
  std::string x = tensor({{"dim", 3}}), s = "tensor<f64>", h = tensor({{"hyper", 3}});
  std::string text =
      "func.func @f(%p: " + x + ", %g: " + x + ", %one: " + s + ", %h: " + h + ") -> (" + x + ", " + x +
      ", " + s + ") {\n" + "%n = weft.norm %g, %one : (" + x + ", " + s + ") -> " + s + "\n" +
      "%k = weft.clip_scale %n, %one 1.0 : (" + s + ", " + s + ") -> " + s + "\n" +
      "%r:3 = weft.adamw %p, %p, %p, %g hyper %h scale %k betas 0.9, 0.999 eps 1.0e-8 decay 0.1 : (" + x +
      ", " + x + ", " + x + ", " + x + ", " + h + ", " + s + ") -> (" + x + ", " + x + ", " + x +
      ")\nreturn %r#0, %r#1, %n : " + x + ", " + x + ", " + s + "\n}";
  Array p({3}, {1, 2, 3});
  for (double bad : {double(INFINITY), double(NAN)}) {
    auto results = runText(text, {p, Array({3}, {1, bad, 1}), scalar(1), Array({3}, {0.1, 10, 1000})});
    EXPECT_EQ(results[0], p);
    EXPECT_EQ(results[1], p);
    EXPECT_FALSE(std::isfinite(results[2].data[0]));
  }
}

// L1. A sum over 10 and one over 100 targets, added, is the sum over both: no mean of means.
TEST(Golden, LossesAreSumsOverCountedTargets) {
  std::string x = tensor({{"batch", 1}, {"pos", 4}, {"vocab", 2}}),
              t = tensor({{"batch", 1}, {"pos", 4}}, "i32");
  std::string text = "func.func @f(%x: " + x + ", %t: " + t +
                     ") -> tensor<f64> {\n%l = weft.cross_entropy %x, %t " +
                     "{z = 0.0 : f64, smoothing = 0.0 : f64} : (" + x + ", " + t +
                     ") -> tensor<f64>\nreturn %l : " + "tensor<f64>\n}";
  Array logits({1, 4, 2}, std::vector<double>(8, 0.0)); // each target costs ln 2
  EXPECT_NEAR(runText(text, {logits, Array({1, 4}, {0, -1, -1, -1})})[0].data[0], std::log(2.0), 1e-15);
  EXPECT_NEAR(runText(text, {logits, Array({1, 4}, {0, 1, 1, -1})})[0].data[0], 3 * std::log(2.0), 1e-15);
}

// O5. One weight at 1 with a constant gradient, rate 6e-4, 100 steps: each step
// is the rate, so the weight ends at 0.94.
TEST(Golden, ConstantGradientMovesByTheRate) {
  std::string x = "tensor<1xf64, #weft.axes<dim>>", s = "tensor<f64>", h = tensor({{"hyper", 3}});
  Fixture fixture;
  auto module = fixture.parse(
      "func.func @f(%p: " + x + ", %m: " + x + ", %v: " + x + ", %g: " + x + ", %h: " + h + ", %k: " + s +
      ") -> (" + x + ", " + x + ", " + x +
      ") {\n%r:3 = weft.adamw %p, %m, %v, %g hyper %h scale %k betas 0.9, 0.95 eps 1.0e-8 " +
      "decay 0.0 : (" + x + ", " + x + ", " + x + ", " + x + ", " + h + ", " + s + ") -> (" + x + ", " + x +
      ", " + x + ")\nreturn %r#0, %r#1, %r#2 : " + x + ", " + x + ", " + x + "\n}");
  ASSERT_TRUE(module);
  Array p({1}, {1}), m({1}, {0}), v({1}, {0}), g({1}, {0.25});
  const Array scale = scalar(1);
  for (int step = 1; step <= 100; ++step) {
    Array hyper({3}, {6e-4, 1 / (1 - std::pow(0.9, step)), 1 / (1 - std::pow(0.95, step))});
    auto results = fixture.run(*module, {p, m, v, g, hyper, scale});
    ASSERT_TRUE(results) << fixture.messages;
    p = (*results)[0], m = (*results)[1], v = (*results)[2];
  }
  EXPECT_NEAR(p.data[0], 0.94, 1e-6);
}

} // namespace
