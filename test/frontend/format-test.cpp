// The layout: shipped texts have it, it is stable, and it loses nothing.
#include "frontend/Format.h"
#include "frontend/Lexer.h"
#include "test/frontend/error-pages.h"

#include <gtest/gtest.h>

namespace weft::lang {
namespace {

std::string formatted(const std::string &text) {
  absl::StatusOr<std::string> result = formatText("t.weft", text);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : "";
}

std::vector<std::string> wordsOf(const std::string &text) {
  SourceFiles sources;
  Diagnostics diagnostics;
  std::vector<ast::Comment> comments;
  int32_t file = sources.add("t", text);
  std::vector<std::string> words;
  for (const Token &token : lex(file, sources, diagnostics, &comments))
    words.emplace_back(token.text);
  for (const ast::Comment &comment : comments)
    words.emplace_back(sources.textAt(comment.place));
  return words;
}

TEST(Format, ShippedTextsHaveTheLayout) {
  for (const char *name : {"gpt2", "san", "qwen3", "gpt_rope", "peer", "tiny", "nano", "zoo", "plans"}) {
    std::string text = slurp(std::string(WEFT_SOURCE_DIR "/models/") + name + ".weft");
    ASSERT_FALSE(text.empty()) << name;
    EXPECT_EQ(formatted(text), text) << name;
  }
}

// Spaces and blank lines are all that may change.
TEST(Format, UndoesSpacingAndKeepsEveryWord) {
  for (const char *name : {"gpt2", "san", "qwen3", "zoo", "plans"}) {
    std::string text = slurp(std::string(WEFT_SOURCE_DIR "/models/") + name + ".weft"), crushed;
    // Indentation gone, runs of spaces cut to one outside strings and comments.
    bool string = false, comment = false, start = true;
    for (char c : text) {
      string = !comment && (c == '"' ? !string : string);
      comment = c == '\n' ? false : comment || (c == '#' && !string);
      bool space = c == ' ' && !string && !comment;
      if (space && (start || crushed.back() == ' '))
        continue;
      start = c == '\n';
      crushed += c;
      if (c == '\n')
        crushed += '\n';
    }
    std::string once = formatted(crushed);
    EXPECT_EQ(wordsOf(once), wordsOf(text)) << name;
    EXPECT_EQ(formatted(once), once) << name;
  }
}

TEST(Format, AlignsRunsOfOneKind) {
  EXPECT_EQ(formatted("model m(dim=8){\nparam a:[dim] init 0\nparam long_name:[dim,dim2] init "
                      "normal(0.02)\n\nparam b:[dim] init 1\n}\n"),
            "model m(dim = 8) {\n"
            "  param a         : [dim]        init 0\n"
            "  param long_name : [dim, dim2]  init normal(0.02)\n"
            "\n"
            "  param b : [dim] init 1\n"
            "}\n");
  EXPECT_EQ(formatted("train t for m {\nsteps=10 # a\nlr_something   =  2%# b\n}\n"),
            "train t for m {\n"
            "  steps        = 10  # a\n"
            "  lr_something = 2%  # b\n"
            "}\n");
}

TEST(Format, SpacesOperatorsAndSigns) {
  EXPECT_EQ(
      formatted("model m(a=1){\nx=-a**-2*(b -1)@c[i]\ny= f( -1,k = not(a is b))\nif(a<=b){x+=1}else{}\n}"),
      "model m(a = 1) {\n"
      "  x = -a ** -2 * (b - 1) @ c[i]\n"
      "  y = f(-1, k = not (a is b))\n"
      "  if (a <= b) { x += 1 } else {}\n"
      "}\n");
  // A space tells a list from an index in plans.
  EXPECT_EQ(formatted("plan p for m {\nwindows  [1,full]  on block[ 0 .. 3,5 ].attn.heads[..]\n}"),
            "plan p for m {\n  windows [1, full] on block[0..3, 5].attn.heads[..]\n}\n");
}

TEST(Format, KeepsCommentsAndBlankLinesAtMostOne) {
  EXPECT_EQ(formatted("# head\n\n\n\nmodel m() {\n\n# inside\n\n\nx = 1# tail\n\n}\n# end"),
            "# head\n\nmodel m() {\n  # inside\n\n  x = 1  # tail\n}\n# end\n");
  EXPECT_EQ(formatted(""), "");
}

// Found by fuzzing: indented, the second line would be a statement of a block that is closed, and the text parse.
// Catches: a missing `}` that fmt hides; a setting called `weights` in a continued line taken for a table.
TEST(Format, RefusesABlockThatLostItsEnd) {
  absl::StatusOr<std::string> result =
      formatText("t.weft", "plan a for m { windows 8\nplan b for m { windows 4 }}\n");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(std::string(result.status().message()).find("t.weft:2:1: error[W0102]"), std::string::npos)
      << result.status();
  EXPECT_EQ(formatted("plan a for m {\nuse base\n}\n"), "plan a for m {\n  use base\n}\n");
  EXPECT_EQ(formatted("model m(weights = 3) {\nlet a = 4 *\nweights mod 2\n}\n"),
            "model m(weights = 3) {\n  let a = 4 *\n      weights mod 2\n}\n");
}

// Found by fuzzing. Catches: spaces taken out between words that then are another one; a space put in front of an
// index, which then is a layout.
TEST(Format, JoinsNoWords) {
  const std::string table =
      "weights w for m {\n  a      <-> \"a\" [dim]\n  longer <-> \"b\"[i]\n  b <-> c[i].d [dim]\n}\n";
  EXPECT_EQ(formatted(table), "weights w for m {\n  a      <-> \"a\"    [dim]\n  longer <-> \"b\"    [i]\n  "
                              "b      <-> c[i].d [dim]\n}\n");
  const std::string bare = formatted("weights w for m {\n  a <-> \"a\" <->[i]\n  b <-> \"b\" [i]\n}\n");
  EXPECT_EQ(formatted(bare), bare);
  EXPECT_EQ(formatted("plan p for m {\nwindows 8 on a .b\n}\n"), "plan p for m {\n  windows 8 on a .b\n}\n");
  for (const char *text :
       {"0. 02", "0 .02", "a . . b", "a .. . b", "a . 5", "1 .. 2", "1 .. .5", "0[a]", "a .b", "a[1] .b"}) {
    const std::string plan = std::string("plan p for m {\n  windows 8 on ") + text + "\n}\n";
    EXPECT_EQ(wordsOf(formatted(plan)), wordsOf(plan)) << formatted(plan);
    EXPECT_EQ(formatted(formatted(plan)), formatted(plan));
  }
}

TEST(Format, RefusesWhatItCannotRead) {
  EXPECT_FALSE(formatText("t.weft", "model m( {").ok());
  EXPECT_FALSE(formatText("t.weft", "model m() { ] }").ok());
  EXPECT_FALSE(formatText("t.weft", "use \"open\n").ok());
}

} // namespace
} // namespace weft::lang
