//===- WindowScorers.cpp - The networks that score windows ----------------===//
#include "runtime/control/WindowScorers.h"

#include "runtime/core/Philox.h"

#include <cmath>

namespace weft::rt {

Scorer::Scorer(int64_t inputs, int64_t width, int64_t outputs, bool relu, uint64_t seed,
               const std::string &stream)
    : inputs(inputs), width(width), outputs(outputs), relu(relu) {
  const int64_t hidden = width * (inputs + 1);
  const Philox numbers(seed, stream);
  weights.resize(static_cast<size_t>(hidden + outputs * (width + 1)));
  for (size_t i = 0; i < weights.size(); ++i) {
    const double bound =
        1 / std::sqrt(static_cast<double>(static_cast<int64_t>(i) < hidden ? inputs : width));
    weights[i] = bound * (2 * numbers.uniform(i) - 1);
  }
}

std::vector<double> Scorer::score(const std::vector<double> &input) const {
  const double *hiddenWeights = weights.data(), *hiddenBias = hiddenWeights + width * inputs;
  const double *outWeights = hiddenBias + width, *outBias = outWeights + outputs * width;
  std::vector<double> hidden(static_cast<size_t>(width)), out(static_cast<size_t>(outputs));
  for (int64_t i = 0; i < width; ++i) {
    double sum = hiddenBias[i];
    for (int64_t j = 0; j < inputs; ++j)
      sum += hiddenWeights[i * inputs + j] * input[static_cast<size_t>(j)];
    hidden[static_cast<size_t>(i)] = relu ? (sum < 0 ? 0 : sum) : std::tanh(sum); // NaN stays NaN
  }
  for (int64_t i = 0; i < outputs; ++i) {
    double sum = outBias[i];
    for (int64_t j = 0; j < width; ++j)
      sum += outWeights[i * width + j] * hidden[static_cast<size_t>(j)];
    out[static_cast<size_t>(i)] = sum;
  }
  return out;
}

bool Scorer::setNumbers(std::vector<double> numbers) {
  if (numbers.size() != weights.size())
    return false;
  weights = std::move(numbers);
  return true;
}

int64_t bestIndex(const double *logits, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(logits[i]))
      return -1;
    if (logits[i] > logits[best])
      best = i;
  }
  return best;
}

} // namespace weft::rt
