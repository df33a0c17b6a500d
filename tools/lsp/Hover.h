//===- Hover.h - What a name is, in Markdown --------------------*- C++ -*-===//
#pragma once

#include "tools/lsp/Analysis.h"

#include <string>

namespace weft::lsp {

/// The page of the name, function or operator at a byte of the analysed text
/// and the place that it covers; nullopt where nothing has a meaning.
struct HoverPage {
  std::string markdown;
  lang::Place place;
};
std::optional<HoverPage> hoverAt(Analysis &analysis, size_t offset);

} // namespace weft::lsp
