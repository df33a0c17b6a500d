//===- Symbols.h - The outline of a text ------------------------*- C++ -*-===//
#pragma once

#include "tools/lsp/Analysis.h"

namespace weft::lsp {

/// DocumentSymbols of the analysed text: statements, and what they declare inside.
rt::Json symbolsOf(Analysis &analysis);

} // namespace weft::lsp
