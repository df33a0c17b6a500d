//===- Format.h - The one layout of a text ----------------------*- C++ -*-===//
//
// `weft fmt`: two spaces a level, one blank line at most, one spacing of
// operators, columns in runs of lines of one kind. No line is broken or joined,
// no comment is lost, no word is changed. Formatting a formatted text gives it back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "absl/status/statusor.h"

#include <string>

namespace weft::lang {

/// `text` in the layout of the language. A text that cannot be read as words
/// with matching brackets is refused with the rendered errors; `name` is what
/// they call it.
absl::StatusOr<std::string> formatText(const std::string &name, const std::string &text);

} // namespace weft::lang
