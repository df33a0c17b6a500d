//===- Parser.h - Text to tree ----------------------------------*- C++ -*-===//
//
// Total: every input gives a tree and diagnostics, never a crash. Its stack is
// bounded: nesting deeper than kNestingLimit is an error, long chains of
// operators and of `else if` are loops. After an error it goes on at the next
// statement, so that independent errors are all reported.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Ast.h"

#include <string>

namespace weft::lang {

constexpr int kNestingLimit = 200;
/// Operands of one chain: `a + b + ...`.
constexpr int kChainLimit = 1000;

/// Parses file number `index` of `sources`, and before it every file that it
/// uses (relative to it), into `file`. A file that `file` holds already is not
/// read again.
void parseInto(ast::File &file, int32_t index, SourceFiles &sources, Diagnostics &diagnostics);

/// Loads and parses `path` with everything that it uses. A file that can't be
/// read is a diagnostic.
ast::File parseFile(const std::string &path, SourceFiles &sources, Diagnostics &diagnostics);

/// Parses a text; `name` is what messages call it.
ast::File parseText(std::string name, std::string text, SourceFiles &sources, Diagnostics &diagnostics);

} // namespace weft::lang
