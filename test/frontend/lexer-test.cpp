//===- lexer-test.cpp - Characters, lines and places ----------------------===//

#include "check-helpers.h"
#include "frontend/Lexer.h"

#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>

namespace weft::lang::test {
namespace {

std::string withLineEnds(const std::string &text, const std::string &end) {
  std::string result;
  for (char c : text)
    result += c == '\n' ? end : std::string(1, c);
  return result;
}

/// 299 lines of comment, then an error in line 300.
std::string longModel() {
  std::string text;
  for (int i = 0; i < 299; ++i)
    text += "# line\n";
  return text + "model m() {\n  $\n}";
}

TEST(Lexer, EveryLineEndCountsOnce) {
  for (const char *end : {"\n", "\r\n", "\r"}) {
    Checked result = parse(withLineEnds(longModel(), end));
    EXPECT_EQ(result.codes().substr(0, 11), "W0001@301:3") << testing::PrintToString(end);
  }
}

TEST(Lexer, MixedLineEndsAndMark) {
  EXPECT_EQ(parse("\xEF\xBB\xBF# a\r# b\r\n# c\n$").codes().substr(0, 9), "W0001@4:1");
  // The mark is no column of the first line.
  EXPECT_EQ(parse("\xEF\xBB\xBF$").codes().substr(0, 9), "W0001@1:1");
}

TEST(Lexer, CarriageReturnAtABufferEdge) {
  std::string text = "#" + std::string(4094, 'x') + "\r\n$"; // CR is byte 4095, LF byte 4096
  EXPECT_EQ(parse(text).codes().substr(0, 9), "W0001@2:1");
}

TEST(Lexer, SameTreeForLfAndCrlf) {
  std::string text = inModel("  y = x +\n    x\n  x = y");
  Checked lf = check(text), crlf = check(withLineEnds(text, "\r\n"));
  ASSERT_TRUE(lf.model && crlf.model) << lf.text() << crlf.text();
  EXPECT_EQ(lf.model->valueNames, crlf.model->valueNames);
  EXPECT_EQ(lf.model->values, crlf.model->values);
}

TEST(Lexer, NamesBadCharactersByCodePoint) {
  struct Case {
    const char *text;
    const char *code;
    const char *named;
  };
  for (const Case &c : {Case{"\xC2\xA0", "W0001@1:1", "U+00A0 (no-break space)"},
                        Case{"\xE2\x80\x8B", "W0001@1:1", "U+200B (zero-width space)"},
                        Case{"\xC3\xBC", "W0001@1:1", "U+00FC"}, Case{"\xE4\xB8\xAD", "W0001@1:1", "U+4E2D"},
                        Case{"\xF0\x9F\x98\x80", "W0001@1:1", "U+1F600"}, Case{"\xFF", "W0002@1:1", "0xFF"},
                        Case{"\xC0\x80", "W0002@1:1", "0xC0"}}) {
    Checked result = parse(c.text);
    EXPECT_EQ(result.codes(), c.code);
    EXPECT_NE(result.text().find(c.named), std::string::npos) << result.text();
  }
  Checked nul = parse(std::string("a\0b", 3));
  EXPECT_NE(nul.text().find("m.weft:1:2: error[W0002]: the character U+0000"), std::string::npos)
      << nul.text();
}

TEST(Lexer, CaretStandsUnderTheCharacter) {
  // Two bytes of the comment's letter are one column on a terminal.
  Checked result = parse("use \"\xC3\xBC\" $");
  EXPECT_NE(result.text().find("\n   |         ^\n"), std::string::npos) << result.text();
}

TEST(Lexer, NumbersAndRanges) {
  SourceFiles sources;
  Diagnostics diagnostics;
  std::vector<Token> tokens = lex(sources.add("t", "0..9 1.5 6e-4 2 ** -11 25%"), sources, diagnostics);
  std::vector<std::string> texts;
  for (const Token &token : tokens)
    texts.emplace_back(token.text);
  EXPECT_EQ(texts,
            (std::vector<std::string>{"0", "..", "9", "1.5", "6e-4", "2", "**", "-", "11", "25", "%", ""}));
  EXPECT_EQ(tokens[4].number, 6e-4);
  EXPECT_EQ(parse("12ab").codes().substr(0, 9), "W0004@1:1");
  EXPECT_EQ(parse("1e999").codes().substr(0, 9), "W0004@1:1");
}

TEST(Lexer, StringsEndOnTheirLine) {
  EXPECT_NE(parse("use \"abc\nmodel").codes().find("W0003@1:5"), std::string::npos);
  SourceFiles sources;
  Diagnostics diagnostics;
  EXPECT_EQ(lex(sources.add("t", R"("a\"b\\c")"), sources, diagnostics)[0].string, R"(a"b\c)");
  EXPECT_FALSE(diagnostics.hasErrors());
}

TEST(Lexer, MissingFilesAreNamed) {
  SourceFiles sources;
  Diagnostics diagnostics;
  parseFile("/nowhere/x.weft", sources, diagnostics);
  EXPECT_NE(diagnostics.render(sources).find("error[W0601]: there is no file /nowhere/x.weft"),
            std::string::npos);
  EXPECT_EQ(parse("use \"nowhere.weft\"").codes(), "W0601@1:1");
}

TEST(Lexer, HugeFilesAreNotRead) {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "weft-lexer-test-huge.weft";
  std::ofstream(path) << "#";
  std::filesystem::resize_file(path, (16u << 20) + 1);
  SourceFiles sources;
  Diagnostics diagnostics;
  parseFile(path.string(), sources, diagnostics);
  std::filesystem::remove(path);
  EXPECT_NE(diagnostics.render(sources).find("error[W0005]"), std::string::npos)
      << diagnostics.render(sources);
  EXPECT_NE(diagnostics.render(sources).find("has 16777217 bytes"), std::string::npos);
}

TEST(Lexer, FilesUseEachOtherOnce) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / "weft-lexer-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "a.weft") << "use \"b.weft\"\nplan p for m { windows 4 }\n";
  std::ofstream(folder / "b.weft") << "use \"a.weft\"\nplan q for m { windows 4 }\n";
  SourceFiles sources;
  Diagnostics diagnostics;
  ast::File file = parseFile((folder / "a.weft").string(), sources, diagnostics);
  EXPECT_FALSE(diagnostics.hasErrors()) << diagnostics.render(sources);
  EXPECT_EQ(file.plans.size(), 2u);
  EXPECT_EQ(file.sources.size(), 2u);
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace weft::lang::test
