//===- texts-test.cpp - Lines, numbers and curves that pages are made of --===//

#include "tools/weft/inspect/Curves.h"
#include "tools/weft/inspect/IrTexts.h"
#include "tools/weft/inspect/LineDiff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace weft::inspect;

namespace {

/// Length of the longest common subsequence, by the textbook's table.
size_t common(const std::vector<int32_t> &a, const std::vector<int32_t> &b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j)
      table[i][j] =
          a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
  return table[a.size()][b.size()];
}

size_t kept(size_t from, const std::vector<Edit> &edits) {
  for (const Edit &edit : edits)
    from -= static_cast<size_t>(edit.drop);
  return from;
}

// Mutation: a diagonal that is walked back one line short.
TEST(LineDiff, EditsMakeOneListOfTheOther) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int kinds = 1 + static_cast<int>(random() % 6);
    std::vector<int32_t> a(random() % 30), b(random() % 30);
    for (std::vector<int32_t> *list : {&a, &b})
      for (int32_t &line : *list)
        line = static_cast<int32_t>(random() % static_cast<unsigned>(kinds));
    const std::vector<Edit> edits = diffLines(a, b);
    ASSERT_EQ(applyEdits(a, edits), b) << round;
    for (size_t i = 1; i < edits.size(); ++i)
      ASSERT_GT(edits[i].keep, 0) << "two edits with nothing between them";
  }
}

/// Whether some line stands once on each side, between what both begin and end with.
bool hasAnchor(std::vector<int32_t> a, std::vector<int32_t> b) {
  while (!a.empty() && !b.empty() && a.back() == b.back())
    a.pop_back(), b.pop_back();
  while (!a.empty() && !b.empty() && a.front() == b.front())
    a.erase(a.begin()), b.erase(b.begin());
  return std::any_of(a.begin(), a.end(), [&](int32_t line) {
    return std::count(a.begin(), a.end(), line) == 1 && std::count(b.begin(), b.end(), line) == 1;
  });
}

// Without lines that stand once on each side, the script is a shortest one.
// Mutation: `<` for `<=` in the choice of a diagonal.
TEST(LineDiff, RepeatedLinesGiveAShortestScript) {
  std::mt19937 random(2);
  int tried = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<int32_t> a(10 + random() % 20), b(10 + random() % 20);
    for (std::vector<int32_t> *list : {&a, &b})
      for (int32_t &line : *list)
        line = static_cast<int32_t>(random() % 3);
    if (hasAnchor(a, b))
      continue;
    ++tried;
    ASSERT_EQ(kept(a.size(), diffLines(a, b)), common(a, b)) << round;
  }
  EXPECT_GT(tried, 500);
}

TEST(LineDiff, WhatDiffersTooMuchIsReplacedWhole) {
  std::vector<int32_t> a, b;
  for (int32_t i = 0; i < 3 * kMostEdits; ++i) {
    a.push_back(i % 7);
    b.push_back(7 + i % 7);
  }
  const std::vector<Edit> edits = diffLines(a, b);
  ASSERT_EQ(edits.size(), 1u);
  EXPECT_EQ(applyEdits(a, edits), b);
}

TEST(IrTexts, LinesComeBackFromTemplatesAndNumbers) {
  const char *lines[] = {"%12 = weft.add %3, %arg0 : tensor<4xf32>",
                         "%5:2 = weft.attend %4#1, %0",
                         "%",
                         "100% of it, %% and %a, %1x, %007, %-3",
                         "%00 %0",
                         "\"a string with %31, no value\"",
                         "%123456789012345 %1234567890123456789012",
                         "",
                         "last %7"};
  for (const char *line : lines)
    EXPECT_EQ(withNumbers(withoutNumbers(line)), line);
  const Numbered add = withoutNumbers(lines[0]);
  EXPECT_EQ(add.text, "% = weft.add %, %arg0 : tensor<4xf32>");
  EXPECT_EQ(add.numbers, (std::vector<int64_t>{12, 3}));
}

// The same ops under other numbers are no change. Mutation: numbers in the template.
TEST(IrTexts, OtherNumbersAreNoChange) {
  IrTexts texts;
  EXPECT_EQ(texts.add("%0 = a\n%1 = b %0\nreturn %1\n", {}).added, 3);
  const TextChange renamed = texts.add("%7 = a\n%8 = b %7\nreturn %8\n", {});
  EXPECT_EQ(renamed.added + renamed.dropped, 0);
  EXPECT_EQ(renamed.text, 1u);
  const TextChange grown = texts.add("%7 = a\n%8 = c\n%9 = b %7\nreturn %9\n", {});
  EXPECT_EQ(grown.added, 1);
  EXPECT_EQ(grown.dropped, 0);
  EXPECT_EQ(grown.lines, 4);
  // Places count: an op of another line of the text is another line.
  const int32_t place = texts.place("here", {{"at", 1}});
  EXPECT_EQ(texts.add("%7 = a\n%8 = c\n%9 = b %7\nreturn %9\n", {0, place}).added, 1);
  EXPECT_EQ(texts.toJson()["lines"].size(), 2u * 5u);
}

TEST(Curves, ShortOnesStayAndBrokenPointsAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ThinCurve thin = thinned({{1, 2, 3, 4}, {0.5, nan, 7, INFINITY}}, 10);
  EXPECT_EQ(thin.steps, (std::vector<double>{1, 3}));
  EXPECT_EQ(thin.values, (std::vector<double>{0.5, 7}));
  EXPECT_EQ(thin.broken, 2u);
  EXPECT_EQ(thin.brokenSteps, (std::vector<double>{2, 4}));
}

// Mutation: a stretch's end that is left out.
TEST(Curves, LongOnesKeepTheirPeaks) {
  std::mt19937 random(3);
  Curve curve;
  for (int i = 0; i < 12345; ++i) {
    curve.steps.push_back(i);
    curve.values.push_back(static_cast<double>(random() % 1000));
  }
  curve.values[4321] = 5000;
  curve.values[9876] = -5000;
  const ThinCurve thin = thinned(curve, 200);
  EXPECT_LE(thin.steps.size(), 200u);
  EXPECT_EQ(thin.points, 12345u);
  EXPECT_TRUE(std::is_sorted(thin.steps.begin(), thin.steps.end()));
  EXPECT_EQ(thin.steps.front(), 0);
  EXPECT_EQ(thin.steps.back(), 12344);
  EXPECT_EQ(*std::max_element(thin.values.begin(), thin.values.end()), 5000);
  EXPECT_EQ(*std::min_element(thin.values.begin(), thin.values.end()), -5000);
  for (size_t i = 0; i < thin.steps.size(); ++i)
    EXPECT_EQ(thin.values[i], curve.values[static_cast<size_t>(thin.steps[i])]);
}

} // namespace
