//===- formula-test.cpp - Values, texts and refusals of formulas ----------===//

#include "frontend/Formula.h"

#include "gtest/gtest.h"

namespace weft::lang {
namespace {

const Bindings kNames = {{"dim", Value::ofNumber(768)},    {"heads", Value::ofNumber(7)},
                         {"kv", Value::ofNumber(8)},       {"depth", Value::ofNumber(8)},
                         {"mode", Value::ofWord("fancy")}, {"window", Value::full()}};

std::string valueOf(std::string_view text) {
  std::string why;
  FormulaRef formula = parseFormula(text, &why);
  if (!formula)
    return why;
  FormulaError error;
  std::optional<Value> value = evaluate(*formula, kNames, &error);
  return value ? value->text() : error.message;
}

TEST(Formula, Evaluates) {
  EXPECT_EQ(valueOf("64 + 16 * 3"), "112");
  EXPECT_EQ(valueOf("2 - 3 - 4"), "-5"); // grouping to the right would give 3
  EXPECT_EQ(valueOf("-2 ** 2"), "-4");   // ** binds tighter than the sign
  EXPECT_EQ(valueOf("2 ** 3 ** 2"), "512");
  EXPECT_EQ(valueOf("64 ** -0.5"), "0.125");
  EXPECT_EQ(valueOf("17 mod 6"), "5");
  EXPECT_EQ(valueOf("if 11 mod 6 is 5 { full } else { 128 }"), "full");
  EXPECT_EQ(valueOf("if mode is plain { 1 } else if mode is fancy { 2 } else { 3 }"), "2");
  EXPECT_EQ(valueOf("not 1 < 2 or 3 >= 3 and mode is not plain"), "yes");
  EXPECT_EQ(valueOf("max(3, min(9, 5), 4)"), "5");
  EXPECT_EQ(valueOf("window is full"), "yes");
}

TEST(Formula, QuotientsOfSizesMustBeWhole) {
  EXPECT_EQ(valueOf("dim / 12"), "64");
  EXPECT_EQ(valueOf("heads / kv"), "heads / kv = 7 / 8 is not whole");
  // What comes out of sqrt is no size, whole or not: 1 / sqrt(16) must not fail.
  EXPECT_EQ(valueOf("1 / sqrt(2 * depth)"), "0.25");
  EXPECT_EQ(valueOf("1.0 / kv"), "0.125");
  EXPECT_EQ(valueOf("1 / 0"), "1 / 0 divides by 0");
}

TEST(Formula, RefusesWhatHasNoValue) {
  EXPECT_EQ(valueOf("hidden + 1"), "hidden has no value here");
  EXPECT_EQ(valueOf("mode + 1"), "mode is the word fancy, expected a number in mode + 1");
  EXPECT_EQ(valueOf("sqrt(-1)"), "sqrt(-1) has no finite value");
  EXPECT_EQ(valueOf("mode is 3"), "mode is 3 compares the word fancy with the number 3");
  EXPECT_EQ(valueOf("if dim { 1 } else { 2 }"), "dim is the number 768, expected a test");
  EXPECT_EQ(valueOf("2 ** 60"), "2 ** 60 is larger than 2 ** 53");
}

TEST(Formula, PrintsWithFewestParentheses) {
  for (const char *text :
       {"a + b * c", "(a + b) * c", "a - (b - c)", "(-a) ** 2", "-a ** 2", "a ** -0.5", "2.0 / 3",
        "a ** b ** c", "(a ** b) ** c", "not a is b and c < 4 or d is full",
        "if i mod 6 is 5 { full } else if i > 2 { 3 } else { reach }", "(if a is b { 1 } else { 2 }) + 1",
        "max(a, b + 1, sqrt(c))", "1e-06", "6e+20", "-3 + a"}) {
    FormulaRef formula = parseFormula(text);
    ASSERT_TRUE(formula) << text;
    EXPECT_EQ(print(*formula), text);
  }
}

TEST(Formula, ParserIsBounded) {
  std::string error;
  EXPECT_FALSE(parseFormula(std::string(100'000, '(') + "1", &error));
  EXPECT_NE(error.find("200"), std::string::npos) << error;
  std::string sum = "1";
  for (int i = 0; i < 50'000; ++i)
    sum += " + 1";
  EXPECT_FALSE(parseFormula(sum, &error));
  for (const char *text :
       {"", "1 +", "f(", "if a", "(1", "1 2", "a is", "foo(1)", "min(1)", "\xff", "if a { 1 }"})
    EXPECT_FALSE(parseFormula(text, &error)) << text;
}

TEST(Formula, NamesComeOnceInOrder) {
  EXPECT_EQ(namesIn(*parseFormula("b + a * b + sqrt(c)")), (std::vector<std::string>{"b", "a", "c"}));
}

} // namespace
} // namespace weft::lang
