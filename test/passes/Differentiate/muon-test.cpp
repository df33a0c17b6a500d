//===- muon-test.cpp - Steps of matrices along their orthogonal factor ----===//
//
// @update of one matrix by Muon, in the interpreter: with `weft.polar` whole and
// written out as products. Facts come from arXiv:2607.18363 and from faults that
// others reported, not from Weft: tests name them.
//
//===----------------------------------------------------------------------===//
#include "dialects/Weft/Interpret/Interpret.h"
#include "passes/Differentiate/Passes.h"
#include "passes/Fuse/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;

namespace weft {
namespace {

/// A matrix as `x @ w` reads it: [in, out], or [out, in] when `turned`.
struct Shape {
  int64_t in, out;
  bool turned = false;
  int64_t size() const { return in * out; }
};

std::string matrixType(const Shape &shape) {
  std::string in = std::to_string(shape.in), out = std::to_string(shape.out);
  return shape.turned ? "tensor<" + out + "x" + in + "xf64, #weft.axes<wide, dim>>"
                      : "tensor<" + in + "x" + out + "xf64, #weft.axes<dim, wide>>";
}

std::string moduleText(const Shape &shape, const std::string &options) {
  std::string w = matrixType(shape),
              x = "tensor<1x1x" + std::to_string(shape.in) + "xf64, #weft.axes<batch, pos, dim>>",
              y = "tensor<1x1x" + std::to_string(shape.out) + "xf64, #weft.axes<batch, pos, wide>>";
  return "module attributes {weft.groups = [{kind = \"muon\", " + options + ", params = [\"w\"]}]} {\n" +
         "weft.state parameter @w <normal, 1.0 : f64> : " + w + "\n" + "func.func @forward(%x: " + x +
         " {weft.name = \"x\"}) -> (tensor<f64> {weft.name = \"loss\"}) {\n" + "%w = weft.get @w : " + w +
         "\n" + "%y = weft.contract %x, %w : (" + x + ", " + w + ") -> " + y + "\n" +
         "%l = weft.sum_to %y : (" + y + ") -> tensor<f64>\nreturn %l : tensor<f64>\n}\n}";
}

constexpr const char *kPlain =
    "momentum = 0.0 : f64, decay = 0.0 : f64, nesterov = false, iterations = 5 : i64";

std::vector<double> drawn(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double &value : values)
    value = normal(random);
  return values;
}

double normOf(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += value * value;
  return std::sqrt(sum);
}

/// The largest singular value of a row-major [rows, columns], by the power method.
double spectralNorm(const std::vector<double> &matrix, size_t rows, size_t columns) {
  std::vector<double> right = drawn(columns, 5), left(rows);
  double norm = 0;
  for (int step = 0; step < 200; ++step) {
    for (size_t i = 0; i < rows; ++i) {
      left[i] = 0;
      for (size_t k = 0; k < columns; ++k)
        left[i] += matrix[i * columns + k] * right[k];
    }
    std::fill(right.begin(), right.end(), 0.0);
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < columns; ++k)
        right[k] += matrix[i * columns + k] * left[i];
    norm = normOf(right);
    for (double &value : right)
      value /= norm;
  }
  return std::sqrt(norm);
}

class MuonTest : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerWeftDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        messages += diagnostic.str() + "\n";
    });
  }

  OwningOpRef<ModuleOp> compile(const std::string &text, bool expanded) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return {};
    PassManager passes(&context);
    FormProgramsOptions options;
    options.programs = {"micro", "update"};
    passes.addPass(createFormPrograms(options));
    if (expanded)
      passes.addPass(createExpandPolar());
    return succeeded(passes.run(*module)) ? std::move(module) : OwningOpRef<ModuleOp>();
  }

  struct Step {
    std::vector<double> parameter, momentum;
  };

  /// `steps` steps from `start` (zeros when empty) with one gradient, at `rate`.
  Step step(const Shape &shape, const std::vector<double> &gradient, double rate,
            const std::string &options = kPlain, std::vector<double> start = {}, int steps = 1,
            bool expanded = true) {
    OwningOpRef<ModuleOp> module = compile(moduleText(shape, options), expanded);
    EXPECT_TRUE(module) << messages;
    if (!module)
      return {};
    States states;
    EXPECT_TRUE(succeeded(initialize(states, *module, 1)));
    SmallVector<int64_t> sizes =
        shape.turned ? SmallVector<int64_t>{shape.out, shape.in} : SmallVector<int64_t>{shape.in, shape.out};
    if (start.empty())
      start.assign(gradient.size(), 0.0);
    states.at("w") = Array(sizes, start);
    for (int i = 0; i < steps; ++i) {
      states.at("grad/w") = Array(sizes, gradient);
      Array one(ArrayRef<int64_t>{}, std::vector<double>{1}),
          rates(ArrayRef<int64_t>{}, std::vector<double>{rate});
      auto results = interpret(module->lookupSymbol<func::FuncOp>("update"), {one, rates}, states);
      EXPECT_TRUE(succeeded(results)) << messages;
    }
    return {states.at("w").data, states.at("muon.m/w").data};
  }

  MLIRContext context;
  std::string messages;
};

// O1: with sqrt(max(1, out / in)) a widening matrix moves twice as far as the
// narrowing one at a ratio of 4, by about 2 sqrt(256) and sqrt(256): 30.6 and 15.3,
// as singular values end between .68 and 1.13. Mutation caught: in and out exchanged.
TEST_F(MuonTest, ScaleFollowsWhatGoesIn) {
  constexpr size_t kIn = 256, kOut = 1024;
  std::vector<double> gradient = drawn(kIn * kOut, 1), turned(gradient.size());
  for (size_t i = 0; i < kIn; ++i)
    for (size_t j = 0; j < kOut; ++j)
      turned[j * kIn + i] = gradient[i * kOut + j];
  double wide = normOf(step({kIn, kOut}, gradient, 1).parameter),
         narrow = normOf(step({kOut, kIn}, turned, 1).parameter);
  EXPECT_NEAR(wide / narrow, 2, 1e-9);
  EXPECT_NEAR(wide, 30.6, 3.06);
  EXPECT_NEAR(narrow, 15.3, 1.53);
}

// How a matrix is stored changes nothing: [out, in] is the same parameter turned.
TEST_F(MuonTest, StorageChangesNothing) {
  std::vector<double> gradient = drawn(6 * 10, 1), turned(gradient.size());
  for (size_t i = 0; i < 6; ++i)
    for (size_t j = 0; j < 10; ++j)
      turned[j * 6 + i] = gradient[i * 10 + j];
  std::vector<double> straight = step({6, 10}, gradient, 1).parameter,
                      across = step({6, 10, true}, turned, 1).parameter;
  for (size_t i = 0; i < 6; ++i)
    for (size_t j = 0; j < 10; ++j)
      EXPECT_NEAR(across[j * 6 + i], straight[i * 10 + j], 1e-12);
}

// O3. A zero gradient moves nothing; a scale above the floor of 1e-7 on the norm
// changes nothing; below it the step shrinks, and nothing is NaN.
TEST_F(MuonTest, ZeroAndTinyGradients) {
  Shape shape{8, 12};
  std::vector<double> gradient = drawn(96, 2), base = step(shape, gradient, 0.1).parameter;
  EXPECT_EQ(normOf(step(shape, std::vector<double>(96, 0.0), 0.1).parameter), 0);
  for (double factor : {1e6, 1e-3, 1e-20}) {
    std::vector<double> scaled = gradient;
    for (double &value : scaled)
      value *= factor;
    std::vector<double> found = step(shape, scaled, 0.1).parameter, difference(96);
    for (size_t i = 0; i < 96; ++i) {
      ASSERT_TRUE(std::isfinite(found[i])) << factor;
      difference[i] = found[i] - base[i];
    }
    if (factor > 1e-4) { // |G| is about 10: the floor is a part in 1e5 of 1e-3 |G|
      EXPECT_LT(normOf(difference), 1e-4 * normOf(base)) << factor;
    }
  }
}

// Lemma 2 of arXiv:2607.18363: no singular value moves by more than rate (1 + eps)
// in a step; the quintic's maximum on [0, 1] is 1.2023. Without the decay and the
// factor of shape. Mutation caught: no division by the norm.
TEST_F(MuonTest, SingularValuesMoveByTheRateAtMost) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    Shape shape{24, 16};
    std::vector<double> moved = step(shape, drawn(24 * 16, seed), 0.5).parameter;
    double largest = spectralNorm(moved, 24, 16);
    EXPECT_LE(largest, 0.5 * 1.2023);
    EXPECT_GE(largest, 0.5 * 0.68);
  }
}

// A diagonal gradient keeps its axes: each entry goes through the polynomial.
// Three steps by hand: momentum, Nesterov, decay, and the factor sqrt(2 / 2) = 1.
TEST_F(MuonTest, StepsOfADiagonal) {
  auto polar = [](double x, double norm) {
    x /= norm + 1e-7;
    for (int i = 0; i < 5; ++i)
      x = 3.4445 * x - 4.7750 * std::pow(x, 3) + 2.0315 * std::pow(x, 5);
    return x;
  };
  std::vector<double> gradient{3, 0, 0, -1};
  for (bool nesterov : {true, false}) {
    double m[2] = {0, 0}, p[2] = {5, 7}, g[2] = {3, -1};
    for (int i = 0; i < 3; ++i) {
      double u[2];
      for (int k = 0; k < 2; ++k) {
        m[k] = 0.9 * m[k] + g[k];
        u[k] = nesterov ? g[k] + 0.9 * m[k] : m[k];
      }
      for (int k = 0; k < 2; ++k)
        p[k] = p[k] * (1 - 0.02 * 0.1) - 0.02 * polar(u[k], std::hypot(u[0], u[1]));
    }
    std::string options = std::string("momentum = 0.9 : f64, decay = 0.1 : f64, nesterov = ") +
                          (nesterov ? "true" : "false") + ", iterations = 5 : i64";
    for (bool expanded : {false, true}) {
      Step found = step({2, 2}, gradient, 0.02, options, {5, 0, 0, 7}, 3, expanded);
      EXPECT_NEAR(found.parameter[0], p[0], 1e-12);
      EXPECT_NEAR(found.parameter[3], p[1], 1e-12);
      EXPECT_NEAR(found.parameter[1], 0, 1e-12);
      EXPECT_NEAR(found.momentum[3], m[1], 1e-12);
    }
  }
}

/// Two matrices of one shape with another one between them.
std::string severalText() {
  std::string text = R"(module attributes {weft.groups = [{kind = "muon", $O, params = ["a", "b", "c"]}]} {
    weft.state parameter @a <normal, 1.0 : f64> : $W
    weft.state parameter @b <normal, 1.0 : f64> : $V
    weft.state parameter @c <normal, 1.0 : f64> : $W
    func.func @forward(%x: $X {weft.name = "x"}) -> (tensor<f64> {weft.name = "loss"}) {
      %a = weft.get @a : $W
      %b = weft.get @b : $V
      %c = weft.get @c : $W
      %p = weft.contract %x, %a : ($X, $W) -> $Y
      %q = weft.contract %x, %c : ($X, $W) -> $Y
      %s = weft.binary add %p, %q : ($Y, $Y) -> $Y
      %z = weft.contract %s, %b : ($Y, $V) -> $X
      %l = weft.sum_to %z : ($X) -> tensor<f64>
      return %l : tensor<f64>
    }
  })";
  const std::pair<const char *, std::string> words[] = {
      {"$O", kPlain},
      {"$W", "tensor<6x10xf64, #weft.axes<dim, wide>>"},
      {"$V", "tensor<10x6xf64, #weft.axes<wide, dim>>"},
      {"$X", "tensor<1x1x6xf64, #weft.axes<batch, pos, dim>>"},
      {"$Y", "tensor<1x1x10xf64, #weft.axes<batch, pos, wide>>"}};
  for (const auto &[from, to] : words)
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, 2, to);
  return text;
}

// Matrices of one shape go side by side, and each as it goes alone. Mutations caught:
// one norm over both, a matrix of another shape among them, the order in storage kept.
TEST_F(MuonTest, MatricesOfOneShapeGoTogether) {
  std::vector<double> a = drawn(60, 1), b = drawn(60, 2), c = drawn(60, 3);
  for (double &value : c)
    value *= 100;
  for (bool expanded : {false, true}) {
    OwningOpRef<ModuleOp> module = compile(severalText(), expanded);
    ASSERT_TRUE(module) << messages;
    auto groups = (*module)->getAttrOfType<ArrayAttr>("weft.groups");
    auto params = cast<DictionaryAttr>(groups[0]).getAs<ArrayAttr>("params");
    EXPECT_EQ(params, Builder(&context).getStrArrayAttr({"a", "c", "b"}));
    int64_t products = 0;
    module->lookupSymbol<func::FuncOp>("update").walk([&](ContractOp) { ++products; });
    EXPECT_EQ(products, expanded ? 30 : 0); // five steps of three, of two shapes
    States states;
    ASSERT_TRUE(succeeded(initialize(states, *module, 1)));
    for (const auto &[name, gradient] : {std::pair("a", a), {"b", b}, {"c", c}}) {
      SmallVector<int64_t> sizes(states.at(name).shape);
      states.at(name) = Array(sizes, std::vector<double>(60, 0.0));
      states.at(std::string("grad/") + name) = Array(sizes, gradient);
    }
    Array one(ArrayRef<int64_t>{}, std::vector<double>{1}),
        rate(ArrayRef<int64_t>{}, std::vector<double>{0.1});
    ASSERT_TRUE(succeeded(interpret(module->lookupSymbol<func::FuncOp>("update"), {one, rate}, states)));
    Shape narrow{10, 6};
    std::vector<double> alone[] = {step({6, 10}, a, 0.1).parameter, step(narrow, b, 0.1).parameter,
                                   step({6, 10}, c, 0.1).parameter};
    for (size_t i = 0; i < 60; ++i) {
      EXPECT_NEAR(states.at("a").data[i], alone[0][i], 1e-12);
      EXPECT_NEAR(states.at("b").data[i], alone[1][i], 1e-12);
      EXPECT_NEAR(states.at("c").data[i], alone[2][i], 1e-12);
    }
  }
}

/// To the nearest of 8 bits, ties to even.
double inBf16(double x) {
  if (x == 0)
    return 0;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent); // [0.5, 1)
  return std::ldexp(std::nearbyint(mantissa * 256), exponent - 8);
}

/// The direction with every matrix between products rounded, by plain loops.
std::vector<double> roundedPolar(const std::vector<double> &u, size_t rows, size_t columns) {
  double sum = 0;
  for (double x : u)
    sum += inBf16(x * x);
  std::vector<double> y(u.size()), s(rows * rows), weights(rows * rows);
  for (size_t i = 0; i < u.size(); ++i)
    y[i] = inBf16(u[i] / (std::sqrt(sum) + 1e-7));
  for (int step = 0; step < 5; ++step) {
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < rows; ++j) {
        double dot = 0;
        for (size_t k = 0; k < columns; ++k)
          dot += y[i * columns + k] * y[j * columns + k];
        s[i * rows + j] = inBf16(dot);
      }
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < rows; ++j) {
        double dot = inBf16(-4.7750 * s[i * rows + j]);
        for (size_t k = 0; k < rows; ++k)
          dot += inBf16(2.0315 * s[i * rows + k]) * s[k * rows + j];
        weights[i * rows + j] = inBf16(dot);
      }
    std::vector<double> next(y.size());
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < columns; ++k) {
        double dot = inBf16(3.4445 * y[i * columns + k]);
        for (size_t j = 0; j < rows; ++j)
          dot += weights[i * rows + j] * y[j * columns + k];
        next[i * columns + k] = inBf16(dot);
      }
    y = next;
  }
  return y;
}

// As a GPU steps: state and sums wide, what products read rounded to bf16, the
// direction within 5% of the one in full: steps stretch small singular values, and
// their roundings of 2^-9, up to 3.4 times each. Mutations caught: the momentum rounded,
// a product's matrix kept wide, the norm of the rounded matrix.
TEST_F(MuonTest, RoundsWhatProductsRead) {
  Shape shape{12, 20};
  std::string text = moduleText(shape, kPlain);
  for (size_t at = text.find("xf64"); at != std::string::npos; at = text.find("xf64"))
    text.replace(at, 4, "xf32");
  for (size_t at = text.find("tensor<f64>"); at != std::string::npos; at = text.find("tensor<f64>"))
    text.replace(at, 11, "tensor<f32>");
  OwningOpRef<ModuleOp> module = compile(text, true);
  ASSERT_TRUE(module) << messages;
  PassManager passes(&context);
  passes.addPass(createFusePass());
  passes.addPass(createOutlineKernelsPass());
  passes.addPass(createStoreInBf16Pass());
  ASSERT_TRUE(succeeded(passes.run(*module))) << messages;
  std::vector<double> gradient = drawn(240, 4);
  States states;
  ASSERT_TRUE(succeeded(initialize(states, *module, 1)));
  states.at("w") = Array({12, 20}, std::vector<double>(240, 0.0));
  states.at("grad/w") = Array({12, 20}, gradient);
  Array one(ArrayRef<int64_t>{}, std::vector<double>{1}), rate(ArrayRef<int64_t>{}, std::vector<double>{1});
  auto results = interpret(module->lookupSymbol<func::FuncOp>("update"), {one, rate}, states);
  ASSERT_TRUE(succeeded(results)) << messages;
  std::vector<double> expected = roundedPolar(gradient, 12, 20), full = step(shape, gradient, 1).parameter;
  double factor = std::sqrt(20.0 / 12.0), away = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(states.at("w").data[i], -factor * expected[i], 1e-9);
    EXPECT_EQ(states.at("muon.m/w").data[i], gradient[i]);
    away += std::pow(states.at("w").data[i] - full[i], 2);
  }
  EXPECT_LT(std::sqrt(away), 0.05 * normOf(full));
}

// L5. A gradient that is not finite changes no bit of the weights and the momentum.
TEST_F(MuonTest, SkipsWithoutAFiniteNorm) {
  Step found = step({2, 2}, {1, NAN, 2, 3}, 0.1, kPlain, {1, 2, 3, 4});
  EXPECT_EQ(found.parameter, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(found.momentum, (std::vector<double>{0, 0, 0, 0}));
}

TEST_F(MuonTest, RefusesWhatIsNoMatrix) {
  // Elementwise only: no product says what goes in.
  std::string module =
      "module attributes {weft.groups = [{kind = \"muon\", " + std::string(kPlain) +
      ", params = [\"w\"]}]} {\nweft.state parameter @w <normal, 1.0 : f64> : tensor<2x3xf64, "
      "#weft.axes<a, b>>\nfunc.func @forward() -> (tensor<f64> {weft.name = \"loss\"}) {\n%w = "
      "weft.get @w : tensor<2x3xf64, #weft.axes<a, b>>\n%l = weft.sum_to %w : (tensor<2x3xf64, "
      "#weft.axes<a, b>>) -> tensor<f64>\nreturn %l : tensor<f64>\n}\n}";
  EXPECT_FALSE(compile(module, false));
  EXPECT_NE(messages.find("muon steps matrices, but no product reads 'w'; let adamw take it"),
            std::string::npos)
      << messages;
  EXPECT_FALSE(compile(moduleText({2, 3}, "momentum = 0.0 : f64"), false));
  EXPECT_NE(messages.find("{kind = \"muon\", momentum, decay : f64"), std::string::npos) << messages;
}

} // namespace
} // namespace weft
