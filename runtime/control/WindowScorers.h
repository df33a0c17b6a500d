//===- WindowScorers.h - The networks that score windows --------*- C++ -*-===//
//
// AAH sections 5.5 to 5.7. Two networks with one hidden layer each:
//
//   base   29 -> width -> K       logits of one item
//   joint  116 -> width -> 2 K    logits of two siblings, first slot first
//
// Their weights are drawn once and never trained: not part of the model's
// parameters, gradients, decay or clipping. With K = 4, 64 and 256 wide, a layer
// holds 34,188 numbers.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::rt {

constexpr int64_t kControllerInputs = 29, kJointInputs = 4 * kControllerInputs;

class Scorer {
public:
  /// Weights and biases uniform in (-1 / sqrt(inputs), 1 / sqrt(inputs)) of
  /// their layer, numbers of stream `stream` under `seed` in the order hidden
  /// weights, hidden biases, output weights, output biases.
  Scorer(int64_t inputs, int64_t width, int64_t outputs, bool relu, uint64_t seed, const std::string &stream);

  /// Outputs for `input`: W2 f(W1 x + b1) + b2, f = tanh or max(0, .).
  std::vector<double> score(const std::vector<double> &input) const;

  /// All numbers in the order of drawing.
  const std::vector<double> &numbers() const { return weights; }
  /// Of the same count, or nothing happens and false is returned.
  bool setNumbers(std::vector<double> numbers);

private:
  int64_t inputs, width, outputs;
  bool relu;
  std::vector<double> weights;
};

/// The largest logit's index, the lower one on ties; -1 when one is NaN.
int64_t bestIndex(const double *logits, int64_t count);

} // namespace weft::rt
