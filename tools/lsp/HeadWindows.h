//===- HeadWindows.h - Windows of heads under the plans of a file -*- C++ -*-===//
#pragma once

#include "tools/lsp/Analysis.h"

#include <string>

namespace weft::lsp {

/// A line for the model itself and one for each plan of the file: how many
/// heads under `path` (without indices, `block.attn`; empty: all) have which
/// window. Empty where no attend stands.
std::string windowLines(const Analysis &analysis, const std::string &model, const std::string &path);

/// The lines of one plan.
std::string planLines(const Analysis &analysis, const lang::Plan &plan, const std::string &path);

} // namespace weft::lsp
