//===- ParseTerm.cpp - Options, phrases, terms and addresses --------------===//

#include "frontend/ParserImpl.h"

#include "absl/strings/str_cat.h"

#include <cmath>

namespace weft::lang {
namespace {

/// Whole numbers up to here are exact in a float64.
constexpr double kWholeLimit = 9007199254740992.0;

} // namespace

std::vector<ast::Option> Parser::parseOptions(std::string_view owner) {
  std::vector<ast::Option> options;
  const Token open = peek();
  if (!expect("{", absl::StrCat("before the options of this ", std::string(owner))))
    return options;
  int outer = brackets;
  brackets = 0;
  while (true) {
    while (accept(";") || accept(",")) {
    }
    if (accept("}"))
      break;
    if (peek().kind == Token::Kind::End || atFileStatement()) {
      closeMissing(open);
      break;
    }
    ast::Option option;
    size_t before = at;
    brackets = 0;
    if (parseOption(option) && (peek().is(",") || expectStatementEnd("this option"))) {
      options.push_back(std::move(option));
    } else {
      recover(before);
    }
  }
  brackets = outer;
  return options;
}

bool Parser::parseOption(ast::Option &option) {
  if (peek().kind != Token::Kind::Word) {
    unexpected("an option, `key = value`");
    return false;
  }
  option.key = nameOf(take());
  if (!expect("=", absl::StrCat("after the option ", option.key.text)))
    return false;
  if (!parsePhrases(option.values, true))
    return false;
  option.place = since(option.key.place);
  return true;
}

/// Phrases separated by commas. With `options` a comma before `key =` is not
/// taken: there the next option starts.
bool Parser::parsePhrases(std::vector<ast::Phrase> &phrases, bool options) {
  while (true) {
    ast::Phrase phrase;
    if (!parsePhrase(phrase))
      return false;
    phrases.push_back(std::move(phrase));
    bool nextIsOption = options && peek(1).kind == Token::Kind::Word && peek(2).is("=");
    if (!peek().is(",") || !sameLine() || nextIsOption || peek(1).is("}"))
      return true;
    take();
  }
}

bool Parser::atPhraseEnd() const {
  const Token &next = peek();
  bool lineGoesOn = brackets > 0 || previous().is(",") || previous().is("or") || previous().is("<->") ||
                    previous().is("==");
  return next.kind == Token::Kind::End || (next.newlineBefore && !lineGoesOn) || next.is(",") ||
         next.is(";") || next.is("{") || next.is("}") || next.is(")") || next.is("]");
}

bool Parser::parsePhrase(ast::Phrase &phrase) {
  if (atPhraseEnd() && at != clauseStart) {
    unexpected("a value");
    return false;
  }
  const Place start = peek().place;
  do {
    ast::Term term;
    if (!parseTerm(term))
      return false;
    phrase.terms.push_back(std::move(term));
  } while (!atPhraseEnd());
  phrase.place = since(start);
  return true;
}

bool Parser::parseTerm(ast::Term &term) {
  Nest nest(*this);
  if (!nest.ok())
    return false;
  const Token token = peek();
  bool parsed = true;
  if (token.kind == Token::Kind::String) {
    term.kind = ast::Term::Kind::String;
    term.text = take().string;
  } else if (token.kind == Token::Kind::Number || token.is("-") || token.is("..")) {
    parsed = parseNumberTerm(term);
  } else if (token.is("[") || token.is("(")) {
    term.kind = token.is("[") ? ast::Term::Kind::List : ast::Term::Kind::Group;
    take();
    parsed = parseTermArguments(term, token.is("[") ? "]" : ")");
  } else if (token.is("<->") || token.is("==")) {
    term.kind = ast::Term::Kind::Symbol;
    term.text = std::string(take().text);
  } else if (token.kind == Token::Kind::Word) {
    parsed = parseWordTerm(term);
  } else {
    unexpected("a value");
    return false;
  }
  term.place = since(token.place);
  return parsed;
}

/// `6e-4`, `-1`, `2 ** -11`, `25%`, `100..500`, `..`
bool Parser::parseNumberTerm(ast::Term &term) {
  auto signedNumber = [this](double &value) {
    double sign = accept("-") ? -1 : 1;
    if (peek().kind != Token::Kind::Number) {
      unexpected("a number");
      return false;
    }
    value = sign * take().number;
    return true;
  };
  term.kind = ast::Term::Kind::Number;
  if (!peek().is("..")) {
    if (!signedNumber(term.number))
      return false;
    double exponent = 0;
    if (accept("**")) {
      if (!signedNumber(exponent))
        return false;
      term.number = std::pow(term.number, exponent);
    }
    if (peek().is("%") && sameLine()) {
      take();
      term.kind = ast::Term::Kind::Percent;
      return true;
    }
    if (!peek().is("..") || !sameLine())
      return true;
    term.low = term.number;
  }
  take();
  term.kind = ast::Term::Kind::Range;
  double high = 0;
  if ((peek().kind == Token::Kind::Number || peek().is("-")) && sameLine()) {
    if (!signedNumber(high))
      return false;
    term.high = high;
  }
  return true;
}

/// A word, a call when `(` follows at once, an address when `.` or `[` does.
bool Parser::parseWordTerm(ast::Term &term) {
  const Token &next = peek(1);
  if (next.is("(") && !next.spaceBefore) {
    term.kind = ast::Term::Kind::Call;
    term.text = std::string(take().text);
    take();
    return parseTermArguments(term, ")");
  }
  term.kind = ast::Term::Kind::Word;
  term.text = std::string(peek().text);
  while (true) {
    ast::Segment segment;
    if (!parseSegment(segment))
      return false;
    term.segments.push_back(std::move(segment));
    if (!peek().is(".") || peek().spaceBefore)
      break;
    take();
  }
  if (term.segments.size() > 1 || term.segments[0].indexed)
    term.kind = ast::Term::Kind::Address;
  return true;
}

bool Parser::parseTermArguments(ast::Term &term, std::string_view close) {
  const Token open = previous();
  ++brackets;
  while (!peek().is(close)) {
    ast::Argument argument;
    if (peek().kind == Token::Kind::Word && peek(1).is("=")) {
      argument.key = nameOf(take());
      take();
    }
    if (!parsePhrase(argument.value))
      return false;
    term.arguments.push_back(std::move(argument));
    if (!accept(","))
      break;
  }
  if (!accept(close)) {
    diagnostics
        .error(Code::W0102, peek().place,
               absl::StrCat("expected `,` or `", std::string(close), "`, found ", found()))
        .note(open.place, "the bracket opens here");
    return false;
  }
  --brackets;
  return true;
}

bool Parser::parseSegment(ast::Segment &segment) {
  const Place start = peek().place;
  auto word = [&] {
    if (peek().kind != Token::Kind::Word) {
      unexpected("a name");
      return false;
    }
    segment.names.push_back(nameOf(take()));
    return true;
  };
  if (peek().is("(")) {
    take();
    do {
      if (!word())
        return false;
    } while (accept(","));
    if (!expect(")", "after the names"))
      return false;
  } else if (!word()) {
    return false;
  }
  if (peek().is("[") && !peek().spaceBefore) {
    take();
    segment.indexed = true;
    do {
      ast::IndexRange range;
      if (!parseIndexRange(range))
        return false;
      segment.indices.push_back(std::move(range));
    } while (accept(","));
    if (!expect("]", "after the indices"))
      return false;
  }
  segment.place = since(start);
  return true;
}

bool Parser::parseIndexRange(ast::IndexRange &range) {
  const Place start = peek().place;
  if (peek().kind == Token::Kind::Word) {
    range.name = std::string(take().text);
  } else {
    if (!peek().is("..") && !parseWhole(range.low))
      return false;
    if (!accept(".."))
      range.high = range.low;
    else if (!peek().is("]") && !peek().is(",") && !parseWhole(range.high))
      return false;
  }
  range.place = since(start);
  return true;
}

bool Parser::parseWhole(std::optional<int64_t> &value) {
  const Token &token = peek();
  if (token.kind != Token::Kind::Number || token.number != std::floor(token.number) ||
      token.number > kWholeLimit) {
    unexpected("a whole number, a range `a..b` or `..`");
    return false;
  }
  value = static_cast<int64_t>(take().number);
  return true;
}

} // namespace weft::lang
