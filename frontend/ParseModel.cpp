//===- ParseModel.cpp - Models and their statements -----------------------===//

#include "frontend/ParserImpl.h"

#include "absl/strings/str_cat.h"

namespace weft::lang {

void Parser::parseModel() {
  ast::Model model;
  const Token word = take();
  if (!expectName(model.name, "the name of the model") || !expect("(", "before the model's settings") ||
      !parseSettings(model)) {
    skipToFileStatement();
    return;
  }
  model.body = parseBlock("model");
  if (!model.body) {
    skipToFileStatement();
    return;
  }
  model.place = since(word.place);
  file.models.push_back(std::move(model));
}

bool Parser::parseSettings(ast::Model &model) {
  ++brackets;
  while (!peek().is(")")) {
    ast::Setting setting;
    if (parseSetting(setting)) {
      model.settings.push_back(std::move(setting));
    } else {
      while (!peek().is(",") && !peek().is(")") && !peek().is("{") && peek().kind != Token::Kind::End)
        take();
    }
    if (!accept(","))
      break;
  }
  if (!accept(")")) {
    diagnostics.error(
        Code::W0102, peek().place,
        absl::StrCat("expected `,` or `)` in the settings of model ", model.name.text, ", found ", found()));
    return false;
  }
  --brackets;
  return true;
}

bool Parser::parseSetting(ast::Setting &setting) {
  if (!expectName(setting.name, "the name of a setting") ||
      !expect("=", "and a default after the setting's name"))
    return false;
  if (peek().kind == Token::Kind::Word && peek(1).is("|")) {
    do {
      const Token &choice = peek();
      if (choice.kind != Token::Kind::Word || choice.is("full")) {
        unexpected("a word, one of the setting's choices");
        return false;
      }
      setting.words.push_back(nameOf(take()));
    } while (accept("|"));
    return true;
  }
  setting.value = parseExpr();
  return setting.value != nullptr;
}

const ast::Block *Parser::parseBlock(std::string_view owner) {
  Nest nest(*this);
  if (!nest.ok())
    return nullptr;
  const Token open = peek();
  if (!expect("{", absl::StrCat("to open the block of this ", std::string(owner))))
    return nullptr;
  ast::Block *block = file.newBlock();
  int outer = brackets;
  brackets = 0;
  while (true) {
    while (accept(";")) {
    }
    if (peek().is("}"))
      break;
    if (peek().kind == Token::Kind::End || atFileStatement()) {
      closeMissing(open);
      block->place = since(open.place);
      brackets = outer;
      return block;
    }
    ast::Stmt statement;
    size_t before = at;
    brackets = 0;
    const Place start = peek().place;
    if (parseStatement(statement) && expectStatementEnd("this statement")) {
      statement.place = since(start);
      block->statements.push_back(std::move(statement));
    } else {
      recover(before);
    }
  }
  take();
  brackets = outer;
  block->place = since(open.place);
  return block;
}

bool Parser::parseStatement(ast::Stmt &statement) {
  const Token &word = peek();
  if (word.is("input"))
    return parseInput(statement);
  if (word.is("param"))
    return parseParam(statement);
  if (word.is("let"))
    return parseLet(statement);
  if (word.is("def"))
    return parseDef(statement);
  if (word.is("layer"))
    return parseLayer(statement);
  if (word.is("output") || word.is("loss"))
    return parseOutput(statement);
  if (word.is("if")) {
    statement.kind = ast::Stmt::Kind::If;
    statement.expr = parseIf();
    return statement.expr != nullptr;
  }
  return parseValue(statement);
}

bool Parser::parseNames(std::vector<ast::Name> &names, std::string_view what) {
  do {
    ast::Name name;
    if (!expectName(name, what))
      return false;
    names.push_back(std::move(name));
  } while (accept(","));
  return true;
}

bool Parser::parseAxes(std::vector<ast::Name> &axes) {
  const Token open = peek();
  if (!expect("[", "before the names of the axes"))
    return false;
  ++brackets;
  while (!peek().is("]")) {
    if (peek().kind == Token::Kind::Number) {
      diagnostics
          .error(Code::W0108, peek().place,
                 absl::StrCat("expected the name of an axis, found ", std::string(peek().text)))
          .advise(
              absl::StrCat("give the size a name: `let size = ", std::string(peek().text), "`, then [size]"));
      return false;
    }
    ast::Name name;
    if (!expectName(name, "the name of an axis"))
      return false;
    axes.push_back(std::move(name));
    if (!accept(","))
      break;
  }
  if (!accept("]")) {
    diagnostics
        .error(Code::W0102, peek().place, absl::StrCat("expected `,` or `]` after an axis, found ", found()))
        .note(open.place, "the axes start here");
    return false;
  }
  --brackets;
  return true;
}

bool Parser::parseInput(ast::Stmt &statement) {
  statement.kind = ast::Stmt::Kind::Input;
  take();
  if (!parseNames(statement.names, "the name of an input") || !expect(":", "before the input's type"))
    return false;
  if (!peek().is("int") && !peek().is("float")) {
    unexpected("`int` or `float`");
    return false;
  }
  statement.element = std::string(take().text);
  return parseAxes(statement.axes);
}

bool Parser::parseParam(ast::Stmt &statement) {
  statement.kind = ast::Stmt::Kind::Param;
  take();
  if (!parseNames(statement.names, "the name of a parameter") ||
      !expect(":", "before the parameter's axes") || !parseAxes(statement.axes) ||
      !expect("init", "and how the parameter starts"))
    return false;
  statement.expr = parseExpr();
  return statement.expr != nullptr;
}

bool Parser::parseLet(ast::Stmt &statement) {
  statement.kind = ast::Stmt::Kind::Let;
  take();
  statement.names.emplace_back();
  if (!expectName(statement.names[0], "the name of the constant") ||
      !expect("=", "after the constant's name"))
    return false;
  statement.expr = parseExpr();
  return statement.expr != nullptr;
}

bool Parser::parseDef(ast::Stmt &statement) {
  statement.kind = ast::Stmt::Kind::Def;
  take();
  statement.names.emplace_back();
  if (!expectName(statement.names[0], "the name of the def") || !expect("(", "before the def's arguments"))
    return false;
  ++brackets;
  if (!peek().is(")") && !parseNames(statement.parameters, "the name of an argument"))
    return false;
  if (!expect(")", "after the def's arguments"))
    return false;
  --brackets;
  if (peek().is("{")) {
    statement.body = parseBlock("def");
    return statement.body != nullptr;
  }
  if (!expect("=", "or `{` after the def's arguments"))
    return false;
  statement.expr = parseExpr();
  return statement.expr != nullptr;
}

bool Parser::parseLayer(ast::Stmt &statement) {
  statement.kind = ast::Stmt::Kind::Layer;
  take();
  statement.names.emplace_back();
  if (!expectName(statement.names[0], "the name of the layer") ||
      !expect("[", "and how often the layer is repeated"))
    return false;
  ++brackets;
  if (peek().kind == Token::Kind::Word && peek(1).is("<") && !isReserved(peek().text)) {
    statement.index = nameOf(take());
    take();
  }
  statement.expr = parseExpr();
  if (!statement.expr || !expect("]", "after the number of repeats"))
    return false;
  --brackets;
  statement.body = parseBlock("layer");
  return statement.body != nullptr;
}

bool Parser::parseOutput(ast::Stmt &statement) {
  bool isLoss = take().is("loss");
  statement.kind = isLoss ? ast::Stmt::Kind::Loss : ast::Stmt::Kind::Output;
  if (!isLoss) {
    statement.names.emplace_back();
    if (!expectName(statement.names[0], "the name of the output"))
      return false;
  }
  if (!expect("=", isLoss ? "after `loss`" : "after the output's name"))
    return false;
  statement.expr = parseExpr();
  return statement.expr != nullptr;
}

bool Parser::parseValue(ast::Stmt &statement) {
  const Token &word = peek();
  const Token &next = peek(1);
  if (word.kind == Token::Kind::Word && (next.is("=") || next.is("+=")) && !next.newlineBefore) {
    statement.kind = ast::Stmt::Kind::Assign;
    statement.names.emplace_back();
    if (!expectName(statement.names[0], "the name of a value"))
      return false;
    statement.adds = take().is("+=");
  } else {
    statement.kind = ast::Stmt::Kind::Value;
  }
  statement.expr = parseExpr();
  return statement.expr != nullptr;
}

} // namespace weft::lang
