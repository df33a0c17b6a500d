// Positions of editors. Expected units are those of UTF-16: 1 for é (U+00E9),
// 2 for a character past U+FFFF.
#include "tools/lsp/Text.h"

#include <gtest/gtest.h>

namespace weft::lsp {
namespace {

// Mutation: units counted as bytes, or a pair counted as one.
TEST(Text, CountsUtf16Units) {
  const Text text("a\xC3\xA9\xF0\x9F\x98\x80z\n# second");
  // bytes: a 0, é 1..2, emoji 3..6, z 7, LF 8
  EXPECT_EQ(text.offsetOf({0, 0}), 0u);
  EXPECT_EQ(text.offsetOf({0, 1}), 1u);
  EXPECT_EQ(text.offsetOf({0, 2}), 3u);
  EXPECT_EQ(text.offsetOf({0, 4}), 7u);
  EXPECT_EQ(text.offsetOf({0, 5}), 8u);
  EXPECT_EQ(text.positionOf(3).character, 2);
  EXPECT_EQ(text.positionOf(7).character, 4);
  EXPECT_EQ(text.positionOf(8).character, 5);
  EXPECT_EQ(text.positionOf(9).line, 1);
}

// Mutation: a place inside a pair taken as behind it.
TEST(Text, InsideAPairIsItsStart) {
  const Text text("\xF0\x9F\x98\x80z");
  EXPECT_EQ(text.offsetOf({0, 1}), 0u);
  EXPECT_EQ(text.offsetOf({0, 2}), 4u);
}

TEST(Text, BehindEndsIsTheEnd) {
  const Text text("ab\ncd");
  EXPECT_EQ(text.offsetOf({0, 99}), 2u);
  EXPECT_EQ(text.offsetOf({1, 99}), 5u);
  EXPECT_EQ(text.offsetOf({7, 0}), 5u);
  EXPECT_EQ(text.positionOf(99).character, 2);
}

// Mutation: CR LF counted twice, or left inside its line.
TEST(Text, EveryLineEndCountsOnce) {
  const Text text("a\r\nb\rc\nd");
  for (int64_t line = 0; line < 4; ++line) {
    const size_t start = text.offsetOf({line, 0});
    EXPECT_EQ(text.bytes()[start], static_cast<char>('a' + line));
    EXPECT_EQ(text.offsetOf({line, 9}), start + 1);
    EXPECT_EQ(text.positionOf(start).line, line);
  }
}

TEST(Text, BytesThatAreNoUtf8CountAsOne) {
  const Text text("\xFF\xC3(x");
  EXPECT_EQ(text.offsetOf({0, 3}), 3u);
  EXPECT_EQ(text.positionOf(3).character, 3);
}

TEST(Text, ReplacesRanges) {
  Text text("x = \xC3\xA9 # one\ny");
  ASSERT_TRUE(text.replace({{0, 4}, {0, 5}}, "e\nf").ok());
  EXPECT_EQ(text.bytes(), "x = e\nf # one\ny");
  EXPECT_EQ(text.offsetOf({2, 0}), 14u);
  EXPECT_FALSE(text.replace({{1, 0}, {0, 0}}, "").ok());
}

TEST(Text, LeavesOutAMark) { EXPECT_EQ(Text("\xEF\xBB\xBFx").bytes(), "x"); }

// Mutation: escapes left as they are.
TEST(Uri, GoesThereAndBack) {
  EXPECT_EQ(pathOfUri("file:///a%20b/c%C3%A9.weft"), "/a b/c\xC3\xA9.weft");
  EXPECT_EQ(uriOfPath("/a b/c\xC3\xA9.weft"), "file:///a%20b/c%C3%A9.weft");
  EXPECT_EQ(pathOfUri("untitled:Untitled-1"), "untitled:Untitled-1");
  EXPECT_EQ(pathOfUri("file:///a%2"), "/a%2");
}

} // namespace
} // namespace weft::lsp
