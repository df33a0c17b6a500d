//===- checker-test.cpp - One small wrong text for each cause -------------===//

#include "check-helpers.h"

#include "gtest/gtest.h"

namespace weft::lang::test {
namespace {

struct Refusal {
  const char *codes;      // with places
  const char *statements; // of inModel: they start in line 5
  const char *said;       // a part of the message
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, ByCodePlaceAndWords) {
  Checked result = check(inModel(GetParam().statements));
  EXPECT_FALSE(result.model);
  EXPECT_EQ(result.codes(), GetParam().codes) << result.text();
  EXPECT_NE(result.text().find(GetParam().said), std::string::npos) << result.text();
}

const Refusal kNames[] = {
    {"W0107@5:3", "  x + 1", "used by nobody"},
    {"W0107@6:3", "  layer a[2] {\n  input w : int[batch, pos]\n  }", "outermost block"},
    {"W0109@5:31", "  x = rms_norm(x, eps = 1e-6, eps = 1e-5)", "gets eps twice"},
    {"W0201@5:7", "  x = embde[tokens]", "did you mean embed?"},
    {"W0201@5:9", "  x = x[poss]", "there is no name poss"},
    {"W0214@6:3", "  x += branch a {\n  x = x + 1\n  x\n  }", "belongs to model m"},
    {"W0202@6:7", "  layer a[2] {\n  let dim = 3\n  }", "hides a setting of model m"},
    {"W0202@5:7", "  let batch = 3", "always exists"},
    {"W0203@5:7", "  x = gleu(x)", "did you mean gelu?"},
    {"W0204@5:14", "  def f(a) = f(a)\n  x = f(x)", "def f calls itself: f -> f"},
    {"W0204@6:14", "  def f(a) = g(a)\n  def g(a) = f(a)\n  x = f(x)", "f -> g -> f"},
    {"W0205@7:14", "  def f(a) {\n  param w : [dim] init 0; a * w }\n  x = f(x) + f(x)",
     "wrap one call in a branch"},
    {"W0206@6:7", "  def f(a) = a\n  x = f(x, x)", "takes 1 argument, found 2"},
    {"W0206@5:7", "  x = attend(x, x)", "takes 3 tensors"},
    {"W0206@5:7", "  x = dropout(x)", "takes 1 tensor and rate"},
    {"W0207@5:19", "  x = rms_norm(x, epsilon = 1)", "has no argument epsilon, it has eps"},
    {"W0209@5:9", "  param embed : [dim] init 0", "a second parameter embed"},
    {"W0209@6:7", "  let a = 1\n  let a = 2", "declared twice"},
    {"W0209@6:8", "  x += branch a { x }\n  x += branch a { x }", "a second branch a"},
    {"W0211@5:14", "  if mode is fancey { x = x + 1 }", "did you mean fancy?"},
    {"W0215@6:11", "  x += branch a { x }\n  x = x + a", "a is a layer or a branch, expected a value"},
    {"W0214@5:3", "  dim = x", "dim is a setting of model m"},
    {"W0214@5:3", "  tokens = x", "tokens is an input"},
};

const Refusal kAxes[] = {
    {"W0301@6:7", "  param b : [heads] init 0\n  x = x + b",
     "the left side lacks heads, the right side lacks batch, pos, dim"},
    {"W0302@6:7", "  param w : [heads, head] init 0\n  y = x @ w",
     "[batch, pos, dim = 4] @ [heads = 2, head = 2]"},
    {"W0303@5:7", "  y = softmax(x @ (x * 0))", "softmax works on the last axis"},
    {"W0304@5:7", "  y = attend(x, x @ embed, x)", "q and k must share their last axis, found dim and vocab"},
    {"W0305@5:19", "  param w : [dim, dim] init 0\n  x = x @ w", "`let dim2 = dim`"},
    {"W0305@8:7",
     "  param w : [dim, heads, head] init 0\n  param u : [dim, head] init 0\n  param v : [dim, heads] init "
     "0\n"
     "  y = attend(x @ w, x @ u, x @ v)",
     "[batch, pos, heads = 2, heads = 2]"},
    {"W0304@7:7",
     "  param w : [dim, heads, head] init 0\n  param v : [dim, heads] init 0\n"
     "  y = attend(x @ w, x @ w, x @ w @ v * 1)",
     "k and v must have"},
    {"W0306@5:7", "  y = x + tokens", "expected floats in arithmetic, found int[batch, pos]"},
    {"W0308@5:14", "  param w : [tokens] init 0", "tokens is no size"},
    {"W0308@5:14", "  param w : [pos] init 0", "an axis of the data"},
    {"W0308@5:14", "  param w : [mode] init 0", "mode is no size"},
    {"W0308@5:28", "  def f(a, n) { param w : [n, dim] init 0; a @ w @ w }\n  x = f(x, 2 * dim)",
     "n stands for 2 * dim here"},
    {"W0309@8:3", "  y = branch a {\n  let wide = 8\n  param w : [dim, wide] init 0\n  x @ w\n  }",
     "wide, which is known inside"},
    {"W0310@7:7", "  param w : [dim, heads] init 0\n  layer a[2] {\n  x = x @ w\n  }",
     "enters layer a as [batch, pos, dim = 4] and leaves it as [batch, pos, heads = 2]"},
    {"W0311@7:3",
     "  param w : [dim, heads] init 0\n  layer a[i < 2] { y = x\n  if i is 0 { y = x @ w }\n  x = x + x }",
     "on one side of this if"},
    {"W0312@5:7", "  y = embed[x]", "expected a table of floats and an index of whole numbers"},
    {"W0312@5:7", "  y = embed[3]", "found [vocab = 8, dim = 4] and 3"},
    {"W0313@5:7", "  y = cross_entropy(x, x)", "targets int[batch, pos]"},
    {"W0314@5:10", "  loss = x", "expected a loss without axes, found [batch, pos, dim = 4]"},
    {"W0209@6:3", "  loss = cross_entropy(x, targets)\n  loss = 1", "a second loss"},
    {"W0316@5:6", "  if x > 1 { x = x + 1 }", "found a tensor [batch, pos, dim = 4]"},
    {"W0317@5:7", "  y = branch a { let c = 3 }", "branch a has no value"},
    {"W0317@5:7", "  y = if depth > 9 { x }", "this if has no value"},
    {"W0317@5:7", "  def f(a) { let c = 3 }\n  y = f(x)", "def f has no value"},
    {"W0325@5:6", "  if depth { x = x + 1 }", "expected a test"},
    {"W0326@5:7", "  y = x @ 3", "expected tensors on both sides of `@`"},
    {"W0326@5:7", "  y = mode", "found plain"},
};

const Refusal kSizes[] = {
    {"W0318@5:11", "  let a = dim / 3", "dim / 3 = 4 / 3 is not whole: dim at m.weft:1:20"},
    {"W0318@6:11", "  layer a[i < 3] {\n  let w = 12 / (2 - i)\n  param p : [w] init 0; x = x + 0 }",
     "divides by 0"},
    {"W0319@7:9", "  layer a[i < 3] {\n  let w = 2 - i\n  param p : [w] init 0\n  }",
     "the axis w of p has size 0, expected a whole number of at least 1: w at m.weft:6:7, in a.2"},
    {"W0319@5:11", "  layer a[1.5] { x = x + x }", "repeats 1.5 times"},
    {"W0320@5:31", "  param w : [dim] init normal(-1)", "a spread of -1"},
    {"W0320@5:24", "  param w : [dim] init full", "expected a number to start w with, found full"},
    {"W0320@5:32", "  param w : [dim] init uniform(2, 1)", "the lower bound first"},
    {"W0321@5:32", "  y = attend(x, x, x, window = 0)", "the window is 0"},
    {"W0323@5:18", "  x = dropout(x, 1)", "rate is 1, expected a number from 0 to below 1"},
    {"W0324@6:9", "  layer a[20000] {\n  param w : [dim] init 0\n  }", "more than 10000 layers"},
    {"W0322@7:7", "  let odd = 3\n  param w : [dim, odd] init 0\n  y = rope(x @ w)",
     "found odd = 3, expected an even size"},
};

INSTANTIATE_TEST_SUITE_P(Names, Refused, testing::ValuesIn(kNames));
INSTANTIATE_TEST_SUITE_P(Axes, Refused, testing::ValuesIn(kAxes));
INSTANTIATE_TEST_SUITE_P(Sizes, Refused, testing::ValuesIn(kSizes));

TEST(Checker, RefusesBadOverridesByName) {
  auto codes = [](const Overrides &overrides) {
    return check(inModel("  let half = dim / 2"), overrides).codes();
  };
  EXPECT_EQ(codes({{"hed", "3"}}), "W0210@1:7");
  EXPECT_EQ(codes({{"mode", "fany"}}), "W0211@1:61");
  EXPECT_EQ(codes({{"half", "3"}}), "W0212@5:14");
  EXPECT_EQ(codes({{"dim", "4 +"}}), "W0213@1:20");
  EXPECT_EQ(codes({{"dim", "3"}}), "W0318@5:14");
  EXPECT_EQ(codes({{"dim", "3"}, {"dim", "6"}}), ""); // the last one wins
}

TEST(Checker, RefusalNamesWhereEachNumberComesFrom) {
  Checked result = checkShipped("qwen3.weft", {{"heads", "7"}});
  EXPECT_NE(result.text().find(
                "heads / kv = 7 / 8 is not whole: heads is set on the command line (--set heads=7), kv at"),
            std::string::npos)
      << result.text();
  EXPECT_NE(result.text().find("qwen3.weft:3:65"), std::string::npos) << result.text();
}

TEST(Checker, ErrorInsideADefNamesTheCalls) {
  Checked result = check(inModel("  def f(a) = a + tokens\n  def g(a) = f(a)\n  x = g(x)"));
  EXPECT_EQ(result.codes(), "W0306@5:14");
  EXPECT_NE(result.text().find("m.weft:6:14: note: inside def f, called here"), std::string::npos)
      << result.text();
  EXPECT_NE(result.text().find("m.weft:7:7: note: inside def g, called here"), std::string::npos)
      << result.text();
}

TEST(Checker, OneCauseGivesOneError) {
  EXPECT_EQ(check(inModel("  y = nowhere + 1\n  z = y * 2\n  x = x + z")).codes(), "W0201@5:7");
}

TEST(Checker, ChoosesModelsByName) {
  const char *two = "model a() { output y = 1 }\nmodel b() { output y = 1 }\n";
  EXPECT_EQ(check(two).codes(), "W0208");
  EXPECT_EQ(check(two, {}, "c").codes(), "W0208");
  EXPECT_TRUE(check(two, {}, "b").model);
  EXPECT_EQ(check("plan p for m { windows 4 }").codes(), "W0208");
  EXPECT_EQ(check("model a() { output y = 1 }\nmodel a() { output y = 1 }\n", {}, "a").codes(), "W0209@2:7");
  EXPECT_EQ(check("model a() { let b = 1 }").codes(), "W0315@1:7");
  EXPECT_EQ(check("model a() { input t : int[pos, batch]\n output y = 1 }").codes(), "W0307@1:27");
}

} // namespace
} // namespace weft::lang::test
