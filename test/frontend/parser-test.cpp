//===- parser-test.cpp - Trees, recovery and bounds -----------------------===//

#include "check-helpers.h"

#include "gtest/gtest.h"

#include <pthread.h>

namespace weft::lang::test {
namespace {

/// Runs `body` on a stack of 1 MB: recursion without a bound would end the test.
template <typename Body> void onSmallStack(Body body) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#ifdef __SANITIZE_ADDRESS__ // frames are several times as large
  constexpr size_t kStack = 8 << 20;
#else
  constexpr size_t kStack = 1 << 20;
#endif
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread;
  auto run = [](void *argument) -> void * {
    (*static_cast<Body *>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string repeated(const std::string &text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += text;
  return all;
}

/// Codes without places, each once.
std::string kinds(const Checked &result) {
  std::string all;
  for (const Diagnostic &entry : result.diagnostics.sorted()) {
    std::string name(codeName(entry.code));
    if (all.find(name) == std::string::npos)
      all += name + " ";
  }
  return all;
}

TEST(Parser, DeepNestingIsRefused) {
  onSmallStack([] {
    EXPECT_EQ(kinds(check(inModel("  let a = " + repeated("(", 100'000) + "1" + repeated(")", 100'000)))),
              "W0103 ");
    EXPECT_EQ(kinds(check(inModel(repeated("layer a[1] {\n", 10'000) + repeated("}\n", 10'000)))), "W0103 ");
    EXPECT_EQ(kinds(check(inModel("  let a = " + repeated("-", 50'000) + "1"))), "W0103 ");
    EXPECT_EQ(kinds(check(inModel("  let a = " + repeated("2 ** ", 50'000) + "1"))), "W0103 ");
    EXPECT_EQ(kinds(check(inModel("  x = embed" + repeated("[tokens]", 5'000)))), "W0103 ");
    EXPECT_EQ(kinds(parse("plan p for m { windows " + repeated("[", 50'000) + " }")), "W0103 ");
  });
}

TEST(Parser, LongChainsCostNoStack) {
  onSmallStack([] {
    EXPECT_EQ(kinds(check(inModel("  let a = 1" + repeated(" + 1", 50'000)))), "W0104 ");
    EXPECT_TRUE(check(inModel("  x = x" + repeated(" + x", 900))).model);
    std::string elif = "  if depth is 0 { x = x + 1 }" + repeated(" else if depth is 0 { x = x + 2 }", 2'000);
    // depth decides how often a layer repeats only once there is one.
    EXPECT_TRUE(check(inModel(elif)).model);
    EXPECT_EQ(kinds(check(inModel("  layer b[depth] {\n" + elif + "\n  }"))), "W0103 ");
  });
}

TEST(Parser, ChainsOfDefsAreBounded) {
  onSmallStack([] {
    std::string defs = "  def f0(a) = a + 1\n";
    for (int i = 1; i < 20'000; ++i)
      defs += "  def f" + std::to_string(i) + "(a) = f" + std::to_string(i - 1) + "(a)\n";
    EXPECT_EQ(kinds(check(inModel(defs + "  x = f19999(x)"))), "W0103 ");
    std::string doubling = "  def f0(a) = a + a\n";
    for (int i = 1; i < 60; ++i) {
      std::string before = "f" + std::to_string(i - 1);
      doubling += "  def f" + std::to_string(i) + "(a) = " + before + "(" + before + "(a))\n";
    }
    EXPECT_EQ(kinds(check(inModel(doubling + "  x = f59(x)"))), "W0324 ");
    EXPECT_EQ(kinds(check(inModel(doubling + "  let c = f59(1)"))), "W0104 ");
    // Calls alone are bounded too.
    doubling.replace(doubling.find("a + a"), 5, "a");
    EXPECT_EQ(kinds(check(inModel(doubling + "  x = f59(x)"))), "W0324 ");
  });
}

TEST(Parser, DeepButAllowedNestingWorksOnASmallStack) {
  onSmallStack([] {
    Checked result = check(inModel("  x = " + repeated("(x + 1 * ", 90) + "x" + repeated(")", 90)));
    EXPECT_TRUE(result.model) << result.text();
  });
}

TEST(Parser, ReportsIndependentErrorsAndGoesOn) {
  Checked result = parse("model m(a = , b = 2) {\n"
                         "  let c = \n"
                         "  param w : [3] init 0\n"
                         "  param if : [a] init 0\n"
                         "  x = (1 + 2\n"
                         "  y = 1 < 2 < 3\n"
                         "  layer block 3 { }\n"
                         "  z = 1 != 2\n"
                         "}\n"
                         "plan p for m { windows [1, 2 }\n"
                         "train t for m { lr 3; steps = 4 }\n");
  EXPECT_EQ(result.codes(),
            "W0101@1:13 W0101@2:10 W0108@3:14 W0106@4:9 W0102@6:3 W0105@6:13 W0101@7:15 W0101@8:9 "
            "W0102@10:30 W0101@11:20")
      << result.text();
}

TEST(Parser, MissingBraceIsReportedOnceWithItsPartner) {
  Checked result = parse("model m() {\n  layer a[2] {\n    x = 1\n");
  EXPECT_EQ(result.codes(), "W0102@3:10") << result.text();
  EXPECT_NE(result.text().find("m.weft:2:14: note: the block starts here"), std::string::npos)
      << result.text();
  // The next statement of the file ends the model, too.
  Checked next = parse("model m() {\n  x = 1\n\nplan p for m { windows 4 }\n");
  EXPECT_EQ(next.codes(), "W0102@2:8") << next.text();
  EXPECT_EQ(next.file.plans.size(), 1u);
  EXPECT_EQ(parse("}\n").codes(), "W0102@1:1");
}

TEST(Parser, LinesGoOnAfterOperatorsAndInsideBrackets) {
  EXPECT_TRUE(check(inModel("  let a = 1 +\n    2\n  let b = (1\n    + 2)\n  let c = max(\n 1,\n 2)")).model);
  // A line that starts with a sign is its own statement.
  EXPECT_EQ(check(inModel("  let a = 1\n    - 2")).codes(), "W0107@6:5");
  EXPECT_EQ(check(inModel("  let a =\n  y = x")).codes(), "W0101@5:10");
}

TEST(Parser, KeepsPlansRecipesAndTables) {
  Checked result = parse("plan p for m {\n"
                         "  windows adaptive [512, full] on block[0..9, 12].attn.heads[..] {\n"
                         "    every = 5 steps\n"
                         "    negligible = 2 ** -11; features = average(0.9)\n"
                         "  }\n"
                         "  windows 256 { a = [2], b = c }\n"
                         "}\n"
                         "weights w for m {\n"
                         "  block[i].attn.(wq, wk) <-> \"h.{i}.c\" [dim, (3, heads)]\n"
                         "  tied embed == \"lm\" [vocab]\n"
                         "}\n"
                         "train t for m {\n"
                         "  batch = 480 x 1024 in 40\n"
                         "  optimizer = muon(lr = 0.02) on block[..] matrices,\n"
                         "              adamw(betas = (0.9, 0.95)) on rest\n"
                         "  held_out = last 5%\n"
                         "}\n");
  ASSERT_FALSE(result.diagnostics.hasErrors()) << result.text();
  const ast::Clause &clause = result.file.plans[0].clauses[0];
  ASSERT_EQ(clause.phrases[0].terms.size(), 4u);
  const ast::Term &address = clause.phrases[0].terms[3];
  ASSERT_EQ(address.kind, ast::Term::Kind::Address);
  ASSERT_EQ(address.segments.size(), 3u);
  EXPECT_EQ(address.segments[0].indices[0].high, 9);
  EXPECT_EQ(address.segments[0].indices[1].low, 12);
  EXPECT_FALSE(address.segments[2].indices[0].low.has_value());
  EXPECT_EQ(clause.options.size(), 3u);
  EXPECT_EQ(clause.options[1].values[0].terms[0].number, 0.00048828125);
  EXPECT_EQ(result.file.plans[0].clauses[1].options.size(), 2u);
  const ast::Clause &map = result.file.weights[0].clauses[0];
  EXPECT_EQ(map.verb.text, "");
  EXPECT_EQ(map.phrases[0].terms[0].segments[2].names[1].text, "wk");
  EXPECT_EQ(map.phrases[0].terms[3].arguments[1].value.terms[0].arguments.size(), 2u);
  const ast::Train &train = result.file.trains[0];
  ASSERT_EQ(train.options.size(), 3u);
  EXPECT_EQ(train.options[1].values.size(), 2u);
  EXPECT_EQ(train.options[2].values[0].terms[1].kind, ast::Term::Kind::Percent);
}

TEST(Parser, ShippedFilesHaveNoSyntaxErrors) {
  for (const char *path :
       {"gpt2.weft", "san.weft", "qwen3.weft", "plans.weft", "zoo.weft", "tiny.weft", "nano.weft"}) {
    SourceFiles sources;
    Diagnostics diagnostics;
    parseFile(std::string(WEFT_SOURCE_DIR) + "/models/" + path, sources, diagnostics);
    EXPECT_FALSE(diagnostics.hasErrors()) << diagnostics.render(sources);
  }
}

TEST(Parser, EveryPrefixOfAModelIsSurvived) {
  Checked whole = checkShipped("san.weft");
  std::string text = whole.sources.file(0).text;
  for (size_t length = 0; length < text.size(); length += 7) {
    Checked result = check(text.substr(0, length));
    EXPECT_TRUE(result.model || result.diagnostics.hasErrors()) << length;
  }
}

TEST(Parser, EveryLostByteIsSurvived) {
  std::string text = checkShipped("nano.weft").sources.file(0).text;
  for (size_t at = 0; at < text.size(); at += 3) {
    std::string damaged = text;
    damaged[at] = "(){}[]\n#\"\xff*,.="[at / 3 % 14];
    check(damaged);
  }
}

TEST(Diagnostics, RendersPlaceCaretNotesAndHelp) {
  Checked result = check(inModel("  y = xx + 1"));
  EXPECT_EQ(result.text().find("m.weft:5:7: error[W0201]: there is no name xx here\n"
                               " 5 |   y = xx + 1\n"
                               "   |       ^~\n"
                               "m.weft:4:3: note: x is declared here\n"
                               " 4 |   x = embed[tokens]\n"
                               "   |   ^\n"
                               "help: did you mean x?\n"),
            0u)
      << result.text();
  EXPECT_NE(result.diagnostics.render(result.sources, true).find("\033[1;31merror[W0201]\033[0m"),
            std::string::npos);
}

// A line of any length is shown around its caret, characters whole. Mutation caught:
// a window that starts inside a character, a caret that does not move with it.
TEST(Diagnostics, LongLinesAreCutAroundTheCaret) {
  SourceFiles sources;
  Diagnostics diagnostics;
  std::string text = "#";
  for (int i = 0; i < 50'000; ++i)
    text += "\xc3\xa9"; // é
  text += "HERE" + std::string(100'000, 'y');
  const int32_t file = sources.add("long.weft", text);
  Place place{file, 1, 100'002, 100'001, 4};
  diagnostics.error(Code::W0201, place, "in the middle");
  place = {file, 1, 1, 0, 1};
  diagnostics.error(Code::W0201, place, "at the start");
  const std::string rendered = diagnostics.render(sources);
  EXPECT_LT(rendered.size(), 1200u) << rendered.size();
  const size_t here = rendered.find("HERE"), line = rendered.rfind('\n', here);
  ASSERT_NE(here, std::string::npos);
  // The caret stands under H: as many characters before it as there are before HERE.
  const size_t under = rendered.find("\n", here) + 1, caret = rendered.find('^', under);
  size_t characters = 0;
  for (size_t i = line + 1; i < here; ++i)
    characters += (static_cast<unsigned char>(rendered[i]) & 0xC0) != 0x80;
  EXPECT_EQ(caret - under, characters) << rendered;
  EXPECT_EQ(rendered.substr(caret, 4), "^~~~");
  EXPECT_NE(rendered.find("...\xc3\xa9"), std::string::npos) << "cut inside a character";
  EXPECT_NE(rendered.find("1 | #\xc3\xa9"), std::string::npos);
}

// A name that no one wrote by hand is not compared with all others.
TEST(Diagnostics, GiantNamesHaveNoNeighbours) {
  const std::string giant(1'000'000, 'a');
  EXPECT_EQ(nearest(giant, {giant + "b", "abc"}), "");
  EXPECT_EQ(nearest("abd", {giant, "abc"}), "abc");
}

TEST(Diagnostics, JsonNamesPlaceAndCode) {
  std::string json =
      check(inModel("  y = xx + 1")).diagnostics.renderJson(check(inModel("  y = xx + 1")).sources);
  EXPECT_NE(json.find("\"code\": \"W0201\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"line\": 5"), std::string::npos) << json;
  EXPECT_NE(json.find("\"column\": 7"), std::string::npos) << json;
}

TEST(Diagnostics, TwentyErrorsAreShownTheRestCounted) {
  std::string text;
  for (int i = 0; i < 25; ++i)
    text += "  let v" + std::to_string(i) + " = q" + std::to_string(i) + "zzz\n";
  Checked result = check(inModel(text));
  std::string shown = result.diagnostics.render(result.sources);
  EXPECT_NE(shown.find("and 5 more errors"), std::string::npos) << shown;
}

} // namespace
} // namespace weft::lang::test
