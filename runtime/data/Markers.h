//===- Markers.h - Ids of their own for chosen texts ------------*- C++ -*-===//
//
// Markers of regions (`<|query|>`) are one id each, whatever stands around them.
// A ranks file ends with a line `marker BASE64` for each; their ids follow the
// ranks, and the separator is the id after them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/data/Tokenizer.h"

#include <functional>
#include <string>
#include <vector>

namespace weft::rt {

/// The markers at the end of a ranks file; `ranks` is cut before them.
/// Errors: DataLoss names path and line of a damaged or repeated marker.
absl::StatusOr<std::vector<std::string>> takeMarkers(std::string_view &ranks, const std::string &path);

/// `base` with markers: wherever one stands in a text it is its id, the longest
/// where several begin, from left to right; the text between goes to `base`.
std::shared_ptr<const Tokenizer> withMarkers(std::shared_ptr<const Tokenizer> base,
                                             std::vector<std::string> markers);

/// Calls `text` with what stands between markers, `marker` with their numbers.
void splitAtMarkers(std::string_view whole, const std::vector<std::string> &markers,
                    const std::function<void(std::string_view)> &text,
                    const std::function<void(size_t)> &marker);

} // namespace weft::rt
