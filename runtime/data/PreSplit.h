//===- PreSplit.h - GPT-2's cut of text into pieces -------------*- C++ -*-===//
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft::rt {

/// Cuts text where GPT-2 does, so that no merge crosses a piece's end:
///
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// \s is Unicode's White_Space. A byte that is not part of valid UTF-8 counts as
/// a character that is neither space, letter nor digit.
class PreSplit {
public:
  /// Errors: Internal, in the regular expression library's words.
  static absl::StatusOr<PreSplit> make();

  /// Calls `piece` for each piece in order; together they are the text. Uses a
  /// bounded stack whatever the text.
  void run(std::string_view text, const std::function<void(std::string_view)> &piece) const;

private:
  std::shared_ptr<const void> pattern; // compiled, shared by threads
};

/// Length of the valid UTF-8 character at the start of `text`, 0 if there is none.
size_t utf8Length(std::string_view text);

} // namespace weft::rt
