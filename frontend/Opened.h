//===- Opened.h - Parsing with texts that are not saved yet -----*- C++ -*-===//
#pragma once

#include "frontend/Parser.h"

#include <functional>
#include <optional>
#include <string>

namespace weft::lang {

/// The text that stands for the file at a canonical path (an editor's), or
/// nullopt: the file itself is read.
using OpenText = std::function<std::optional<std::string>(const std::string &canonical)>;

/// As parseText for the file at `path`; the files that it uses are taken from
/// `open` first.
ast::File parseOpened(const std::string &path, std::string text, const OpenText &open, SourceFiles &sources,
                      Diagnostics &diagnostics);

} // namespace weft::lang
