//===- Parser.cpp - Files, words and recovery -----------------------------===//

#include "frontend/Parser.h"
#include "frontend/Opened.h"
#include "frontend/ParserImpl.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

namespace weft::lang {
namespace {

constexpr std::array<std::string_view, 17> kReserved = {"input", "param",  "let",  "def",    "layer", "if",
                                                        "else",  "output", "loss", "branch", "init",  "is",
                                                        "not",   "and",    "or",   "mod",    "full"};

bool isOneOf(std::string_view word, auto &words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

template <typename T> const T *findByName(const std::vector<T> &items, std::string_view name) {
  for (const T &item : items)
    if (item.name.text == name)
      return &item;
  return nullptr;
}

std::string quoted(std::string_view text) {
  return absl::StrCat("`", std::string(text.size() > 40 ? text.substr(0, 40) : text), "`");
}

Code codeOf(const absl::Status &unread) {
  return unread.code() == absl::StatusCode::kResourceExhausted ? Code::W0005 : Code::W0601;
}

} // namespace

namespace ast {
const Model *File::findModel(std::string_view name) const { return findByName(models, name); }
const Plan *File::findPlan(std::string_view name) const { return findByName(plans, name); }
const Train *File::findTrain(std::string_view name) const { return findByName(trains, name); }
const Weights *File::findWeights(std::string_view name) const { return findByName(weights, name); }
} // namespace ast

bool isReserved(std::string_view word) { return isOneOf(word, kReserved); }

Parser::Parser(int32_t index, const SourceFiles &sources, Diagnostics &diagnostics, ast::File &file)
    : index(index), sources(sources), diagnostics(diagnostics), file(file),
      tokens(lex(index, sources, diagnostics, &file.comments)) {}

bool Parser::Nest::ok() {
  if (parser.depth <= kNestingLimit)
    return true;
  if (!parser.reportedDepth)
    parser.diagnostics
        .error(Code::W0103, parser.peek().place,
               absl::StrCat("nested more than ", kNestingLimit, " levels deep"))
        .advise("give inner parts a name with `let`, an assignment or a `def`");
  parser.reportedDepth = true;
  return false;
}

bool Parser::accept(std::string_view text) {
  if (!peek().is(text))
    return false;
  take();
  return true;
}

Place Parser::missingPlace() const {
  if (at == 0 || (sameLine() && peek().kind != Token::Kind::End))
    return peek().place;
  const Place &last = previous().place;
  return sources.placeAt(index, last.offset + last.length, 1);
}

std::string Parser::found() const {
  if (peek().kind == Token::Kind::End)
    return "the end of the file";
  return sameLine() ? quoted(peek().text) : "the end of the line";
}

void Parser::unexpected(std::string_view expected) {
  diagnostics.error(Code::W0101, missingPlace(),
                    absl::StrCat("expected ", std::string(expected), ", found ", found()));
}

bool Parser::expect(std::string_view text, std::string_view where) {
  if (accept(text))
    return true;
  unexpected(absl::StrCat("`", std::string(text), "` ", std::string(where)));
  return false;
}

bool Parser::expectName(ast::Name &name, std::string_view what) {
  const Token &token = peek();
  if (token.kind != Token::Kind::Word) {
    unexpected(what);
    return false;
  }
  if (isReserved(token.text)) {
    diagnostics
        .error(Code::W0106, token.place,
               absl::StrCat("expected ", std::string(what), ", found ", quoted(token.text),
                            ", a word of the language"))
        .advise("choose another name");
    return false;
  }
  name = nameOf(take());
  return true;
}

bool Parser::atStatementEnd() const {
  const Token &next = peek();
  return next.kind == Token::Kind::End || next.newlineBefore || next.is(";") || next.is("}");
}

bool Parser::expectStatementEnd(std::string_view after) {
  if (atStatementEnd())
    return true;
  Diagnostic &error = diagnostics.error(Code::W0101, peek().place,
                                        absl::StrCat("expected the end of the line after ",
                                                     std::string(after), ", found ", quoted(peek().text)));
  if (peek().is("!=") || peek().is("=="))
    error.advise(peek().is("==") ? "equality is written `is`" : "inequality is written `is not`");
  else if (peek().is("%"))
    error.advise("the remainder is written `mod`");
  return false;
}

/// Skips to the start of the next statement of this block, over whole inner
/// blocks. `start` is where the refused one began: at least that word is taken.
void Parser::recover(size_t start) {
  int braces = 0;
  brackets = 0;
  if (at == start)
    braces += take().is("{") ? 1 : 0;
  while (peek().kind != Token::Kind::End) {
    const Token &next = peek();
    if (braces == 0 && (next.is("}") || next.is(";") || next.newlineBefore))
      return;
    if (atFileStatement())
      return;
    braces += next.is("{") ? 1 : next.is("}") ? -1 : 0;
    ++at;
  }
}

bool Parser::atFileStatement() const { return startsFileStatement(peek(), peek(1)); }

void Parser::skipToFileStatement() {
  brackets = 0;
  while (peek().kind != Token::Kind::End) {
    take();
    if (atFileStatement())
      return;
  }
}

void Parser::closeMissing(const Token &open) {
  if (!reportedBrace)
    diagnostics
        .error(Code::W0102, missingPlace(),
               absl::StrCat("expected `}`, found ",
                            peek().kind == Token::Kind::End ? "the end of the file" : quoted(peek().text)))
        .note(open.place, "the block starts here");
  reportedBrace = true;
}

void Parser::parseFile() {
  while (peek().kind != Token::Kind::End) {
    const Token word = peek();
    size_t before = at;
    reportedBrace = false;
    brackets = 0;
    if (word.is("use")) {
      take();
      const Token path = peek();
      if (path.kind == Token::Kind::String && sameLine())
        file.uses.push_back({take().string, spanOf(word.place, path.place)});
      else
        unexpected("the path of a file in quotes after `use`");
      accept(";");
    } else if (word.is("model")) {
      parseModel();
    } else if (word.is("plan")) {
      parsePlan();
    } else if (word.is("train")) {
      parseTrain();
    } else if (word.is("weights")) {
      parseWeights();
    } else if (word.is("}")) {
      diagnostics.error(Code::W0102, word.place, "this `}` closes nothing");
      take();
    } else {
      unexpected("`model`, `plan`, `train`, `weights` or `use`");
      skipToFileStatement();
    }
    if (at == before)
      take();
  }
}

namespace {

/// Gives the number of a file that is used.
using Load = std::function<absl::StatusOr<int32_t>(const std::string &path)>;

void parseWith(ast::File &file, int32_t index, SourceFiles &sources, Diagnostics &diagnostics,
               const Load &load) {
  // Depth first by hand: a chain of a thousand files must not use the stack.
  struct Pending {
    int32_t index;
    std::vector<ast::Use> uses;
    size_t next = 0;
  };
  std::vector<Pending> pending;
  std::vector<int32_t> seen = file.sources;
  auto open = [&](int32_t which) {
    if (std::find(seen.begin(), seen.end(), which) != seen.end())
      return;
    seen.push_back(which);
    size_t before = file.uses.size();
    Parser(which, sources, diagnostics, file).parseFile();
    pending.push_back({which, {file.uses.begin() + static_cast<std::ptrdiff_t>(before), file.uses.end()}});
  };
  open(index);
  while (!pending.empty()) {
    if (pending.back().next == pending.back().uses.size()) {
      file.sources.push_back(pending.back().index);
      pending.pop_back();
      continue;
    }
    ast::Use use = pending.back().uses[pending.back().next++];
    std::filesystem::path folder = std::filesystem::path(sources.file(use.place.file).path).parent_path();
    absl::StatusOr<int32_t> used = load((folder / use.path).string());
    if (!used.ok())
      diagnostics.error(codeOf(used.status()), use.place, std::string(used.status().message()));
    else
      open(*used);
  }
}

std::string canonicalOf(const std::string &path) {
  std::error_code error;
  return std::filesystem::weakly_canonical(path, error).string();
}

} // namespace

void parseInto(ast::File &file, int32_t index, SourceFiles &sources, Diagnostics &diagnostics) {
  parseWith(file, index, sources, diagnostics, [&](const std::string &path) { return sources.load(path); });
}

ast::File parseOpened(const std::string &path, std::string text, const OpenText &open, SourceFiles &sources,
                      Diagnostics &diagnostics) {
  ast::File file;
  const int32_t first = sources.add(path, std::move(text));
  std::map<std::string, int32_t> opened = {{canonicalOf(path), first}};
  auto load = [&](const std::string &used) -> absl::StatusOr<int32_t> {
    const std::string canonical = canonicalOf(used);
    if (auto known = opened.find(canonical); known != opened.end())
      return known->second;
    std::optional<std::string> held = open(canonical);
    if (!held)
      return sources.load(used);
    return opened[canonical] = sources.add(used, std::move(*held));
  };
  parseWith(file, first, sources, diagnostics, load);
  return file;
}

ast::File parseFile(const std::string &path, SourceFiles &sources, Diagnostics &diagnostics) {
  ast::File file;
  absl::StatusOr<int32_t> index = sources.load(path);
  if (index.ok())
    parseInto(file, *index, sources, diagnostics);
  else
    diagnostics.errorAnywhere(codeOf(index.status()), std::string(index.status().message()));
  return file;
}

ast::File parseText(std::string name, std::string text, SourceFiles &sources, Diagnostics &diagnostics) {
  ast::File file;
  parseInto(file, sources.add(std::move(name), std::move(text)), sources, diagnostics);
  return file;
}

} // namespace weft::lang
