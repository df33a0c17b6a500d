//===- formal-results-test.cpp - What attention-only models obey ----------===//
//
// The propositions of arXiv:2607.18363 ("Formal results"), on the shipped
// san.weft and on `weft.attend`, in float64.
//
//===----------------------------------------------------------------------===//
#include "dialects/Weft/Interpret/Interpret.h"
#include "frontend/Checker.h"
#include "frontend/Emit/Emit.h"
#include "frontend/Parser.h"
#include "passes/Unroll/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace mlir;

namespace weft {
namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The shipped model with its stream before and after the layers as outputs,
/// and a table of unit variance: Theorem 1 starts from that.
std::string sanText() {
  std::ifstream file(WEFT_SOURCE_DIR "/models/san.weft");
  std::stringstream content;
  content << file.rdbuf();
  std::string text =
      replaced(content.str(), "[vocab, dim]  init normal(dim ** -0.5)", "[vocab, dim]  init normal(1)");
  text = replaced(text, "  x = embed[tokens]\n", "  x = embed[tokens]\n  output first = x\n");
  return replaced(text, "  output logits", "  output last = x\n  output logits");
}

class FormalResults : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerWeftDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  OwningOpRef<ModuleOp> unrolled(const std::string &text, const lang::Overrides &sets, int64_t positions) {
    lang::SourceFiles sources;
    lang::Diagnostics diagnostics;
    lang::ast::File file = lang::parseText("san.weft", text, sources, diagnostics);
    auto model = lang::checkModel(file, sources, "san", sets, diagnostics);
    EXPECT_TRUE(model) << diagnostics.render(sources);
    if (!model)
      return {};
    OwningOpRef<ModuleOp> module = emitModel(*model, sources, context);
    PassManager passes(&context);
    UnrollLayersPassOptions options;
    options.positions = positions;
    options.double_ = true;
    passes.addPass(createUnrollLayersPass(options));
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }

  struct Streams {
    Array first, last;
  };

  /// The stream before and after the layers, of tokens 0, 1, 2, ...
  Streams run(ModuleOp module, States &states, int64_t positions) {
    Array ids({1, positions}, std::vector<double>(static_cast<size_t>(positions)));
    for (int64_t i = 0; i < positions; ++i)
      ids.data[static_cast<size_t>(i)] = static_cast<double>(i);
    Array zero({1, positions}, std::vector<double>(static_cast<size_t>(positions), 0.0));
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    auto results = interpret(forward, {ids, ids, zero}, states);
    EXPECT_TRUE(succeeded(results));
    Streams streams;
    for (unsigned i = 0; succeeded(results) && i < forward.getNumResults(); ++i) {
      StringRef name = cast<StringAttr>(forward.getResultAttr(i, "weft.name")).getValue();
      if (name == "first")
        streams.first = (*results)[i];
      if (name == "last")
        streams.last = (*results)[i];
    }
    return streams;
  }

  /// Mean square of the last stream over that of the first, over eight seeds.
  double growth(const std::string &text, int64_t depth, const std::string &residual) {
    constexpr int64_t kPositions = 6;
    OwningOpRef<ModuleOp> module = unrolled(text,
                                            {{"depth", std::to_string(depth)},
                                             {"residual", residual},
                                             {"vocab", "16"},
                                             {"dim", "48"},
                                             {"heads", "4"},
                                             {"kv", "2"},
                                             {"head", "12"}},
                                            kPositions);
    double last = 0, first = 0;
    for (uint64_t seed = 0; module && seed < 8; ++seed) {
      States states;
      EXPECT_TRUE(succeeded(initialize(states, *module, seed)));
      Streams streams = run(*module, states, kPositions);
      for (double value : streams.first.data)
        first += value * value;
      for (double value : streams.last.data)
        last += value * value;
    }
    return last / first;
  }

  MLIRContext context;
};

// Theorem 1: with Wo of variance s^2 / (2N) the stream's variance at the start does
// not grow with depth. Without the 1 / (2N) it does: that is the mutation.
TEST_F(FormalResults, VarianceDoesNotGrowWithDepth) {
  for (std::string residual : {"gated", "standard"}) {
    double shallow = growth(sanText(), 8, residual);
    for (int64_t depth : {20, 48})
      EXPECT_NEAR(growth(sanText(), depth, residual) / shallow, 1, 0.05) << residual << " at " << depth;
    std::string whole =
        replaced(sanText(), "(heads * head) ** -0.5 / sqrt(2 * depth)", "(heads * head) ** -0.5");
    EXPECT_GT(growth(whole, 48, residual) / growth(whole, 8, residual), 1.3) << residual;
  }
}

// Lemma 1: at one position attention is the identity on its value, so a block adds
// sigmoid(0) Wo Wv u, u = x / RMS(x), whatever q and k are.
TEST_F(FormalResults, OnePositionIsLinearInItsValue) {
  OwningOpRef<ModuleOp> module =
      unrolled(sanText(),
               {{"depth", "1"}, {"vocab", "4"}, {"dim", "6"}, {"heads", "4"}, {"kv", "2"}, {"head", "2"}}, 1);
  States states;
  ASSERT_TRUE(module && succeeded(initialize(states, *module, 3)));
  Streams streams = run(*module, states, 1);
  const std::vector<double> &x = streams.first.data;
  const Array &wv = states.at("block.0.attn.wv"), &wo = states.at("block.0.attn.wo");
  double square = 0;
  for (double value : x)
    square += value * value;
  double inverse = 1 / std::sqrt(square / 6 + 1e-6);
  std::vector<double> expected = x;
  for (size_t kv = 0; kv < 2; ++kv)
    for (size_t c = 0; c < 2; ++c) {
      double value = 0;
      for (size_t d = 0; d < 6; ++d)
        value += x[d] * inverse * wv.data[(d * 2 + kv) * 2 + c];
      for (size_t group = 0; group < 2; ++group)
        for (size_t d = 0; d < 6; ++d)
          expected[d] += 0.5 * value * wo.data[((kv * 2 + group) * 2 + c) * 6 + d];
    }
  for (size_t d = 0; d < 6; ++d)
    EXPECT_NEAR(streams.last.data[d], expected[d], 1e-12);
  for (double &value : states.at("block.0.attn.wq").data)
    value *= -3;
  EXPECT_EQ(run(*module, states, 1).last, streams.last);
}

/// attend(q, k, v) @ wo for two heads that share a key, five positions.
constexpr const char *kLayer = R"mlir(
!q = tensor<1x5x2x3xf64, #weft.axes<batch, pos, group, head>>
!k = tensor<1x5x3xf64, #weft.axes<batch, pos, head>>
!wo = tensor<2x3x4xf64, #weft.axes<group, head, dim>>
!y = tensor<1x5x4xf64, #weft.axes<batch, pos, dim>>
!lse = tensor<1x5x2xf64, #weft.axes<batch, pos, group>>
!doc = tensor<1x5xi32, #weft.axes<batch, pos>>
func.func @f(%q: !q, %k: !k, %v: !k, %wo: !wo, %doc: !doc) -> (!q, !y) {
  %w = weft.integers [2147483647, 3] : tensor<2xi32>
  %a, %l = weft.attend %q, %k, %v windows %w documents %doc {scale = 1.0 : f64}
    : (!q, !k, !k, tensor<2xi32>, !doc) -> (!q, !lse)
  %y = weft.contract %a, %wo : (!q, !wo) -> !y
  return %a, %y : !q, !y
}
)mlir";

class OneLayer : public FormalResults {
protected:
  SmallVector<Array> mixed(const std::vector<double> &v) {
    if (!module)
      module = parseSourceString<ModuleOp>(kLayer, &context);
    States none;
    auto results = interpret(module->lookupSymbol<func::FuncOp>("f"),
                             {Array({1, 5, 2, 3}, drawUniform(1, "q", 30, -2, 2)),
                              Array({1, 5, 3}, drawUniform(1, "k", 15, -2, 2)), Array({1, 5, 3}, v),
                              Array({2, 3, 4}, drawUniform(1, "wo", 24, -1, 1)),
                              Array({1, 5}, std::vector<double>(5, 0.0))},
                             none);
    EXPECT_TRUE(succeeded(results));
    return *results;
  }
  OwningOpRef<ModuleOp> module;
};

// Proposition 1: with the pattern held, the update is linear in the values.
TEST_F(OneLayer, LinearForAFixedPattern) {
  std::vector<double> a = drawUniform(2, "a", 15, -1, 1), b = drawUniform(2, "b", 15, -1, 1), sum(15);
  for (size_t i = 0; i < 15; ++i)
    sum[i] = 2.5 * a[i] - 0.75 * b[i];
  Array ofA = mixed(a)[1], ofB = mixed(b)[1], ofSum = mixed(sum)[1];
  for (size_t i = 0; i < ofSum.data.size(); ++i)
    EXPECT_NEAR(ofSum.data[i], 2.5 * ofA.data[i] - 0.75 * ofB.data[i], 1e-12);
}

// Proposition 2: each head's mix lies in the hull of the values that it sees: in no
// direction beyond the farthest of them. Mutation caught: weights that do not sum to 1.
TEST_F(OneLayer, MixesInsideTheHullOfValues) {
  std::vector<double> v = drawUniform(3, "v", 15, -1, 1);
  for (size_t i = 0; i < 15; ++i)
    v[i] += 4; // far from 0, so that a sum above 1 leaves the hull
  Array out = mixed(v)[0];
  const size_t windows[] = {5, 3};
  for (int direction = 0; direction < 64; ++direction) {
    std::vector<double> way = drawUniform(4, "way/" + std::to_string(direction), 3, -1, 1);
    auto along = [&](const double *x) { return way[0] * x[0] + way[1] * x[1] + way[2] * x[2]; };
    for (size_t i = 0; i < 5; ++i)
      for (size_t head = 0; head < 2; ++head) {
        double farthest = -INFINITY;
        for (size_t j = i + 1 > windows[head] ? i + 1 - windows[head] : 0; j <= i; ++j)
          farthest = std::max(farthest, along(&v[3 * j]));
        EXPECT_LE(along(&out.data[(i * 2 + head) * 3]), farthest + 1e-12);
      }
  }
}

} // namespace
} // namespace weft
