//===- Explain.h - The page of an error code --------------------*- C++ -*-===//
//
// The pages of docs/errors/, built into the library so that `weft explain`
// works without the sources.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

/// The page of `code` in Markdown. Case and a missing `W` are forgiven
/// (`w0301`, `0301`). nullopt when there is no such code.
std::optional<std::string> explain(std::string_view code);

/// Codes that have a page, sorted.
std::vector<std::string> explainedCodes();

} // namespace weft::lang
