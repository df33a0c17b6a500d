//===- LearningRate.cpp - The rate at a step --------------------*- C++ -*-===//
#include "runtime/train/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::rt {

/// (step - from) / length, held in [0, 1]; a part without steps is behind us.
static double progress(int64_t step, int64_t from, int64_t length) {
  if (length <= 0)
    return step > from ? 1 : 0;
  return std::clamp(static_cast<double>(step - from) / static_cast<double>(length), 0.0, 1.0);
}

double rateShare(const Schedule &schedule, int64_t step, int64_t total) {
  const int64_t warmup = schedule.warmup.steps(total);
  if (step < warmup)
    return static_cast<double>(step) / static_cast<double>(warmup);
  const double drop = 1 - schedule.floor;
  switch (schedule.kind) {
  case Schedule::Kind::Constant:
    return 1;
  case Schedule::Kind::Linear:
    return 1 - drop * progress(step, warmup, total - warmup);
  case Schedule::Kind::Cosine:
    return schedule.floor +
           drop * 0.5 * (1 + std::cos(std::numbers::pi * progress(step, warmup, total - warmup)));
  case Schedule::Kind::Wsd: {
    const int64_t decay = std::min(schedule.decay.steps(total), total - warmup);
    return decay <= 0 ? 1 : 1 - drop * progress(step, total - decay, decay);
  }
  }
  return 1;
}

} // namespace weft::rt
