//===- WeightTerms.h - What stands in a weight table's lines ----*- C++ -*-===//
#pragma once

#include "frontend/Terms.h"
#include "frontend/Weights.h"

namespace weft::lang {

/// `a.b or c`, `n_inner or default`: where a setting is looked for. No keys: the
/// phrase is no such list.
SizeSource sourceOf(const std::string &setting, const ast::Phrase &phrase);

/// A value that a JSON file may have, as JSON; empty for `absent`. Nothing for a term
/// that is no value.
std::optional<std::string> jsonOf(const ast::Term &term);

} // namespace weft::lang
