#include "frontend/Format.h"

#include "frontend/Lexer.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>

namespace weft::lang {
namespace {

enum class Context { File, Model, Plan, Train, Weights };

/// Lines of one kind that follow one another share columns.
enum class Shape { Plain, Param, Let, Option, Entry };

struct Line {
  int32_t number = 0; // in the source
  std::vector<const Token *> tokens;
  const ast::Comment *comment = nullptr;
  Context context = Context::File;
  int32_t depth = 0;
  Shape shape = Shape::Plain;
  bool continued = false;
  // What a continuation lines up with: a token of an earlier line, or the depth.
  int32_t anchorLine = -1;
  size_t anchorToken = 0;
  std::string text;
  std::vector<size_t> columns; // by token, once there is text
};

bool isOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool opens(const Token &token) { return token.is("(") || token.is("[") || token.is("{"); }
bool closes(const Token &token) { return token.is(")") || token.is("]") || token.is("}"); }

bool isDot(const Token &token) { return token.is(".") || token.is(".."); }

bool isOperator(const Token &token) {
  return token.kind == Token::Kind::Symbol &&
         isOneOf(token.text, {"+", "-", "*", "/", "@", "**", "<", "<=", ">", ">=", "=", "+=", "|", "<->",
                              "==", ":", "!="});
}

/// Words behind which a bracket is no call and a minus is a sign.
bool isWordOperator(const Token &token) {
  return token.kind == Token::Kind::Word &&
         isOneOf(token.text,
                 {"and", "or", "not", "is", "mod", "if", "init", "else", "in", "of", "on", "at", "from"});
}

bool endsOperand(const Token &token) {
  return (token.kind != Token::Kind::Symbol && !isWordOperator(token)) || closes(token) || token.is("%");
}

class Formatter {
public:
  Formatter(const SourceFiles &sources, const std::vector<Token> &tokens,
            const std::vector<ast::Comment> &comments)
      : sources(sources), tokens(tokens), comments(comments) {}

  /// False and an error where brackets do not match.
  bool split(Diagnostics &diagnostics);
  std::string run();

private:
  struct Open {
    const Token *token;
    int32_t line;
    size_t place; // of the bracket in its line
    int32_t depth;
  };

  void place(Line &line, int32_t index);
  bool checkEnds(const Line &line, Diagnostics &diagnostics) const;
  bool follow(Line &line, int32_t index, Diagnostics &diagnostics);
  Shape shapeOf(const Line &line) const;
  bool spaceBetween(const Line &line, size_t i) const;
  /// The first token of each column of a shaped line, and the least gap before it.
  std::vector<size_t> columnsOf(const Line &line) const;
  void layOut(size_t first, size_t last);
  bool blankBefore(size_t i) const;
  void alignComments();
  int32_t indentOf(const Line &line) const;
  std::string plain(const Line &line, size_t first, size_t last, size_t column,
                    std::vector<size_t> *columns) const;

  const SourceFiles &sources;
  const std::vector<Token> &tokens;
  const std::vector<ast::Comment> &comments;
  std::vector<Line> lines;
  std::vector<Open> stack;
  Context context = Context::File;
  const Token *last = nullptr; // the token before the line in hand
  int32_t statementLine = -1;  // where the statement in hand starts
};

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

bool Formatter::split(Diagnostics &diagnostics) {
  size_t comment = 0;
  auto lineFor = [&](int32_t number) -> Line & {
    if (lines.empty() || lines.back().number != number) {
      lines.emplace_back();
      lines.back().number = number;
    }
    return lines.back();
  };
  for (const Token &token : tokens) {
    for (; comment < comments.size() && comments[comment].place.offset < token.place.offset; ++comment)
      lineFor(comments[comment].place.line).comment = &comments[comment];
    if (token.kind != Token::Kind::End)
      lineFor(token.place.line).tokens.push_back(&token);
  }
  for (; comment < comments.size(); ++comment)
    lineFor(comments[comment].place.line).comment = &comments[comment];

  for (size_t i = 0; i < lines.size(); ++i) {
    place(lines[i], static_cast<int32_t>(i));
    if (!checkEnds(lines[i], diagnostics) || !follow(lines[i], static_cast<int32_t>(i), diagnostics))
      return false;
    lines[i].shape = shapeOf(lines[i]);
  }
  if (!stack.empty())
    diagnostics.error(Code::W0102, stack.back().token->place,
                      absl::StrCat("`", std::string(stack.back().token->text), "` is never closed"));
  return stack.empty();
}

/// Depth, context and anchor of a line, from what is open at its start.
void Formatter::place(Line &line, int32_t index) {
  if (stack.empty() && !line.tokens.empty()) {
    std::string_view word = line.tokens[0]->text;
    context = word == "model"     ? Context::Model
              : word == "plan"    ? Context::Plan
              : word == "train"   ? Context::Train
              : word == "weights" ? Context::Weights
                                  : Context::File;
  }
  line.context = context;
  line.depth = 0;
  for (const Open &open : stack)
    line.depth += open.token->is("{");
  size_t leading = 0;
  while (leading < line.tokens.size() && line.tokens[leading]->is("}"))
    ++leading;
  line.depth = std::max<int32_t>(0, line.depth - static_cast<int32_t>(leading));
  bool inRound = !stack.empty() && !stack.back().token->is("{");
  bool named = line.tokens.size() > 1 && line.tokens[0]->kind == Token::Kind::Word && line.tokens[1]->is("=");
  bool goesOn = last && (last->is(",") || isOperator(*last) || isWordOperator(*last)) && leading == 0;
  line.continued = !line.tokens.empty() && (inRound || (goesOn && !named));
  if (!line.continued) {
    statementLine = index;
    return;
  }
  if (inRound) {
    const Open &open = stack.back();
    const Line &from = lines[static_cast<size_t>(open.line)];
    bool lastOfLine = open.place + 1 >= from.tokens.size();
    if (!lastOfLine) {
      line.anchorLine = open.line;
      line.anchorToken = open.place + 1;
    }
    return;
  }
  const Line &from = lines[static_cast<size_t>(std::max(statementLine, 0))];
  for (size_t i = 0; i + 1 < from.tokens.size() && i < 2; ++i)
    if (from.tokens[i]->is("=") || (i == 0 && !from.tokens[1]->is("=") && from.context == Context::Weights)) {
      line.anchorLine = statementLine;
      line.anchorToken = i + 1;
      return;
    }
}

/// Refuses a statement of the file inside a block, as the parser does: indented it would read as one of the block.
bool Formatter::checkEnds(const Line &line, Diagnostics &diagnostics) const {
  if (stack.empty() || !stack.back().token->is("{") || line.continued || line.tokens.empty() ||
      !startsFileStatement(line.tokens[0][0], line.tokens[0][1])) // End stands behind the last token
    return true;
  diagnostics
      .error(Code::W0102, line.tokens[0]->place,
             absl::StrCat("expected `}`, found `", std::string(line.tokens[0]->text), "`"))
      .note(stack.back().token->place, "the block starts here");
  return false;
}

bool Formatter::follow(Line &line, int32_t index, Diagnostics &diagnostics) {
  for (size_t i = 0; i < line.tokens.size(); ++i) {
    const Token &token = *line.tokens[i];
    if (opens(token))
      stack.push_back({&token, index, i, line.depth});
    if (closes(token)) {
      std::string_view wanted = token.is(")") ? "(" : token.is("]") ? "[" : "{";
      if (stack.empty() || !stack.back().token->is(wanted)) {
        diagnostics.error(Code::W0102, token.place,
                          absl::StrCat("`", std::string(token.text), "` closes nothing"));
        return false;
      }
      stack.pop_back();
    }
    last = &token;
  }
  return true;
}

Shape Formatter::shapeOf(const Line &line) const {
  const std::vector<const Token *> &t = line.tokens;
  if (t.size() < 3)
    return Shape::Plain;
  bool has = std::any_of(t.begin(), t.end(), [](const Token *token) { return token->is(":"); });
  if (line.context == Context::Model && !line.continued && t[0]->is("param") && has)
    return Shape::Param;
  if (line.context == Context::Model && !line.continued && t[0]->is("let"))
    return Shape::Let;
  bool symbol =
      std::any_of(t.begin(), t.end(), [](const Token *token) { return token->is("<->") || token->is("=="); });
  if (line.context == Context::Weights && symbol)
    return Shape::Entry;
  bool option = t[0]->kind == Token::Kind::Word && t[1]->is("=");
  if (!option || (line.context == Context::Model && !line.continued))
    return Shape::Plain;
  // Lines with several options keep them as they stand.
  int depth = 0;
  for (size_t i = 2; i + 2 < t.size(); ++i) {
    depth += opens(*t[i]) - closes(*t[i]);
    if (depth == 0 && t[i]->is(",") && t[i + 1]->kind == Token::Kind::Word && t[i + 2]->is("="))
      return Shape::Plain;
  }
  return Shape::Option;
}

//===----------------------------------------------------------------------===//
// Spaces
//===----------------------------------------------------------------------===//

bool Formatter::spaceBetween(const Line &line, size_t i) const {
  const Token &a = *line.tokens[i - 1], &b = *line.tokens[i];
  if (b.is(",") || b.is(";") || b.is(")") || b.is("]") || b.is("%") || a.is("(") || a.is("["))
    return false;
  if (a.is("{") && b.is("}"))
    return false;
  // In plans and tables a space ends a path, and tells a list from an index.
  const bool paths = line.context != Context::Model && line.context != Context::File;
  if (paths && b.is("."))
    return b.spaceBefore;
  const bool beside = isDot(a) && isDot(b);
  if (beside || (a.is(".") && b.kind == Token::Kind::Number) || (a.kind == Token::Kind::Number && b.is(".")))
    return b.spaceBefore; // together they could be another word: `0. 02`, `. .`
  if (a.is("..") || b.is("..") || a.is(".") || (b.is(".") && !a.is(",")))
    return false;
  bool sign = a.is("-") && (i < 2 || !endsOperand(*line.tokens[i - 2]));
  if (sign)
    return false;
  if (b.is("(") || b.is("[")) {
    const bool indexed = a.kind == Token::Kind::Word || closes(a);
    if (paths)
      return b.spaceBefore || !(indexed || a.kind == Token::Kind::Number);
    return !indexed || isWordOperator(a);
  }
  return true;
}

std::string Formatter::plain(const Line &line, size_t first, size_t last, size_t column,
                             std::vector<size_t> *columns) const {
  std::string text;
  for (size_t i = first; i < last; ++i) {
    if (i > first && spaceBetween(line, i))
      text += ' ';
    if (columns)
      columns->push_back(column + text.size());
    text += line.tokens[i]->text;
  }
  return text;
}

std::vector<size_t> Formatter::columnsOf(const Line &line) const {
  std::vector<size_t> starts = {0};
  auto startAt = [&](std::initializer_list<std::string_view> words) {
    for (size_t i = starts.back() + 1; i < line.tokens.size(); ++i)
      for (std::string_view word : words)
        if (line.tokens[i]->is(word)) {
          starts.push_back(i);
          return;
        }
  };
  switch (line.shape) {
  case Shape::Param:
    startAt({":"});
    startAt({"init"});
    break;
  case Shape::Let:
  case Shape::Option:
    startAt({"="});
    break;
  case Shape::Entry:
    startAt({"<->", "=="});
    if (starts.size() == 2 && starts[1] + 1 < line.tokens.size())
      starts.push_back(starts[1] + 1);
    for (size_t i = starts.back() + 1; i < line.tokens.size(); ++i)
      if (line.tokens[i]->is("[") && spaceBetween(line, i)) {
        starts.push_back(i); // the layout; without a space it would be an index
        break;
      }
    break;
  case Shape::Plain:
    break;
  }
  return starts;
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

int32_t Formatter::indentOf(const Line &line) const {
  if (line.anchorLine >= 0) {
    const Line &anchor = lines[static_cast<size_t>(line.anchorLine)];
    if (line.anchorToken < anchor.columns.size())
      return static_cast<int32_t>(anchor.columns[line.anchorToken]);
  }
  return 2 * line.depth + (line.continued ? 4 : 0);
}

/// Writes lines [first, last), a run of one shape (or one plain line).
void Formatter::layOut(size_t first, size_t last) {
  std::vector<size_t> widths;
  for (size_t l = first; l < last; ++l) {
    if (lines[l].shape != lines[first].shape)
      continue; // a continuation between them
    std::vector<size_t> starts = columnsOf(lines[l]);
    widths.resize(std::max(widths.size(), starts.size()));
    for (size_t c = 0; c + 1 < starts.size(); ++c)
      widths[c] = std::max(widths[c], plain(lines[l], starts[c], starts[c + 1], 0, nullptr).size());
  }
  size_t members = 0;
  for (size_t l = first; l < last; ++l)
    members += lines[l].shape == lines[first].shape;
  for (size_t l = first; l < last; ++l) {
    Line &line = lines[l];
    line.text.assign(static_cast<size_t>(indentOf(line)), ' ');
    size_t base = line.text.size(), gapBefore = 0;
    std::vector<size_t> starts = line.shape == lines[first].shape ? columnsOf(line) : std::vector<size_t>{0};
    for (size_t c = 0; c < starts.size(); ++c) {
      if (c > 0) {
        bool wideGap = line.shape == Shape::Param && c == 2 && members > 1;
        base += widths[c - 1] + (wideGap ? 2 : 1);
        gapBefore = base > line.text.size() ? base - line.text.size() : 1;
        line.text.append(gapBefore, ' ');
      }
      size_t end = c + 1 < starts.size() ? starts[c + 1] : line.tokens.size();
      line.text += plain(line, starts[c], end, line.text.size(), &line.columns);
    }
  }
}

void Formatter::alignComments() {
  for (size_t first = 0; first < lines.size();) {
    auto trailing = [&](size_t l) { return lines[l].comment && !lines[l].tokens.empty(); };
    if (!trailing(first)) {
      if (lines[first].comment) {
        int32_t depth = lines[first].depth;
        lines[first].text = std::string(static_cast<size_t>(2 * depth), ' ') +
                            std::string(sources.textAt(lines[first].comment->place));
      }
      ++first;
      continue;
    }
    size_t last = first;
    size_t width = 0;
    while (last < lines.size() && trailing(last) && (last == first || !blankBefore(last))) {
      width = std::max(width, lines[last].text.size());
      ++last;
    }
    for (size_t l = first; l < last; ++l) {
      lines[l].text.append(width + 2 - lines[l].text.size(), ' ');
      lines[l].text += sources.textAt(lines[l].comment->place);
    }
    first = last;
  }
}

/// Whether a blank line stays between line `i` and the one before it: not at
/// the start or the end of a block.
bool Formatter::blankBefore(size_t i) const {
  if (i == 0 || lines[i].number <= lines[i - 1].number + 1)
    return false;
  bool afterOpen = !lines[i - 1].tokens.empty() && lines[i - 1].tokens.back()->is("{");
  bool beforeClose = !lines[i].tokens.empty() && lines[i].tokens[0]->is("}");
  return !afterOpen && !beforeClose;
}

std::string Formatter::run() {
  for (size_t first = 0; first < lines.size();) {
    size_t last = first + 1;
    Shape shape = lines[first].shape;
    if (shape != Shape::Plain)
      for (size_t next = last; next < lines.size() && !blankBefore(next); ++next) {
        bool same = lines[next].shape == shape && lines[next].depth == lines[first].depth &&
                    lines[next].continued == lines[first].continued;
        if (same)
          last = next + 1;
        else if (!lines[next].continued || lines[next].shape != Shape::Plain)
          break;
      }
    layOut(first, last);
    first = last;
  }
  alignComments();
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (blankBefore(i))
      text += '\n';
    std::string &line = lines[i].text;
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t'))
      line.pop_back();
    text += line + "\n";
  }
  return text;
}

} // namespace

absl::StatusOr<std::string> formatText(const std::string &name, const std::string &text) {
  SourceFiles sources;
  Diagnostics diagnostics;
  int32_t file = sources.add(name, text);
  std::vector<ast::Comment> comments;
  std::vector<Token> tokens = lex(file, sources, diagnostics, &comments);
  Formatter formatter(sources, tokens, comments);
  if (diagnostics.hasErrors() || !formatter.split(diagnostics))
    return diagnostics.status(sources);
  return formatter.run();
}

} // namespace weft::lang
