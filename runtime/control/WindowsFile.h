//===- WindowsFile.h - windows.json -----------------------------*- C++ -*-===//
//
//   {"length": T, "windows": [[512, "full", ...], ...]}
//
// One list an attend, one entry a query head. A run writes it at each save;
// `windows file(...)` reads it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/core/Json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace weft::rt {

struct WindowsFile {
  int64_t length = 0;
  std::vector<std::vector<int64_t>> windows; // kNoBound: full; 0: a pruned head
};

/// Errors: DataLoss names `what`, the list and the entry.
absl::StatusOr<WindowsFile> parseWindows(std::string_view text, const std::string &what);
std::string printWindows(const WindowsFile &file);

/// A window as JSON: its number, or "full".
OrderedJson windowJson(int64_t window);

} // namespace weft::rt
