//===- LearningRate.h - The rate at a step ----------------------*- C++ -*-===//
#pragma once

#include "runtime/Recipe.h"

#include <cstdint>

namespace weft::rt {

/// The share of the peak rate at `step`, counted from 1 to `total`. With
/// warm-up of W steps and floor f:
///
///   step <= W   step / W
///   constant    1
///   linear      1 - (1 - f) p,               p = (step - W) / (total - W)
///   cosine      f + (1 - f) (1 + cos(pi p)) / 2
///   wsd         1 until total - D (D: decay, at most total - W), then
///               1 - (1 - f) (step - (total - D)) / D
///
/// Past `total` p stays 1. A pure function: resuming can't shift it.
double rateShare(const Schedule &schedule, int64_t step, int64_t total);

} // namespace weft::rt
