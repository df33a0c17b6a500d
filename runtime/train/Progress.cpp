//===- Progress.cpp - How far training is -----------------------*- C++ -*-===//
#include "runtime/train/Progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft::rt {
namespace {

constexpr int64_t kBarWidth = 24;
constexpr std::chrono::milliseconds kRedraw{100}, kLine{5000};

} // namespace

std::string describeSeconds(double seconds) {
  if (!std::isfinite(seconds))
    return "?";
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60)
    return absl::StrCat(whole, "s");
  if (whole < 3600)
    return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  if (whole < 86400)
    return absl::StrFormat("%dh%02dm", whole / 3600, whole / 60 % 60);
  return absl::StrFormat("%dd%02dh", whole / 86400, whole / 3600 % 24);
}

std::string describeCount(double count) {
  if (count < 1000)
    return absl::StrFormat("%.0f", count);
  if (count < 1e6)
    return absl::StrFormat("%.1fk", count / 1e3);
  if (count < 1e9)
    return absl::StrFormat("%.1fM", count / 1e6);
  return absl::StrFormat("%.1fG", count / 1e9);
}

std::string progressText(int64_t step, int64_t total, double loss, double tokensPerSecond,
                         double secondsLeft) {
  return absl::StrFormat("step %d/%d  loss %.4f  %s tokens/s  %s left", step, total, loss,
                         describeCount(tokensPerSecond), describeSeconds(secondsLeft));
}

void Progress::update(int64_t step, double loss, double tokensPerSecond, double secondsLeft) {
  const auto now = std::chrono::steady_clock::now();
  const bool bar = console.terminal();
  const bool due = !shown || now - last >= (bar ? kRedraw : kLine) || step == total;
  if (!due)
    return;
  shown = true;
  last = now;
  const std::string text = progressText(step, total, loss, tokensPerSecond, secondsLeft);
  if (!bar || step == total)
    return console.line(text);
  const int64_t filled = kBarWidth * std::min(step, total) / std::max<int64_t>(total, 1);
  console.status(
      absl::StrCat("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "] ", text));
}

} // namespace weft::rt
