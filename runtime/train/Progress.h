//===- Progress.h - How far training is -------------------------*- C++ -*-===//
#pragma once

#include "runtime/train/Log.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace weft::rt {

/// 42 -> "42s", 192 -> "3m12s", 7260 -> "2h01m", 176400 -> "2d01h".
std::string describeSeconds(double seconds);

/// 850 -> "850", 12345 -> "12.3k", 1.5e6 -> "1.5M".
std::string describeCount(double count);

/// "step 120/2000  loss 3.4120  12.3k tokens/s  2m10s left".
std::string progressText(int64_t step, int64_t total, double loss, double tokensPerSecond,
                         double secondsLeft);

/// On a terminal: a bar, redrawn at most ten times a second. Elsewhere: a line
/// every few seconds, and for the first and the last step.
class Progress {
public:
  Progress(Console &console, int64_t total) : console(console), total(total) {}
  void update(int64_t step, double loss, double tokensPerSecond, double secondsLeft);

private:
  Console &console;
  int64_t total;
  bool shown = false;
  std::chrono::steady_clock::time_point last;
};

} // namespace weft::rt
