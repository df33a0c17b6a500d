//===- BytePair.h - Byte-pair encoding by rank ------------------*- C++ -*-===//
#pragma once

#include "runtime/data/Tokenizer.h"

namespace weft::rt {

/// A tokenizer from the text of a ranks file: one "BASE64 ID" a line; ids count
/// up from 0, every byte is among them. Text is split as GPT-2 splits
/// (PreSplit.h); in each piece the pair whose joined bytes have the lowest id is
/// merged, leftmost first, until none has one.
///
/// With `cut` N only ids below N - 1 exist and the separator is N - 1; with 0
/// the separator is the id after the last. `path` is for messages.
///
/// Cost      O(n log n) for a piece of n bytes, however long; no recursion
/// Errors    DataLoss         a line is damaged: path, line, expected, found
///           InvalidArgument  N - 1 is not in [256, number of ids]
absl::StatusOr<std::shared_ptr<const Tokenizer>> makeBytePairTokenizer(std::string_view ranks,
                                                                       const std::string &path, int64_t cut);

} // namespace weft::rt
