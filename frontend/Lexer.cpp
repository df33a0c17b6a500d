//===- Lexer.cpp - Text to words ------------------------------------------===//

#include "frontend/Lexer.h"

#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <array>
#include <cmath>

namespace weft::lang {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

// Longest first: the first that fits is the token.
constexpr std::array<std::string_view, 28> kSymbols = {
    "<->", "**", "+=", "==", "<=", ">=", "..", "!=", "(", ")", "[", "]", "{", "}",
    "+",   "-",  "*",  "/",  "@",  "<",  ">",  "=",  ",", ":", ";", "|", ".", "%"};

/// The code point at `at` and its length; length 0 when the bytes are no UTF-8.
struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;
};

CodePoint decode(std::string_view text, size_t at) {
  unsigned char lead = static_cast<unsigned char>(text[at]);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xC2 && lead < 0xE0 ? 2
                  : lead >= 0xE0 && lead < 0xF0 ? 3
                  : lead >= 0xF0 && lead < 0xF5 ? 4
                                                : 0;
  if (length == 0 || at + length > text.size())
    return {};
  uint32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    unsigned char byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xC0) != 0x80)
      return {};
    value = value << 6 | (byte & 0x3Fu);
  }
  bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    return {};
  return {value, length};
}

std::string_view nameOf(uint32_t value) {
  switch (value) {
  case 0x00A0:
    return " (no-break space)";
  case 0x200B:
    return " (zero-width space)";
  case 0x200C:
    return " (zero-width non-joiner)";
  case 0x200D:
    return " (zero-width joiner)";
  case 0x2009:
    return " (thin space)";
  case 0x3000:
    return " (ideographic space)";
  case 0xFEFF:
    return " (byte-order mark inside the text)";
  case 0x2018:
  case 0x2019:
  case 0x201C:
  case 0x201D:
    return " (typographic quote)";
  case 0x2013:
  case 0x2014:
  case 0x2212:
    return " (a dash that is not -)";
  case 0x00D7:
    return " (a times sign that is not *)";
  default:
    return "";
  }
}

class Lexer {
public:
  Lexer(int32_t index, const SourceFiles &sources, Diagnostics &diagnostics,
        std::vector<ast::Comment> *comments)
      : index(index), sources(sources), diagnostics(diagnostics), comments(comments),
        text(sources.file(index).text) {}

  std::vector<Token> run() {
    while (at < text.size())
      step();
    push(Token::Kind::End, at);
    return std::move(tokens);
  }

private:
  void step() {
    char c = text[at];
    if (c == '\n' || c == '\r') {
      newline = true;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\f' || c == '\v') {
      space = true;
      ++at;
    } else if (c == '#') {
      readComment();
    } else if (isLetter(c)) {
      size_t start = at;
      while (at < text.size() && (isLetter(text[at]) || isDigit(text[at])))
        ++at;
      push(Token::Kind::Word, start);
    } else if (isDigit(c)) {
      readNumber();
    } else if (c == '"') {
      readString();
    } else {
      readSymbol();
    }
  }

  Place place(size_t start, size_t end) const {
    return sources.placeAt(index, static_cast<int32_t>(start), static_cast<int32_t>(end - start));
  }

  Token &push(Token::Kind kind, size_t start) {
    Token token;
    token.kind = kind;
    token.place = place(start, at);
    token.text = text.substr(start, at - start);
    token.newlineBefore = newline || tokens.empty();
    token.spaceBefore = space || newline || tokens.empty();
    newline = space = false;
    tokens.push_back(std::move(token));
    return tokens.back();
  }

  void readComment() {
    size_t start = at;
    while (at < text.size() && text[at] != '\n' && text[at] != '\r')
      ++at;
    if (comments)
      comments->push_back({place(start, at), newline || tokens.empty()});
    space = true;
  }

  void readDigits() {
    while (at < text.size() && isDigit(text[at]))
      ++at;
  }

  void readNumber() {
    size_t start = at;
    readDigits();
    // `0..9` is a range, `1.5` a number.
    if (at + 1 < text.size() && text[at] == '.' && isDigit(text[at + 1])) {
      ++at;
      readDigits();
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
      size_t digits = at + 1;
      if (digits < text.size() && (text[digits] == '+' || text[digits] == '-'))
        ++digits;
      if (digits < text.size() && isDigit(text[digits])) {
        at = digits;
        readDigits();
      }
    }
    size_t end = at;
    while (at < text.size() && (isLetter(text[at]) || isDigit(text[at])))
      ++at;
    double value = 0;
    absl::from_chars_result result = absl::from_chars(text.data() + start, text.data() + end, value);
    if (at != end)
      diagnostics.error(Code::W0004, place(start, at),
                        absl::StrCat("`", std::string(text.substr(start, at - start)),
                                     "` is neither a number nor a name, expected a space after the number"));
    else if (result.ec != std::errc() || !std::isfinite(value))
      diagnostics.error(Code::W0004, place(start, at), "this number does not fit a float64");
    push(Token::Kind::Number, start).number = std::isfinite(value) ? value : 0;
  }

  void readString() {
    size_t start = at++;
    std::string value;
    while (at < text.size() && text[at] != '"' && text[at] != '\n' && text[at] != '\r') {
      if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n' && text[at + 1] != '\r') {
        char escape = text[at + 1];
        value += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
        at += 2;
        continue;
      }
      if (text[at] == '\0')
        diagnostics.error(Code::W0002, place(at, at + 1), "a NUL byte (U+0000) inside a string");
      value += text[at++];
    }
    if (at < text.size() && text[at] == '"')
      ++at;
    else
      diagnostics.error(Code::W0003, place(start, at), "this string does not end on its line, expected \"");
    push(Token::Kind::String, start).string = std::move(value);
  }

  void readSymbol() {
    for (std::string_view symbol : kSymbols) {
      if (text.substr(at, symbol.size()) == symbol) {
        size_t start = at;
        at += symbol.size();
        push(Token::Kind::Symbol, start);
        return;
      }
    }
    reportBadCharacters();
  }

  /// One error for a run of the same character, or for a word with letters
  /// that are not ASCII.
  void reportBadCharacters() {
    size_t start = at;
    CodePoint point = decode(text, at);
    if (point.length == 0) {
      while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80 && decode(text, at).length == 0)
        ++at;
      unsigned byte = static_cast<unsigned char>(text[start]);
      diagnostics.error(Code::W0002, place(start, at), absl::StrFormat("byte 0x%02X is no UTF-8 text", byte))
          .advise("save the file as UTF-8");
      space = true;
      return;
    }
    while (at < text.size() && decode(text, at).value == point.value &&
           decode(text, at).length == point.length)
      at += point.length;
    std::string message = absl::StrFormat("the character U+%04X%s is no part of the language", point.value,
                                          std::string(nameOf(point.value)));
    Code code = point.value < 0x20 || point.value == 0x7F ? Code::W0002 : Code::W0001;
    diagnostics.error(code, place(start, at), std::move(message))
        .advise("names are ASCII letters, digits and _; anything may stand in comments and strings");
    space = true;
  }

  int32_t index;
  const SourceFiles &sources;
  Diagnostics &diagnostics;
  std::vector<ast::Comment> *comments;
  std::string_view text;
  size_t at = 0;
  bool newline = false, space = false;
  std::vector<Token> tokens;
};

} // namespace

std::vector<Token> lex(int32_t index, const SourceFiles &sources, Diagnostics &diagnostics,
                       std::vector<ast::Comment> *comments) {
  return Lexer(index, sources, diagnostics, comments).run();
}

bool startsFileStatement(const Token &token, const Token &next) {
  if (!token.newlineBefore || token.place.column != 1)
    return false;
  if (token.is("use"))
    return next.kind == Token::Kind::String;
  const bool heads = token.is("model") || token.is("plan") || token.is("train") || token.is("weights");
  return heads && next.kind == Token::Kind::Word;
}

} // namespace weft::lang
