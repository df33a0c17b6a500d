//===- TrainBytePair.h - A byte-pair tokenizer of your own text -*- C++ -*-===//
//
// What `weft data tokenizer` does.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

/// Learns a ranks file (BytePair.h) with `ids` ids, the separator included, from
/// `texts`: the bytes, then again and again the most frequent joining of two
/// neighbours inside GPT-2's pieces. Of equally frequent ones the first in byte
/// order is taken, so the file is a function of the texts alone. Encoding a
/// text with the file gives the pieces that learning ended with.
///
/// `markers` get ids of their own (Markers.h): nothing is joined across them.
///
/// Cost      memory for each distinct piece; time grows with distinct pieces
///           touched by merges, not with the text
/// Errors    InvalidArgument  ids < 257, or more than the text gives (a joining
///                            must occur twice): says how many it gives
absl::StatusOr<std::string> trainBytePairs(std::span<const std::string> texts, int64_t ids,
                                           const std::vector<std::string> &markers = {});

} // namespace weft::rt
