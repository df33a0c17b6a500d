//===- Frames.h - Messages with a Content-Length ----------------*- C++ -*-===//
//
// The base protocol of the Language Server Protocol 3.17: header lines that end
// with CR LF, an empty line, then as many bytes of JSON as Content-Length says.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "absl/status/statusor.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weft::lsp {

constexpr size_t kHeaderLimit = 8 << 10, kMessageLimit = 64u << 20;

/// Cuts a stream of bytes into messages.
class FrameReader {
public:
  void feed(std::string_view bytes) { waiting.append(bytes); }
  /// The next whole message, nullopt while bytes are missing. Errors:
  /// InvalidArgument when the stream can't be followed any further (no
  /// Content-Length, a number past kMessageLimit, a header past kHeaderLimit).
  absl::StatusOr<std::optional<std::string>> next();
  /// Whether a message has begun that is not whole.
  bool midway() const { return length.has_value() || waiting.size() > start; }

private:
  absl::Status readHeader(std::string_view header);

  std::string waiting;
  size_t start = 0;             // of what was not taken yet
  std::optional<size_t> length; // of the message whose header was read
};

/// `json` with its header.
std::string framed(std::string_view json);

} // namespace weft::lsp
