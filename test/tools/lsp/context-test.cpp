// `|` marks the place in each text.
#include "tools/lsp/Context.h"

#include <gtest/gtest.h>

namespace weft::lsp {
namespace {

Context at(std::string text) {
  const size_t mark = text.find('|');
  text.erase(mark, 1);
  return contextAt(text, mark);
}

TEST(Context, FindsStatements) {
  using enum lang::WordPlace;
  EXPECT_EQ(at("mo|").place, File);
  EXPECT_EQ(at("model m(a = 1) {\n  x = a|\n").place, Model);
  EXPECT_EQ(at("model m(a = 1, b = a|").place, Model);
  EXPECT_EQ(at("model m() {\n}\n|").place, File);
  EXPECT_EQ(at("plan p for m {\n  win|\n").place, Plan);
  EXPECT_EQ(at("plan p for m {\n  windows adaptive on block[..] {\n    ev|").place, Windows);
  EXPECT_EQ(at("plan p for m {\n  windows 5 on x\n  freeze 25% of block[..] { b|").place, Freeze);
  EXPECT_EQ(at("train t for m {\n  d|").place, Recipe);
  EXPECT_EQ(at("weights w for m {\n  |").place, Table);
}

// Mutation: words of comments and strings taken as words.
TEST(Context, SaysNothingInCommentsAndStrings) {
  EXPECT_FALSE(at("model m() {\n  # no|\n").place);
  EXPECT_FALSE(at("# |").place);
  EXPECT_FALSE(at("use \"na|").place);
  EXPECT_TRUE(at("# a\n|").place);
}

TEST(Context, FindsAddressesKeysAndAxes) {
  const Context address = at("plan p for m {\n  freeze 25% of block[0..9, 12].attn.he|");
  EXPECT_TRUE(address.afterDot);
  EXPECT_EQ(address.steps, (std::vector<std::string>{"block", "attn"}));
  EXPECT_EQ(address.model, "m");
  EXPECT_EQ(at("train t for m {\n  schedule = co|").key, "schedule");
  EXPECT_EQ(at("train t for m {\n  schedule = cosine\n  cl|").key, "");
  EXPECT_TRUE(at("plan p for |").afterFor);
  EXPECT_TRUE(at("model m(d = 1) {\n  param w : [d, |").inAxes);
  EXPECT_FALSE(at("model m(d = 1) {\n  x = w[|").inAxes);
}

} // namespace
} // namespace weft::lsp
