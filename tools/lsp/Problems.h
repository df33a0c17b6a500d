//===- Problems.h - Errors and their quick fixes ----------------*- C++ -*-===//
#pragma once

#include "tools/lsp/Analysis.h"

#include <string>

namespace weft::lsp {

/// Writes the pages of error codes below a folder when they are first asked for,
/// so that an editor can open them.
class ErrorPages {
public:
  explicit ErrorPages(std::string folder) : folder(std::move(folder)) {}
  /// `file:///.../W0301.md`; empty without a folder that can be written.
  std::string uriOf(const std::string &code);

private:
  std::string folder;
  std::map<std::string, std::string> known;
};

/// The Diagnostics of the analysed text, in order of places. Errors in a file that
/// it uses stand, counted, at the `use`.
rt::Json problemsOf(Analysis &analysis, ErrorPages &pages);

/// Quick fixes of the errors that touch `range`: what `did you mean` says.
rt::Json fixesOf(Analysis &analysis, const std::string &uri, const Range &range, ErrorPages &pages);

} // namespace weft::lsp
