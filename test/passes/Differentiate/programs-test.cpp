//===- programs-test.cpp - Programs against differences and each other ----===//
//
// One small model that has every differentiable op, in float64: the gradients
// of @micro against central differences of its own loss, @decode one token at a
// time against @prefill, @update against the formulas of AdamW.
//
//===----------------------------------------------------------------------===//
#include "dialects/Weft/Interpret/Interpret.h"
#include "passes/Differentiate/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;

namespace weft {
namespace {

// Two rows of five positions with documents of uneven length; two groups of two
// heads share keys; the table is tied, its second use scaled.
constexpr const char *kModel = R"mlir(
!ids = tensor<2x5xi32, #weft.axes<batch, pos>>
!act = tensor<2x5x4xf64, #weft.axes<batch, pos, dim>>
!q = tensor<2x5x2x2x6xf64, #weft.axes<batch, pos, kv, group, head>>
!k = tensor<2x5x2x6xf64, #weft.axes<batch, pos, kv, head>>
!v = tensor<2x5x2x3xf64, #weft.axes<batch, pos, kv, value>>
!a = tensor<2x5x2x2x3xf64, #weft.axes<batch, pos, kv, group, value>>
!lse = tensor<2x5x2x2xf64, #weft.axes<batch, pos, kv, group>>
!table = tensor<7x4xf64, #weft.axes<vocab, dim>>
!wq = tensor<4x2x2x6xf64, #weft.axes<dim, kv, group, head>>
!wk = tensor<4x2x6xf64, #weft.axes<dim, kv, head>>
!wv = tensor<4x2x3xf64, #weft.axes<dim, kv, value>>
!wo = tensor<4x2x2x3xf64, #weft.axes<dim, kv, group, value>>
!gain = tensor<4xf64, #weft.axes<dim>>
!logits = tensor<2x5x7xf64, #weft.axes<batch, pos, vocab>>
!row = tensor<2x5xf64, #weft.axes<batch, pos>>

module attributes {weft.clip = 0.25 : f64, weft.groups = [
    {beta1 = 0.9 : f64, beta2 = 0.99 : f64, eps = 1.0e-8 : f64, decay = 0.1 : f64,
     params = ["embed", "layer.0.wq", "layer.0.wk", "layer.0.wv", "layer.0.wo"]},
    {beta1 = 0.8 : f64, beta2 = 0.95 : f64, eps = 1.0e-6 : f64, decay = 0.0 : f64,
     params = ["gain", "gate", "power"]}]} {
  weft.state parameter @embed <normal, 0.8 : f64> : !table
  weft.state parameter @layer.0.wq <normal, 0.5 : f64> : !wq
  weft.state parameter @layer.0.wk <normal, 0.5 : f64> : !wk
  weft.state parameter @layer.0.wv <normal, 0.5 : f64> : !wv
  weft.state parameter @layer.0.wo <normal, 0.5 : f64> : !wo
  weft.state parameter @gain <uniform, 0.5 : f64, 1.5 : f64> : !gain
  weft.state parameter @gate <constant, 0.3 : f64> : tensor<f64>
  weft.state parameter @power <uniform, 1.0 : f64, 2.0 : f64> : !gain
  weft.state table @"table/rope" <rope_table, 1.0e2 : f64> : tensor<5x3x2xf64>
  func.func @forward(%tokens : !ids {weft.name = "tokens"}, %targets : !ids {weft.name = "targets"},
                     %doc : !ids {weft.name = "doc_start"})
      -> (tensor<f64> {weft.name = "loss"}, !logits {weft.name = "logits"}) {
    %embed = weft.get @embed : !table
    %wq = weft.get @layer.0.wq : !wq
    %wk = weft.get @layer.0.wk : !wk
    %wv = weft.get @layer.0.wv : !wv
    %wo = weft.get @layer.0.wo : !wo
    %gain = weft.get @gain : !gain
    %gate = weft.get @gate : tensor<f64>
    %power = weft.get @power : !gain
    %rope = weft.get @"table/rope" : tensor<5x3x2xf64>
    %one = weft.constant {value = 1.0 : f64} : tensor<f64>
    %two = weft.constant {value = 2.0 : f64} : tensor<f64>
    %root = weft.constant {value = 0.5 : f64} : tensor<f64>
    %cube = weft.constant {value = 3.0 : f64} : tensor<f64>
    %p = weft.position %doc : (!ids) -> !ids
    %x0 = weft.gather %embed, %tokens : (!table, !ids) -> !act
    %x = weft.dropout %x0 "in" {rate = 0.25 : f64} : (!act) -> !act
    %n = weft.rms_norm %x {eps = 1.0e-5 : f64} : (!act) -> !act
    %h = weft.binary mul %gain, %n : (!gain, !act) -> !act
    %q0 = weft.contract %h, %wq : (!act, !wq) -> !q
    %k0 = weft.contract %h, %wk : (!act, !wk) -> !k
    %v = weft.contract %h, %wv : (!act, !wv) -> !v
    %q = weft.rope %q0, %p table %rope {base = 1.0e2 : f64} : (!q, !ids, tensor<5x3x2xf64>) -> !q
    %k = weft.rope %k0, %p table %rope {base = 1.0e2 : f64} : (!k, !ids, tensor<5x3x2xf64>) -> !k
    %windows = weft.integers [2, 1, 2147483647, 3] : tensor<4xi32>
    %a, %lse = weft.attend %q, %k, %v windows %windows documents %doc {scale = 0.4 : f64}
      : (!q, !k, !v, tensor<4xi32>, !ids) -> (!a, !lse)
    %o = weft.contract %a, %wo : (!a, !wo) -> !act
    %s = weft.unary sigmoid %gate : (tensor<f64>) -> tensor<f64>
    %g = weft.binary mul %s, %o : (tensor<f64>, !act) -> !act
    %x1 = weft.binary add %x, %g : (!act, !act) -> !act
    %f = weft.layer_norm %x1 {eps = 1.0e-5 : f64} : (!act) -> !act
    %f1 = weft.unary gelu %f : (!act) -> !act
    %f2 = weft.binary pow %f, %two : (!act, tensor<f64>) -> !act
    %f3 = weft.binary add %f2, %one : (!act, tensor<f64>) -> !act
    %f4 = weft.binary pow %f3, %root : (!act, tensor<f64>) -> !act
    %f5 = weft.binary pow %f4, %power : (!act, !gain) -> !act
    %f6 = weft.binary div %f1, %f5 : (!act, !act) -> !act
    %f7 = weft.binary pow %f6, %cube : (!act, tensor<f64>) -> !act
    %f8 = weft.binary sub %gain, %f7 : (!gain, !act) -> !act
    %m = weft.softmax %f8 : (!act) -> !act
    %t = weft.sum_to %f8 : (!act) -> !row
    %t1 = weft.unary neg %t : (!row) -> !row
    %m1 = weft.binary mul %m, %t1 : (!act, !row) -> !act
    %x2 = weft.binary add %x1, %m1 : (!act, !act) -> !act
    %y = weft.binary div %x2, %gain : (!act, !gain) -> !act
    %logits = weft.contract %y, %embed : (!act, !table) -> !logits
    %ce = weft.cross_entropy %logits, %targets {z = 0.01 : f64, smoothing = 0.1 : f64} : (!logits, !ids) -> tensor<f64>
    %capped = weft.unary tanh %logits : (!logits) -> !logits
    %aux = weft.cross_entropy %capped, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f64>
    %part = weft.binary mul %aux, %root : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %loss = weft.binary add %ce, %part : (tensor<f64>, tensor<f64>) -> tensor<f64>
    return %loss, %logits : tensor<f64>, !logits
  }
}
)mlir";

constexpr const char *kParameters[] = {"embed",      "layer.0.wq", "layer.0.wk", "layer.0.wv",
                                       "layer.0.wo", "gain",       "gate",       "power"};

class ProgramsTest : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerWeftDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        ADD_FAILURE() << diagnostic.str();
    });
    module = parseSourceString<ModuleOp>(kModel, &context);
    ASSERT_TRUE(module);
    PassManager passes(&context);
    passes.addPass(createSimplify());
    passes.addPass(createFormLossHead());
    FormProgramsOptions options;
    options.programs = {"micro", "update", "eval", "prefill", "decode"};
    options.cacheLength = 6;
    passes.addPass(createFormPrograms(options));
    passes.addPass(createDifferentiate());
    passes.addPass(createFoldAccumulations());
    ASSERT_TRUE(succeeded(passes.run(*module)));
    ASSERT_TRUE(succeeded(initialize(states, *module, 7)));
  }

  SmallVector<Array> run(StringRef program, ArrayRef<Array> inputs, States &on) {
    auto function = module->lookupSymbol<func::FuncOp>(program);
    FailureOr<SmallVector<Array>> results = interpret(function, inputs, on);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? *results : SmallVector<Array>();
  }

  double lossOf(States on) { return run("micro", {tokens, targets, docStart, noise}, on)[0].data[0]; }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  States states;
  Array tokens{{2, 5}, {3, 1, 1, 6, 0, 2, 2, 5, 4, 3}};
  Array targets{{2, 5}, {1, 1, -1, 0, 2, 2, 5, -1, 3, 6}};
  Array docStart{{2, 5}, {0, 0, 0, 3, 3, 0, 1, 1, 1, 4}};
  Array noise{ArrayRef<int64_t>(), {11}};
};

TEST_F(ProgramsTest, GradientsAreThoseOfCentralDifferences) {
  States after = states;
  run("micro", {tokens, targets, docStart, noise}, after);
  constexpr double kStep = 1e-5;
  for (const char *path : kParameters)
    for (size_t i = 0; i < states[path].data.size(); ++i) {
      States up = states, down = states;
      up[path].data[i] += kStep;
      down[path].data[i] -= kStep;
      double expected = (lossOf(up) - lossOf(down)) / (2 * kStep);
      double found = after[std::string("grad/") + path].data[i];
      ASSERT_NEAR(found, expected, 1e-7 * (1 + std::abs(expected))) << path << " element " << i;
    }
}

// Catches a chain that forgets what the state held.
TEST_F(ProgramsTest, GradientsAreAddedToTheState) {
  States once = states;
  run("micro", {tokens, targets, docStart, noise}, once);
  States twice = once;
  run("micro", {tokens, targets, docStart, noise}, twice);
  for (const char *path : kParameters) {
    std::string name = std::string("grad/") + path;
    for (size_t i = 0; i < once[name].data.size(); ++i)
      EXPECT_NEAR(twice[name].data[i], 2 * once[name].data[i], 1e-12 * (1 + std::abs(once[name].data[i])));
  }
}

// A document that starts the row: token by token, logits are those of prefill.
TEST_F(ProgramsTest, DecodingATokenAtATimeIsPrefill) {
  Array whole{{2, 5}, std::vector<double>(10, 0.0)};
  Array expected = run("prefill", {tokens, whole}, states)[0];
  States caches = states;
  for (int pos = 0; pos < 5; ++pos) {
    Array token{{1, 1}, {tokens.data[pos]}}, start{{1, 1}, {0}},
        offset{ArrayRef<int64_t>(), {static_cast<double>(pos)}};
    Array logits = run("decode", {token, start, offset}, caches)[0];
    for (int word = 0; word < 7; ++word)
      EXPECT_NEAR(logits.data[word], expected.data[pos * 7 + word], 1e-12) << pos << ", " << word;
  }
}

TEST_F(ProgramsTest, UpdateClipsStepsAndZeroes) {
  States before = states;
  run("micro", {tokens, targets, docStart, noise}, before);
  double squares = 0, count = 1.0 / 8;
  for (const char *path : kParameters)
    for (double value : before[std::string("grad/") + path].data)
      squares += value * value;
  double norm = count * std::sqrt(squares), scale = count * std::min(1.0, 0.25 / (norm + 1e-6));
  ASSERT_GT(norm, 0.25);
  // The first step: bias corrections undo 1 - beta.
  Array factor{ArrayRef<int64_t>(), {count}}, first{{3}, {0.01, 10.0, 100.0}},
      second{{3}, {0.002, 5.0, 20.0}};
  States after = before;
  EXPECT_NEAR(run("update", {factor, first, second}, after)[0].data[0], norm, 1e-12);
  for (const char *path : kParameters) {
    bool table = StringRef(path) == "embed" || StringRef(path).starts_with("layer");
    double rate = table ? 0.01 : 0.002, decay = table ? 0.1 : 0.0, eps = table ? 1e-8 : 1e-6;
    for (size_t i = 0; i < before[path].data.size(); ++i) {
      double p = before[path].data[i], g = scale * before[std::string("grad/") + path].data[i];
      double expected = p * (1 - rate * decay) - rate * g / (std::abs(g) + eps);
      EXPECT_NEAR(after[path].data[i], expected, 1e-12) << path << " element " << i;
      EXPECT_NEAR(after[std::string("adamw.m/") + path].data[i], (table ? 0.1 : 0.2) * g, 1e-14);
      EXPECT_NEAR(after[std::string("adamw.v/") + path].data[i], (table ? 0.01 : 0.05) * g * g, 1e-14);
      EXPECT_EQ(after[std::string("grad/") + path].data[i], 0.0);
    }
  }
}

} // namespace
} // namespace weft
