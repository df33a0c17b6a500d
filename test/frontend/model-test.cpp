//===- model-test.cpp - Shipped models, and what the checker makes --------===//

#include "check-helpers.h"

#include "gtest/gtest.h"

#include <functional>

namespace weft::lang::test {
namespace {

/// The first node that `wanted` holds for, in order of the text; null if none.
const Node *findNode(const Block &block, const std::function<bool(const Node &)> &wanted) {
  for (const Node &node : block.nodes) {
    if (wanted(node))
      return &node;
    for (const Block &inner : node.blocks)
      if (const Node *found = findNode(inner, wanted))
        return found;
  }
  return nullptr;
}

const Node *findNode(const Model &model, NodeKind kind) {
  return findNode(model.body, [kind](const Node &node) { return node.kind == kind; });
}

std::vector<std::string> axesOf(const Model &model, const Node *node) {
  return node ? model.values[static_cast<size_t>(node->results[0])].axes : std::vector<std::string>{"none"};
}

using Axes = std::vector<std::string>;

// Counts from the papers and release notes, or multiplied out by hand.
TEST(Models, HaveTheirPublishedSizes) {
  struct Case {
    const char *path;
    Overrides overrides;
    const char *name;
    int64_t parameters;
  };
  for (const Case &c :
       {Case{"gpt2.weft", {}, "", 124'439'808}, Case{"qwen3.weft", {}, "", 596'049'920},
        Case{"san.weft", {}, "", 24'130'580},
        Case{"san.weft", {{"depth", "4"}, {"hidden", "2048"}}, "", 24'122'376},
        Case{"san.weft", {{"depth", "20"}, {"hidden", "2048"}}, "", 87'055'400},
        // 256*64 + sum over 12 layers of 2*64*4*16 + 2*64*16 + 2*64*(64 + 16 i)
        Case{"zoo.weft", {}, "gemma_like", 16'384 + 12 * (8'192 + 2'048) + 128 * (12 * 64 + 16 * 66)},
        // 256*64 + 2 groups of (4*64*64 + 3 steps of 2*64*256)
        Case{"zoo.weft", {}, "shared", 16'384 + 2 * (4 * 4'096 + 3 * 2 * 64 * 256)}}) {
    Checked result = checkShipped(c.path, c.overrides, c.name);
    ASSERT_TRUE(result.model) << c.path << "\n" << result.text();
    EXPECT_EQ(countParameters(*result.model), c.parameters) << c.path;
  }
}

TEST(Models, SanVariantsAllCheck) {
  for (const Overrides &overrides :
       {Overrides{}, Overrides{{"residual", "standard"}}, Overrides{{"residual", "rezero"}},
        Overrides{{"residual", "none"}}, Overrides{{"gains", "plain"}}, Overrides{{"qk_norm", "off"}},
        Overrides{{"sandwich", "on"}},
        Overrides{{"hidden", "2048"}, {"sandwich", "on"}, {"residual", "rezero"}}}) {
    Checked result = checkShipped("san.weft", overrides);
    EXPECT_TRUE(result.model) << result.text();
  }
  // 20 gates less than the default's 24,130,580.
  EXPECT_EQ(countParameters(*checkShipped("san.weft", {{"residual", "standard"}}).model), 24'130'560);
  // Two gains of 64 less in each of 20 layers.
  EXPECT_EQ(countParameters(*checkShipped("san.weft", {{"qk_norm", "off"}}).model), 24'130'580 - 20 * 128);
}

TEST(Models, ParametersAreListedByPathInOrder) {
  Checked result = checkShipped("zoo.weft", {}, "shared");
  ASSERT_TRUE(result.model) << result.text();
  std::vector<ParameterInfo> parameters = parametersOf(*result.model);
  ASSERT_EQ(parameters.size(), 1 + 2 * (4 + 3 * 2));
  EXPECT_EQ(parameters[0].path, "embed");
  EXPECT_FALSE(parameters[0].inLayer);
  EXPECT_EQ(parameters[1].path, "group.0.wq");
  EXPECT_EQ(parameters[5].path, "group.0.step.0.ffn.up");
  EXPECT_EQ(parameters[5].shape, (std::vector<int64_t>{64, 256}));
  EXPECT_EQ(parameters[5].initA, 0.125); // 64 ** -0.5
  EXPECT_TRUE(parameters[5].inLayer);
  EXPECT_EQ(parameters.back().path, "group.1.step.2.ffn.down");
  EXPECT_EQ(parameters.back().initA, 0.0625); // (4 * 64) ** -0.5
}

TEST(Models, SizesThatDifferByLayer) {
  std::vector<ParameterInfo> parameters = parametersOf(*checkShipped("zoo.weft", {}, "gemma_like").model);
  for (const ParameterInfo &parameter : parameters)
    if (parameter.path == "block.11.ffn.up") {
      EXPECT_EQ(parameter.shape, (std::vector<int64_t>{64, 64 + 16 * 11}));
    }
}

TEST(Models, DepthReachesInitialisers) {
  // 0.02 / sqrt(2 * 8) = 0.005
  for (const ParameterInfo &parameter : parametersOf(*checkShipped("gpt2.weft", {{"depth", "8"}}).model))
    if (parameter.path == "block.7.attn.wo") {
      EXPECT_DOUBLE_EQ(parameter.initA, 0.005);
    }
}

TEST(Models, ChoicesOnSettingsAreMadeNowOthersStay) {
  EXPECT_FALSE(findNode(*checkShipped("san.weft").model, NodeKind::If));
  Checked gemma = checkShipped("zoo.weft", {}, "gemma_like");
  const Node *attend = findNode(*gemma.model, NodeKind::Attend);
  ASSERT_TRUE(attend);
  EXPECT_EQ(print(*attend->formulas.at("window")), "window");
  const Node *let = findNode(*gemma.model, NodeKind::Let);
  ASSERT_TRUE(let);
  EXPECT_EQ(print(*let->formulas.at("value")), "if i mod 6 is 5 { full } else { reach }");
}

TEST(Models, IfOnALayerIndexStays) {
  Checked result = check(inModel("  layer a[i < depth] {\n"
                                 "    if i is 0 {\n      param w : [dim] init 0\n      x = x * w\n    }\n"
                                 "    else { param w : [dim] init 1\n    x = x + w }\n"
                                 "  }"));
  ASSERT_TRUE(result.model) << result.text();
  const Node *choice = findNode(*result.model, NodeKind::If);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->results.size(), 1u);
  EXPECT_EQ(choice->blocks[0].yields.size(), 1u);
  EXPECT_EQ(choice->blocks[1].yields.size(), 1u);
  std::vector<ParameterInfo> parameters = parametersOf(*result.model);
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[1].path, "a.0.w");
  EXPECT_EQ(parameters[1].initA, 0);
  EXPECT_EQ(parameters[3].initA, 1);
  // A test on what decides the number of layers stays as well: a pass can change it.
  EXPECT_TRUE(
      findNode(*check(inModel("  layer a[depth] {\n  if depth > 2 { x = x + 1 }\n  }")).model, NodeKind::If));
  EXPECT_FALSE(
      findNode(*check(inModel("  layer a[depth] {\n  if dim > 2 { x = x + 1 }\n  }")).model, NodeKind::If));
}

TEST(Models, AxesLineUpByName) {
  // The side that holds all axes gives the order, also from the right.
  Checked right = check(inModel("  param b : [dim] init 0\n  x = b + x"));
  EXPECT_EQ(axesOf(*right.model, findNode(*right.model, NodeKind::Binary)), (Axes{"batch", "pos", "dim"}));
  // `@` sums what is shared, never data axes; the left side's axes come first.
  Checked product = check(inModel("  param w : [heads, dim, head] init 0\n  y = x @ w"));
  EXPECT_EQ(axesOf(*product.model, findNode(*product.model, NodeKind::Contract)),
            (Axes{"batch", "pos", "heads", "head"}));
  Checked scores = check(inModel("  param w : [dim, heads] init 0\n  y = (x @ w) @ (x @ w)"));
  const Node *last = findNode(scores.model->body, [&](const Node &node) {
    return node.kind == NodeKind::Contract &&
           scores.model->values[static_cast<size_t>(node.results[0])].axes.size() == 2;
  });
  EXPECT_EQ(axesOf(*scores.model, last), (Axes{"batch", "pos"}));
}

TEST(Models, AttendSharesKeysOfGroups) {
  Checked qwen = checkShipped("qwen3.weft");
  const Node *attend = findNode(*qwen.model, NodeKind::Attend);
  EXPECT_EQ(axesOf(*qwen.model, attend), (Axes{"batch", "pos", "kv", "group", "head"}));
  EXPECT_EQ(print(*attend->formulas.at("scale")), "head ** -0.5");
  EXPECT_EQ(print(*attend->formulas.at("window")), "full");
  const Node *rope = findNode(*qwen.model, NodeKind::Rope);
  EXPECT_EQ(print(*rope->formulas.at("base")), "theta");
  EXPECT_EQ(print(*findNode(*qwen.model, NodeKind::RmsNorm)->formulas.at("eps")), "eps");
  EXPECT_EQ(print(*findNode(*checkShipped("gpt2.weft").model, NodeKind::LayerNorm)->formulas.at("eps")),
            "1e-05");
}

TEST(Models, LayersCarryOnlyWhatTheyChange) {
  // y is assigned on a side that is not chosen, and must not be carried.
  Checked result =
      check(inModel("  y = x\n  layer a[2] {\n    if mode is fancy { y = y + 1 }\n    x = x + y\n  }"));
  ASSERT_TRUE(result.model) << result.text();
  const Node *layer = findNode(*result.model, NodeKind::Layer);
  ASSERT_EQ(layer->operands.size(), 1u);
  EXPECT_EQ(layer->blocks[0].arguments.size(), 1u);
  EXPECT_EQ(layer->blocks[0].yields.size(), 1u);
  EXPECT_EQ(layer->results.size(), 1u);
  EXPECT_EQ(result.model->valueNames[static_cast<size_t>(layer->results[0])], "x");
}

TEST(Models, SwappedCarriedValuesStayApart) {
  Checked result = check(inModel("  y = x * 2\n  layer a[2] {\n    t = x\n    x = y\n    y = t\n  }"));
  ASSERT_TRUE(result.model) << result.text();
  const Node *layer = findNode(*result.model, NodeKind::Layer);
  ASSERT_EQ(layer->operands.size(), 2u);
  EXPECT_EQ(layer->blocks[0].yields[0], layer->blocks[0].arguments[1]);
  EXPECT_EQ(layer->blocks[0].yields[1], layer->blocks[0].arguments[0]);
}

TEST(Models, DefsArePastedIntoTheirCaller) {
  Checked result = check(inModel("  def f(a) {\n    param w : [dim] init 1\n    a * w\n  }\n"
                                 "  layer b[2] { x += branch one { f(x) } + branch two { f(x) } }"));
  ASSERT_TRUE(result.model) << result.text();
  std::vector<ParameterInfo> parameters = parametersOf(*result.model);
  ASSERT_EQ(parameters.size(), 5u);
  EXPECT_EQ(parameters[4].path, "b.1.two.w");
}

TEST(Models, KeepsTheTextAndTheNames) {
  Checked result = checkShipped("nano.weft");
  ASSERT_TRUE(result.model) << result.text();
  EXPECT_EQ(result.model->text.rfind("model nano(", 0), 0u);
  EXPECT_EQ(result.model->text.back(), '}');
  EXPECT_TRUE(findNode(*result.model, NodeKind::Loss));
}

} // namespace
} // namespace weft::lang::test
