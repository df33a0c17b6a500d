//===- WindowScorers.cpp - The networks that score windows ----------------===//
#include "runtime/control/WindowScorers.h"

#include "runtime/core/Philox.h"

#include <algorithm>
#include <cmath>

namespace weft::rt {
namespace {

constexpr int64_t kTogether = 8; // rows whose sums run beside each other

/// out[i] = bias[i] + sum over j of matrix[i, j] input[j], each sum in the order of j. Sums of
/// `Count` rows at once: an addition waits for the one before it in its own row alone.
template <int64_t Count>
void rowsOf(const double *matrix, const double *bias, const double *input, int64_t columns, double *out) {
  double sums[Count];
  std::copy_n(bias, Count, sums);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < Count; ++i)
      sums[i] += matrix[i * columns + j] * input[j];
  std::copy_n(sums, Count, out);
}

std::vector<double> product(const double *matrix, const double *bias, const std::vector<double> &input,
                            int64_t rows) {
  const auto columns = static_cast<int64_t>(input.size());
  std::vector<double> out(static_cast<size_t>(rows));
  int64_t i = 0;
  for (; i + kTogether <= rows; i += kTogether)
    rowsOf<kTogether>(matrix + i * columns, bias + i, input.data(), columns, &out[static_cast<size_t>(i)]);
  for (; i < rows; ++i)
    rowsOf<1>(matrix + i * columns, bias + i, input.data(), columns, &out[static_cast<size_t>(i)]);
  return out;
}

} // namespace

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
  std::vector<double> hidden = product(hiddenWeights, hiddenBias, input, width);
  for (double &value : hidden)
    value = relu ? (value < 0 ? 0 : value) : std::tanh(value); // NaN stays NaN
  return product(outWeights, outBias, hidden, outputs);
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
