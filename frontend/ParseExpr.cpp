//===- ParseExpr.cpp - Expressions ----------------------------------------===//
//
// Loosest first: or; and; not; is, is not, <, <=, >, >=; + -; * / @ mod;
// unary -; **; calls and indices. Chains of one precedence are lists, so a
// long sum costs no stack.
//
//===----------------------------------------------------------------------===//

#include "frontend/ParserImpl.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {
namespace {

enum Precedence { kOr = 1, kAnd, kNot, kComparison, kSum, kProduct };

} // namespace

/// The precedence of the operator at hand (its text in `text`), 0 for none.
int Parser::operatorHere(std::string &text) const {
  const Token &token = peek();
  if (!sameLine() || (token.kind != Token::Kind::Symbol && token.kind != Token::Kind::Word))
    return 0;
  text = std::string(token.text);
  if (text == "or")
    return kOr;
  if (text == "and")
    return kAnd;
  if (text == "is" && peek(1).is("not"))
    text = "is not";
  if (text == "is" || text == "is not" || text == "<" || text == "<=" || text == ">" || text == ">=")
    return kComparison;
  if (text == "+" || text == "-")
    return kSum;
  if (text == "*" || text == "/" || text == "@" || text == "mod")
    return kProduct;
  return 0;
}

const ast::Expr *Parser::parseExpr(int least) {
  const ast::Expr *left = parseUnary();
  std::string text;
  while (left) {
    int precedence = operatorHere(text);
    if (precedence == 0 || precedence < least)
      return left;
    left = parseChain(left, precedence);
  }
  return nullptr;
}

const ast::Expr *Parser::parseChain(const ast::Expr *first, int precedence) {
  ast::Expr *chain = file.newExpr();
  chain->kind = ast::Expr::Kind::Chain;
  chain->items.push_back(first);
  std::string text;
  while (operatorHere(text) == precedence) {
    ast::Name name = {text, take().place};
    if (text == "is not")
      name.place = spanOf(name.place, take().place);
    if (precedence == kComparison && chain->items.size() > 1) {
      diagnostics.error(Code::W0105, name.place, "a comparison cannot be compared again")
          .advise("join two comparisons with `and`");
      return nullptr;
    }
    if (chain->items.size() == kChainLimit) {
      diagnostics
          .error(Code::W0104, name.place,
                 absl::StrCat("more than ", kChainLimit, " operands in one chain of operators"))
          .advise("assign parts of it to names first");
      return nullptr;
    }
    const ast::Expr *operand = parseExpr(precedence + 1);
    if (!operand)
      return nullptr;
    chain->operators.push_back(std::move(name));
    chain->items.push_back(operand);
  }
  chain->place = since(first->place);
  return chain;
}

const ast::Expr *Parser::parseUnary() {
  Nest nest(*this);
  if (!nest.ok())
    return nullptr;
  if (!peek().is("-") && !peek().is("not"))
    return parsePower();
  const Token sign = take();
  bool negates = sign.is("-");
  const ast::Expr *operand = negates ? parseUnary() : parseExpr(kComparison);
  if (!operand)
    return nullptr;
  ast::Expr *expr = file.newExpr();
  expr->kind = negates ? ast::Expr::Kind::Neg : ast::Expr::Kind::Not;
  expr->items = {operand};
  expr->place = since(sign.place);
  return expr;
}

const ast::Expr *Parser::parsePower() {
  const ast::Expr *base = parsePostfix();
  if (!base || !peek().is("**") || !sameLine())
    return base;
  take();
  const ast::Expr *exponent = parseUnary();
  if (!exponent)
    return nullptr;
  ast::Expr *expr = file.newExpr();
  expr->kind = ast::Expr::Kind::Power;
  expr->items = {base, exponent};
  expr->place = since(base->place);
  return expr;
}

const ast::Expr *Parser::parsePostfix() {
  const ast::Expr *expr = parsePrimary();
  for (int count = 0; expr && peek().is("[") && sameLine(); ++count) {
    if (count == kNestingLimit) {
      diagnostics.error(Code::W0103, peek().place,
                        absl::StrCat("more than ", kNestingLimit, " indices in a row"));
      return nullptr;
    }
    take();
    ++brackets;
    const ast::Expr *inner = parseExpr();
    if (!inner || !expect("]", "after the index"))
      return nullptr;
    --brackets;
    ast::Expr *lookup = file.newExpr();
    lookup->kind = ast::Expr::Kind::Index;
    lookup->items = {expr, inner};
    lookup->place = since(expr->place);
    expr = lookup;
  }
  return expr;
}

const ast::Expr *Parser::parsePrimary() {
  const Token &token = peek();
  // After an operator the line goes on, but not into the next assignment.
  if (!sameLine() && (peek(1).is("=") || peek(1).is("+="))) {
    unexpected("a value");
    return nullptr;
  }
  if (token.is("("))
    return parseParenthesized();
  if (token.is("branch"))
    return parseBranch();
  if (token.is("if"))
    return parseIf();
  if (token.kind == Token::Kind::Number) {
    ast::Expr *expr = file.newExpr();
    expr->number = token.number;
    expr->text = std::string(token.text);
    expr->place = take().place;
    return expr;
  }
  if (token.kind != Token::Kind::Word || (isReserved(token.text) && !token.is("full"))) {
    unexpected("a value");
    return nullptr;
  }
  const Token &next = peek(1);
  if (next.is("(") && (!next.newlineBefore || brackets > 0))
    return parseCall();
  ast::Expr *expr = file.newExpr();
  expr->kind = ast::Expr::Kind::Name;
  expr->text = std::string(token.text);
  expr->place = take().place;
  return expr;
}

const ast::Expr *Parser::parseParenthesized() {
  const Token open = take();
  ++brackets;
  const ast::Expr *inner = parseExpr();
  if (!inner)
    return nullptr;
  if (!accept(")")) {
    diagnostics.error(Code::W0102, peek().place, absl::StrCat("expected `)`, found ", found()))
        .note(open.place, "the parenthesis opens here");
    return nullptr;
  }
  --brackets;
  ast::Expr *expr = file.newExpr();
  *expr = *inner;
  expr->parenthesized = true;
  expr->place = since(open.place);
  return expr;
}

const ast::Expr *Parser::parseCall() {
  ast::Expr *call = file.newExpr();
  call->kind = ast::Expr::Kind::Call;
  const Token name = take();
  call->text = std::string(name.text);
  const Token open = take();
  ++brackets;
  if (!parseArguments(*call))
    return nullptr;
  if (!accept(")")) {
    diagnostics.error(Code::W0102, peek().place, absl::StrCat("expected `,` or `)`, found ", found()))
        .note(open.place, absl::StrCat("the arguments of `", call->text, "` start here"));
    return nullptr;
  }
  --brackets;
  call->place = since(name.place);
  return call;
}

bool Parser::parseArguments(ast::Expr &call) {
  while (!peek().is(")")) {
    ast::Name key;
    if (peek().kind == Token::Kind::Word && peek(1).is("=")) {
      key = nameOf(take());
      take();
    }
    const ast::Expr *value = parseExpr();
    if (!value)
      return false;
    call.keys.push_back(std::move(key));
    call.items.push_back(value);
    if (!accept(","))
      break;
  }
  return true;
}

const ast::Expr *Parser::parseBranch() {
  const Token word = take();
  ast::Name name;
  if (!expectName(name, "the name of the branch"))
    return nullptr;
  const ast::Block *body = parseBlock("branch");
  if (!body)
    return nullptr;
  ast::Expr *expr = file.newExpr();
  expr->kind = ast::Expr::Kind::Branch;
  expr->text = name.text;
  expr->body = body;
  expr->place = spanOf(word.place, name.place);
  return expr;
}

const ast::Expr *Parser::parseIf() {
  ast::Expr *expr = file.newExpr();
  expr->kind = ast::Expr::Kind::If;
  const Token word = peek();
  bool more = true;
  while (more) {
    ast::Arm arm;
    arm.place = peek().place;
    if (accept("if")) {
      arm.test = parseExpr();
      if (!arm.test)
        return nullptr;
    } else {
      more = false;
    }
    arm.body = parseBlock(arm.test ? "if" : "else");
    if (!arm.body)
      return nullptr;
    expr->arms.push_back(arm);
    more = more && accept("else");
  }
  expr->place = word.place;
  return expr;
}

} // namespace weft::lang
