//===- Source.h - Source files and places in them ---------------*- C++ -*-===//
//
// Texts by number, so that a Place stays small. Line ends may be LF, CRLF or
// CR, mixed as they like: each counts once. A byte-order mark at the start is
// no part of the text. Offsets are bytes of the text as it was read (without
// the mark); lines and columns count from 1, columns in bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Model.h"

#include "absl/status/statusor.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

class SourceFiles {
public:
  struct File {
    std::string path; // as it was asked for; printed in messages
    std::string text;
    std::vector<int32_t> lineStarts;
  };

  /// Reads `path`. The same canonical path read twice gives the same number.
  absl::StatusOr<int32_t> load(const std::string &path);
  /// Adds a text that lies in no file; `path` is what messages call it.
  int32_t add(std::string path, std::string text);
  /// The number of a file that `load` has read, or -1.
  int32_t find(const std::string &path) const;

  const File &file(int32_t index) const { return files[static_cast<size_t>(index)]; }
  int32_t count() const { return static_cast<int32_t>(files.size()); }

  /// The place of `length` bytes at `offset`; an offset past the end is the end.
  Place placeAt(int32_t file, int32_t offset, int32_t length = 0) const;
  /// Line `line` without its line end; empty when there is none.
  std::string_view lineText(int32_t file, int32_t line) const;
  /// The bytes that a place covers.
  std::string_view textAt(const Place &place) const;
  /// `qwen3.weft:3:74`.
  std::string describe(const Place &place) const;

private:
  std::deque<File> files;
  std::vector<std::string> canonical; // by number; empty for added texts
};

/// From the start of `first` to the end of `last`, which lie in one file.
Place spanOf(const Place &first, const Place &last);

} // namespace weft::lang
