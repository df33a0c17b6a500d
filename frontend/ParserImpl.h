//===- ParserImpl.h - The parser's state, shared by its families -*- C++ -*-===//
//
// Inside the parser only. Functions return null or false after they have
// reported; the caller passes that on until a statement's loop recovers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Lexer.h"
#include "frontend/Parser.h"

namespace weft::lang {

class Parser {
public:
  Parser(int32_t index, const SourceFiles &sources, Diagnostics &diagnostics, ast::File &file);
  void parseFile();

private:
  //===--- Words (Parser.cpp) ---===//
  const Token &peek(size_t ahead = 0) const { return tokens[std::min(at + ahead, tokens.size() - 1)]; }
  const Token &previous() const { return tokens[at > 0 ? at - 1 : 0]; }
  Token take() { return tokens[at + 1 < tokens.size() ? at++ : at]; }
  bool accept(std::string_view text);
  /// Takes `text` or reports that it was expected `where`.
  bool expect(std::string_view text, std::string_view where);
  bool expectName(ast::Name &name, std::string_view what);
  void unexpected(std::string_view expected);
  /// Where something was expected: at the next token, or behind the last one
  /// when the line has ended.
  Place missingPlace() const;
  std::string found() const;
  /// Whether the next token still belongs to this statement's line.
  bool sameLine() const { return !peek().newlineBefore || brackets > 0; }
  bool atStatementEnd() const;
  /// Reports what is left of a statement's line.
  bool expectStatementEnd(std::string_view after);
  void recover(size_t start);
  void skipToFileStatement();
  bool atFileStatement() const;
  void closeMissing(const Token &open);
  ast::Name nameOf(const Token &token) const { return {std::string(token.text), token.place}; }
  Place since(const Place &start) const { return spanOf(start, previous().place); }

  /// Counts a nesting level while it lives; false past the limit (reported once).
  struct Nest {
    explicit Nest(Parser &parser) : parser(parser) { ++parser.depth; }
    ~Nest() { --parser.depth; }
    bool ok();
    Parser &parser;
  };

  //===--- Models (ParseModel.cpp) ---===//
  void parseModel();
  bool parseSettings(ast::Model &model);
  bool parseSetting(ast::Setting &setting);
  const ast::Block *parseBlock(std::string_view owner);
  bool parseStatement(ast::Stmt &statement);
  bool parseInput(ast::Stmt &statement);
  bool parseParam(ast::Stmt &statement);
  bool parseLet(ast::Stmt &statement);
  bool parseDef(ast::Stmt &statement);
  bool parseLayer(ast::Stmt &statement);
  bool parseOutput(ast::Stmt &statement);
  bool parseValue(ast::Stmt &statement);
  bool parseNames(std::vector<ast::Name> &names, std::string_view what);
  bool parseAxes(std::vector<ast::Name> &axes);

  //===--- Expressions (ParseExpr.cpp) ---===//
  const ast::Expr *parseExpr(int least = 0);
  const ast::Expr *parseUnary();
  const ast::Expr *parsePower();
  const ast::Expr *parsePostfix();
  const ast::Expr *parsePrimary();
  const ast::Expr *parseParenthesized();
  const ast::Expr *parseCall();
  bool parseArguments(ast::Expr &call);
  const ast::Expr *parseBranch();
  const ast::Expr *parseIf();
  int operatorHere(std::string &text) const;
  const ast::Expr *parseChain(const ast::Expr *first, int precedence);

  //===--- Plans, recipes, weights (ParseTerm.cpp, ParsePlan.cpp) ---===//
  void parsePlan();
  void parseTrain();
  void parseWeights();
  bool parseHeading(ast::Name &name, ast::Name &model, std::string_view kind);
  std::vector<ast::Clause> parseClauses(bool weights);
  bool parseClause(ast::Clause &clause, bool weights);
  std::vector<ast::Option> parseOptions(std::string_view owner);
  bool parseOption(ast::Option &option);
  bool parsePhrases(std::vector<ast::Phrase> &phrases, bool options);
  bool parsePhrase(ast::Phrase &phrase);
  bool atPhraseEnd() const;
  bool parseTerm(ast::Term &term);
  bool parseNumberTerm(ast::Term &term);
  bool parseWordTerm(ast::Term &term);
  bool parseTermArguments(ast::Term &term, std::string_view close);
  bool parseSegment(ast::Segment &segment);
  bool parseIndexRange(ast::IndexRange &range);
  bool parseWhole(std::optional<int64_t> &value);

  int32_t index;
  const SourceFiles &sources;
  Diagnostics &diagnostics;
  ast::File &file;
  std::vector<Token> tokens;
  size_t at = 0;
  size_t clauseStart = 0; // the token that a clause without a verb starts with
  int depth = 0;
  int brackets = 0; // open ( and [ since the last {
  bool reportedDepth = false;
  bool reportedBrace = false;
};

/// Words that can't be names in a model.
bool isReserved(std::string_view word);

} // namespace weft::lang
