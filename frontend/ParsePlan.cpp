//===- ParsePlan.cpp - Plans, recipes and weight tables -------------------===//

#include "frontend/ParserImpl.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {

bool Parser::parseHeading(ast::Name &name, ast::Name &model, std::string_view kind) {
  take();
  return expectName(name, absl::StrCat("the name of the ", std::string(kind))) &&
         expect("for", "and a model's name") && expectName(model, "the name of a model");
}

void Parser::parsePlan() {
  ast::Plan plan;
  const Place start = peek().place;
  if (!parseHeading(plan.name, plan.model, "plan")) {
    skipToFileStatement();
    return;
  }
  plan.clauses = parseClauses(false);
  plan.place = since(start);
  file.plans.push_back(std::move(plan));
}

void Parser::parseTrain() {
  ast::Train train;
  const Place start = peek().place;
  if (!parseHeading(train.name, train.model, "recipe")) {
    skipToFileStatement();
    return;
  }
  train.options = parseOptions("recipe");
  train.place = since(start);
  file.trains.push_back(std::move(train));
}

void Parser::parseWeights() {
  ast::Weights weights;
  const Place start = peek().place;
  if (!parseHeading(weights.name, weights.model, "weight table")) {
    skipToFileStatement();
    return;
  }
  weights.clauses = parseClauses(true);
  weights.place = since(start);
  file.weights.push_back(std::move(weights));
}

std::vector<ast::Clause> Parser::parseClauses(bool weights) {
  std::vector<ast::Clause> clauses;
  const Token open = peek();
  if (!expect("{", weights ? "before the lines of the weight table" : "before the statements of the plan"))
    return clauses;
  while (true) {
    while (accept(";")) {
    }
    if (accept("}"))
      break;
    if (peek().kind == Token::Kind::End || atFileStatement()) {
      closeMissing(open);
      break;
    }
    ast::Clause clause;
    size_t before = at;
    brackets = 0;
    if (parseClause(clause, weights) && expectStatementEnd("this statement")) {
      clauses.push_back(std::move(clause));
    } else {
      recover(before);
    }
  }
  return clauses;
}

bool Parser::parseClause(ast::Clause &clause, bool weights) {
  const Token word = peek();
  if (word.kind != Token::Kind::Word) {
    unexpected(weights ? "a parameter's path, `sizes`, `expect`, `prefix`, `tied` or `ignore`"
                       : "`drop`, `windows`, `freeze`, `prune` or `use`");
    return false;
  }
  bool isPath = peek(1).is(".") || peek(1).is("<->") || (peek(1).is("[") && !peek(1).spaceBefore);
  clause.verb.place = word.place;
  clauseStart = at;
  if (!weights || !isPath) {
    clause.verb = nameOf(take());
    if (atPhraseEnd() && !peek().is("{")) {
      unexpected(absl::StrCat("something after `", clause.verb.text, "`"));
      return false;
    }
  }
  if (!peek().is("{") && !parsePhrases(clause.phrases, false))
    return false;
  if (peek().is("{")) {
    clause.braces = true;
    clause.options = parseOptions("statement");
  }
  clause.place = since(word.place);
  return true;
}

} // namespace weft::lang
