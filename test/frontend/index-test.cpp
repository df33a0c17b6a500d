// What names mean, and what parts cost. Figures are worked by hand in comments.
#include "check-helpers.h"
#include "frontend/CheckFile.h"
#include "frontend/Counts.h"
#include "frontend/Recipe.h"
#include "frontend/Words.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace weft::lang::test {
namespace {

struct Indexed : Checked {
  NameIndex names;
  FileStatements statements;

  /// The entry at the `nth` (from 1) occurrence of `word`, `skip` bytes on.
  const NameEntry *at(const std::string &word, int nth = 1, size_t skip = 0) const {
    const std::string &text = sources.file(0).text;
    size_t where = text.find(word);
    for (; nth > 1; --nth)
      where = text.find(word, where + 1);
    return names.at(0, static_cast<int32_t>(where + skip));
  }
  std::string type(const std::string &word, int nth = 1, size_t skip = 0) const {
    const NameEntry *entry = at(word, nth, skip);
    return entry ? entry->type : "none";
  }
  /// Where the name is declared: `line:column`.
  std::string declared(const std::string &word, int nth = 1, size_t skip = 0) const {
    const NameEntry *entry = at(word, nth, skip);
    if (!entry)
      return "none";
    return std::to_string(entry->declared.line) + ":" + std::to_string(entry->declared.column);
  }
};

void index(Indexed &result, std::string text) {
  result.file = parseText("m.weft", std::move(text), result.sources, result.diagnostics);
  result.statements = checkStatements(result.file, 0, result.sources, {}, result.diagnostics, &result.names);
  indexStatements(result.file, result.names);
}

constexpr const char *kText =
    R"(model m(vocab = 8, dim = 4, heads = 2, head = dim / heads, depth = 3, act = soft | hard) {
  let wide = 2 * dim
  def norm(z, gain) = gain * rms_norm(z)
  input tokens, targets : int[batch, pos]
  param embed : [vocab, dim] init 0
  x = embed[tokens]
  layer block[i < depth] {
    x += branch attn {
      param gain : [dim] init 1
      param wq, wk, wv : [dim, heads, head] init normal(0.1)
      param wo : [heads, head, dim] init normal(0.1)
      h = norm(x, gain)
      attend(h @ wq, h @ wk, h @ wv, window = if i is 0 { 2 } else { full }) @ wo
    }
    x += branch ffn {
      param up : [dim, wide] init 0
      param down : [wide, dim] init 0
      if act is hard { relu(x @ up) @ down } else { gelu(x @ up) @ down }
    }
  }
  output logits = x @ embed
  loss = cross_entropy(logits, targets)
}
plan p for m {
  windows 3 on block[1..].attn
  freeze 25% of block[..].attn.heads[..] { by = variance }
}
weights w for m {
  sizes "c.json" { dim = width }
  embed <-> "e" [vocab, dim]
  block[i].attn.(wq, wk, wv) <-> "{i}.qkv" [(3, heads, head), dim]
}
)";

// Mutation: a use bound to the innermost name of its text, not to what the scopes say.
TEST(Index, FindsDeclarations) {
  Indexed m;
  index(m, kText);
  EXPECT_EQ(m.declared("heads = 2"), "1:29");
  EXPECT_EQ(m.declared("dim / heads"), "1:20");
  EXPECT_EQ(m.declared("[vocab, dim]", 1, 1), "1:9"); // an axis
  EXPECT_EQ(m.declared("wide] init", 1), "2:7");
  EXPECT_EQ(m.declared("norm(x, gain)"), "3:7");        // a def, called
  EXPECT_EQ(m.declared("norm(x, gain)", 1, 8), "9:13"); // its argument
  EXPECT_EQ(m.declared("gain * rms_norm"), "3:15");     // inside the def
  EXPECT_EQ(m.declared("i is 0"), "7:15");
  EXPECT_EQ(m.declared("hard {"), "1:84");
  EXPECT_EQ(m.declared("act is"), "1:71");
  EXPECT_EQ(m.declared("x += branch ffn"), "6:3");
  EXPECT_EQ(m.declared("logits, targets"), "21:10");
  EXPECT_EQ(m.declared("rms_norm"), "0:0");
}

TEST(Index, FindsNamesOfOtherStatements) {
  Indexed m;
  index(m, kText);
  EXPECT_EQ(m.declared("m {\n  windows"), "1:7");
  EXPECT_EQ(m.declared("block[1..]"), "7:9");
  EXPECT_EQ(m.declared("block[1..].attn", 1, 11), "8:17");
  EXPECT_EQ(m.declared("(wq, wk, wv)", 1, 5), "10:17");
  EXPECT_EQ(m.declared("dim = width"), "1:20");
  EXPECT_EQ(m.declared("(3, heads", 1, 4), "1:29");
  EXPECT_EQ(m.declared("variance"), "none");
  // Every use of block: its declaration, a plan twice, a table once.
  EXPECT_EQ(m.names.usesOf(m.at("block[i < depth]")->declared).size(), 4u);
}

// Mutation: the shape before an assignment shown for the one after it.
TEST(Index, KnowsShapes) {
  Indexed m;
  index(m, kText);
  EXPECT_EQ(m.type("x = embed"), "[batch, pos, dim = 4]");
  EXPECT_EQ(m.type("embed[tokens]", 1, 6), "int[batch, pos]");
  EXPECT_EQ(m.type("wide = 2"), "8");
  EXPECT_EQ(m.type("head = dim / heads"), "2");
  EXPECT_EQ(m.type("i < depth"), "0 to 2");
  EXPECT_EQ(m.type("@ wq"), "[batch, pos, heads = 2, head = 2]");
  EXPECT_EQ(m.type("attend("), "[batch, pos, heads = 2, head = 2]");
  EXPECT_EQ(m.type("norm(x, gain)"), "[batch, pos, dim = 4]");
  EXPECT_EQ(m.type("cross_entropy"), "[]");
  EXPECT_EQ(m.type("soft |"), "act");
  EXPECT_EQ(m.at("wv : ")->path, "block.attn.wv");
  EXPECT_EQ(m.at("relu"), nullptr); // the side that the settings leave out
}

// Mutation: parentheses counted as part of the name.
TEST(Index, KeepsParenthesesOut) {
  Indexed m;
  index(m, inModel("y = (  x) * (relu(x))"));
  const NameEntry *use = m.at("(  x)", 1, 3);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->place.length, 1);
  EXPECT_EQ(m.at("relu")->place.length, 4);
}

TEST(Index, KeepsNamesOfATextWithErrors) {
  Indexed m;
  index(m, inModel("y = relu(x)\n  z = nowhere + 1\n  w = y * 2"));
  EXPECT_TRUE(m.diagnostics.hasErrors());
  EXPECT_EQ(m.type("w = y", 1, 4), "[batch, pos, dim = 4]");
  EXPECT_EQ(m.declared("z = "), "6:3");
}

// For one row of 4 positions:
//   attn: wq, wk, wv: 3 * 2*4*(4*2*2) = 384; wo: 2*4*(2*2*4) = 128
//   attend: 2 pairs heads (head + head) = 16 pairs: layer 0 with window 2: 1+2+2+2 = 7 pairs, 112;
//   layers 1 and 2: 10 pairs, 160
//   ffn: 2 * 2*4*(4*8) = 512; logits: 2*4*4*8 = 256
// Parameters: embed 32; a layer: 4 + 4*16 + 64 = 132.
// Mutation: the count of one repeat taken for all; a window that is off by one.
TEST(Counts, AddUpByHand) {
  Indexed m;
  index(m, kText);
  ASSERT_TRUE(m.statements.checked.at("m"));
  const ModelCounts counts(*m.statements.checked.at("m"), 4);
  const ScopeCount *model = counts.scope(""), *block = counts.scope("block"),
                   *attn = counts.scope("block.attn"), *ffn = counts.scope("block.ffn");
  ASSERT_TRUE(model && block && attn && ffn);
  EXPECT_EQ(model->parameters, 32 + 3 * 132);
  EXPECT_EQ(attn->repeats, 3);
  EXPECT_EQ(attn->parameters, 3 * 68);
  EXPECT_DOUBLE_EQ(attn->products, 3 * 512 + 112 + 2 * 160);
  EXPECT_FALSE(attn->alike);
  EXPECT_DOUBLE_EQ(attn->first.products, 512 + 112);
  EXPECT_TRUE(ffn->alike);
  EXPECT_DOUBLE_EQ(ffn->products, 3 * 512);
  EXPECT_DOUBLE_EQ(block->products, 3 * 1024 + 112 + 2 * 160);
  EXPECT_DOUBLE_EQ(model->products, block->products + 256);
  const NameEntry *wq = m.at("@ wq");
  const Count *term = counts.term(wq->term);
  ASSERT_TRUE(term);
  EXPECT_EQ(term->repeats, 3);
  EXPECT_DOUBLE_EQ(term->products, 3 * 128);
  EXPECT_EQ(counts.scope("nowhere"), nullptr);
}

TEST(Counts, PairsOfWindows) {
  EXPECT_DOUBLE_EQ(pairsOf(4, 4), 10);
  EXPECT_DOUBLE_EQ(pairsOf(4, 1), 4);
  EXPECT_DOUBLE_EQ(pairsOf(4, 2), 7);
  EXPECT_DOUBLE_EQ(pairsOf(4, INT64_MAX), 10);
}

// Every word that is offered stands in the reference, and the checker takes every function.
// Mutation: a function left out of the table, or one that is none.
TEST(Words, AreThoseOfTheReference) {
  std::ifstream stream(WEFT_SOURCE_DIR "/docs/language.md");
  const std::string reference{std::istreambuf_iterator<char>(stream), {}};
  for (const LanguageWord &word : languageWords())
    EXPECT_NE(reference.find(std::string(word.name)), std::string::npos) << word.name;
  for (const std::string &key : recipeKeys())
    EXPECT_TRUE(languageWord(WordPlace::Recipe, key)) << key;
  for (const LanguageFunction &function : languageFunctions()) {
    EXPECT_NE(reference.find(std::string(function.name)), std::string::npos) << function.name;
    if (function.name == "mod" || !std::isalpha(static_cast<unsigned char>(function.name[0])))
      continue;
    const std::string text = inModel("y = " + std::string(function.name) + "()");
    EXPECT_EQ(check(text).text().find("W0203"), std::string::npos) << function.name;
  }
}

} // namespace
} // namespace weft::lang::test
