//===- Text.h - Positions of editors in texts -------------------*- C++ -*-===//
//
// Editors count lines from 0 and, inside a line, UTF-16 code units from 0; the
// language counts bytes. A byte that is no UTF-8 counts as one unit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Source.h"

#include "runtime/core/Json.h"

#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lsp {

struct Position {
  int64_t line = 0, character = 0;
};
struct Range {
  Position start, end;
};

/// A text with its line starts. Lines end with LF, CR LF or CR.
class Text {
public:
  explicit Text(std::string text);
  const std::string &bytes() const { return text; }
  /// A character behind a line's end is its end, a line behind the last one the text's.
  size_t offsetOf(const Position &position) const;
  Position positionOf(size_t offset) const;
  Range rangeOf(size_t offset, size_t length) const {
    return {positionOf(offset), positionOf(offset + length)};
  }
  /// Replaces what `range` covers. Errors: InvalidArgument when it ends before it starts.
  absl::Status replace(const Range &range, std::string_view with);

private:
  void findLines();
  size_t lineEnd(size_t line) const;

  std::string text;
  std::vector<size_t> starts;
};

rt::Json jsonOf(const Position &position);
rt::Json jsonOf(const Range &range);
/// Errors: DataLoss naming what is missing or below 0.
absl::StatusOr<Position> positionOf(const rt::Json &json);
absl::StatusOr<Range> rangeOf(const rt::Json &json);

/// `file:///a%20b.weft` to `/a b.weft`; another scheme stays as it is.
std::string pathOfUri(const std::string &uri);
std::string uriOfPath(const std::string &path);

} // namespace weft::lsp
