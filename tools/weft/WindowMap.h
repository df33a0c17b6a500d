//===- WindowMap.h - Windows of layers and heads as a picture ----*- C++ -*-===//
//
// One row an attend, one cell a head; the shorter a window beside T, the darker
// its cell. Heads that left the controller are marked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/control/WindowPlan.h"

#include <string>
#include <vector>

namespace weft {

struct WindowMap {
  std::string title;
  int64_t positions = 0;
  std::vector<rt::WindowSite> sites;
  std::vector<std::vector<int64_t>> windows; // by site and head; rt::kNoBound: full; 0: pruned
};

/// 256, full, or (pruned) -.
std::string windowWord(int64_t window);

/// A table for a terminal; with `colour`, cells in shades of blue.
std::string windowText(const WindowMap &map, bool colour);

/// A whole SVG document.
std::string windowPicture(const WindowMap &map);

} // namespace weft
