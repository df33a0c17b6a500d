//===- Completion.h - What could be written here ----------------*- C++ -*-===//
#pragma once

#include "tools/lsp/Analysis.h"

namespace weft::lsp {

/// CompletionItems for the word that ends at a byte of the analysed text.
rt::Json completionsAt(const Analysis &analysis, size_t offset);

} // namespace weft::lsp
