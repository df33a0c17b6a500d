//===- Tokenizer.h - Text to ids and back -----------------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

/// Any bytes can be encoded, valid UTF-8 or not, and decode(encode(x)) == x.
/// Text that looks like a separator is text: only the data reader places the
/// separator. Safe to use from many threads.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  virtual std::vector<int32_t> encode(std::string_view text) const = 0;

  /// The bytes of `ids`. The separator gives "<|endoftext|>"; an id outside the
  /// vocabulary gives U+FFFD.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  /// Number of ids, the separator included; ids are [0, vocabulary()).
  virtual int64_t vocabulary() const = 0;

  /// The id that begins each document of a stream, if there is one.
  virtual std::optional<int32_t> separator() const = 0;
};

/// `bytes` (256 ids, no separator), `gpt2` (50257 ids), `gpt2` with `cut` N (the
/// first N - 1 ids and the separator as id N - 1), `gpt2(N)`, or the path of a
/// file of ranks, a "BASE64 ID" a line, split as GPT-2 splits, and its markers
/// (Markers.h); its separator is the id after the last.
///
/// Errors    NotFound         a file is missing: path and what to run
///           InvalidArgument  no such tokenizer; N outside [257, 50257]
///           DataLoss         a ranks file is damaged: path, line
absl::StatusOr<std::shared_ptr<const Tokenizer>> makeTokenizer(const std::string &name, int64_t cut = 0);

/// Ids of a prompt, to be continued. An empty prompt is the separator alone, as
/// documents begin. Errors: InvalidArgument when it is empty and there is no
/// separator.
absl::StatusOr<std::vector<int32_t>> encodePrompt(const Tokenizer &tokenizer, std::string_view text);

} // namespace weft::rt
