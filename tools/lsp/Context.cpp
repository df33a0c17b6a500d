//===- Context.cpp - What may stand at a place of a text -------------------===//

#include "tools/lsp/Context.h"

#include "frontend/Lexer.h"

#include <algorithm>
#include <cctype>

namespace weft::lsp {
namespace {

using lang::Token;
using lang::WordPlace;

bool isWordByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Walks the words in front of a place.
class Walk {
public:
  /// `lineEnds`: the line of the last word has ended.
  Walk(std::vector<Token> tokens, bool lineEnds) : tokens(std::move(tokens)), lineEnds(lineEnds) {}

  Context run() {
    for (size_t i = 0; i < tokens.size(); ++i)
      take(i);
    Context context;
    context.place = placeHere();
    context.model = model;
    const Token *last = tokens.empty() ? nullptr : &tokens.back();
    context.afterFor = last && braces == 0 && last->is("for");
    context.inAxes = statement == WordPlace::Model && braces > 0 && !brackets.empty() &&
                     brackets.back() == '[' && bracketOwner == ":";
    if (last && last->is(".")) {
      context.afterDot = true;
      context.steps = stepsBefore(tokens.size() - 1);
    }
    context.key = keyHere();
    return context;
  }

private:
  void take(size_t i) {
    const Token &token = tokens[i];
    if (braces == 0 && token.kind == Token::Kind::Word && token.place.column == 1)
      startStatement(token);
    if (token.newlineBefore && brackets.empty())
      lineStart = i;
    if (token.is("{")) {
      if (braces++ == 0)
        lineStart = i + 1;
      verb = braces == 2 && lineStart < i ? tokens[lineStart].text : verb;
      lineStart = i + 1;
    } else if (token.is("}") || token.is(";")) {
      braces = std::max(braces - (token.is("}") ? 1 : 0), 0);
      lineStart = i + 1;
    } else if (token.is("[") || token.is("(")) {
      brackets.push_back(token.text[0]);
      bracketOwner = i > 0 ? std::string(tokens[i - 1].text) : std::string();
    } else if ((token.is("]") || token.is(")")) && !brackets.empty()) {
      brackets.pop_back();
    }
    if (i > 0 && tokens[i - 1].is("for") && braces == 0)
      model = token.text;
    if (i > 0 && tokens[i - 1].is("model") && braces == 0)
      model = token.text;
  }

  void startStatement(const Token &token) {
    statement.reset();
    brackets.clear();
    model.clear();
    if (token.is("model"))
      statement = WordPlace::Model;
    else if (token.is("plan"))
      statement = WordPlace::Plan;
    else if (token.is("train"))
      statement = WordPlace::Recipe;
    else if (token.is("weights"))
      statement = WordPlace::Table;
  }

  std::optional<WordPlace> placeHere() const {
    const bool inSettings = statement == WordPlace::Model && !brackets.empty();
    if (!statement || (braces == 0 && !inSettings))
      return WordPlace::File;
    if (statement != WordPlace::Plan || braces < 2)
      return statement;
    if (verb == "windows")
      return WordPlace::Windows;
    if (verb == "freeze" || verb == "prune")
      return WordPlace::Freeze;
    return WordPlace::Drop;
  }

  /// `attn` and `block` in front of the dot at `dot`, over their indices.
  std::vector<std::string> stepsBefore(size_t dot) const {
    std::vector<std::string> steps;
    size_t at = dot;
    while (at > 0 && tokens[at].is(".")) {
      --at;
      if (tokens[at].is("]")) {
        while (at > 0 && !tokens[at].is("["))
          --at;
        at -= at > 0 ? 1 : 0;
      }
      if (tokens[at].kind != Token::Kind::Word)
        break;
      steps.insert(steps.begin(), std::string(tokens[at].text));
      if (at == 0)
        break;
      --at;
    }
    return steps;
  }

  /// KEY where `KEY = ...` of an option is being written.
  std::string keyHere() const {
    if (!statement || statement == WordPlace::Model || (lineEnds && !tokens.back().is("=")))
      return "";
    for (size_t i = tokens.size(); i-- > 1;) {
      if (tokens[i].is("="))
        return std::string(tokens[i - 1].text);
      if (tokens[i].is("{") || tokens[i].is("}") || tokens[i].is(",") || tokens[i].newlineBefore)
        break;
    }
    return "";
  }

  std::vector<Token> tokens;
  bool lineEnds;
  std::optional<WordPlace> statement;
  std::string model, verb, bracketOwner;
  std::vector<char> brackets;
  int braces = 0;
  size_t lineStart = 0;
};

} // namespace

Context contextAt(const std::string &text, size_t offset) {
  size_t start = std::min(offset, text.size());
  const size_t end = start;
  while (start > 0 && isWordByte(text[start - 1]))
    --start;
  lang::SourceFiles sources;
  lang::Diagnostics ignored;
  std::vector<lang::ast::Comment> comments;
  const int32_t index = sources.add("", text.substr(0, start));
  std::vector<Token> tokens = lang::lex(index, sources, ignored, &comments);
  tokens.pop_back(); // the end
  for (const lang::ast::Comment &comment : comments)
    if (static_cast<size_t>(comment.place.offset + comment.place.length) == end ||
        static_cast<size_t>(comment.place.offset + comment.place.length) == start)
      return {};
  // An open string ends with its line, and so with the text: its word is the last one.
  const size_t line = text.find_last_of("\r\n", start == 0 ? 0 : start - 1);
  const size_t from = line == std::string::npos ? 0 : line + 1;
  if (from <= start && std::count(text.begin() + static_cast<std::ptrdiff_t>(from),
                                  text.begin() + static_cast<std::ptrdiff_t>(start), '"') %
                               2 ==
                           1)
    return {};
  const lang::Place last = tokens.empty() ? lang::Place{} : tokens.back().place;
  const size_t behind = static_cast<size_t>(last.offset + last.length);
  const bool lineEnds = text.substr(behind, start - behind).find_first_of("\r\n") != std::string::npos;
  return Walk(std::move(tokens), lineEnds).run();
}

std::string wordAt(const std::string &text, size_t offset) {
  size_t start = std::min(offset, text.size()), end = start;
  while (start > 0 && isWordByte(text[start - 1]))
    --start;
  while (end < text.size() && isWordByte(text[end]))
    ++end;
  return text.substr(start, end - start);
}

} // namespace weft::lsp
