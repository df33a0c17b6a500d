//===- Lexer.h - Text to words ----------------------------------*- C++ -*-===//
#pragma once

#include "frontend/Ast.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

struct Token {
  enum class Kind { Word, Number, String, Symbol, End };
  Kind kind = Kind::End;
  Place place;
  /// The bytes as written; they live in SourceFiles.
  std::string_view text;
  double number = 0;  // Number
  std::string string; // String: escapes resolved
  bool newlineBefore = false, spaceBefore = false;

  bool is(std::string_view wanted) const {
    return text == wanted && (kind == Kind::Word || kind == Kind::Symbol);
  }
};

/// Splits file `index` into tokens; the last one is End. Characters that the
/// language does not use are reported (W00xx) and skipped. Words are ASCII
/// letters, digits and `_`, not starting with a digit. Comments go to `comments`.
std::vector<Token> lex(int32_t index, const SourceFiles &sources, Diagnostics &diagnostics,
                       std::vector<ast::Comment> *comments = nullptr);

/// Whether `token`, with `next` behind it, starts a statement of the file, such as
/// `plan NAME`: at column 1, where no line of a block begins with two such words. A
/// block that is open there has lost its end.
bool startsFileStatement(const Token &token, const Token &next);

} // namespace weft::lang
