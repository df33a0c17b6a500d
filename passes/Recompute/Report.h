//===- Report.h - What was saved, what is made again -------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// A value that is made before the loss and read after it.
struct SavedValue {
  std::string name;  // of its kernel, with the axes of a token: gelu_tanh [hidden]
  std::string scope; // block.3.ffn
  int64_t bytes = 0;
  bool again = false; // not saved: made again
  double flops = 0;   // of products, to make it again
  int64_t moved = 0;  // bytes read and written for that
};

/// Of @micro, in the order of the program.
struct RecomputeReport {
  /// Asked for, of `tight`: no more products once they free so many bytes; 0: all
  /// that are worth it.
  int64_t enough = 0;
  std::vector<SavedValue> values;
};

} // namespace weft
