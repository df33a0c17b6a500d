//===- PatternStatistics.cpp - How a head attends in calibration ----------===//
#include "runtime/control/RowBlock.h"

#include "runtime/cpu/Gemm.h"

#include <algorithm>
#include <cmath>

namespace weft::rt {
namespace {

constexpr int64_t kRecent = 64; // newest keys, as in SAF appendix B.2

/// Adds a row of a pattern that stands for `count` documents.
void addRow(PatternMoments &moments, int64_t row, double count, std::span<const double> values) {
  double information = 0;
  const size_t first = static_cast<size_t>(row + 1) - values.size();
  for (size_t j = 0; j < values.size(); ++j) {
    moments.columns[first + j] += count * values[j];
    moments.diagonals[values.size() - 1 - j] += count * values[j];
    if (values[j] > 0)
      information += values[j] * std::log(values[j]);
  }
  moments.rows[static_cast<size_t>(row)] = count;
  moments.information += count * information;
}

PatternMoments emptyMoments(const HeadInput &input) {
  PatternMoments moments;
  moments.rows.assign(static_cast<size_t>(input.length), 0);
  moments.columns = moments.diagonals = moments.rows;
  moments.window = input.window;
  return moments;
}

/// One row of all documents into the sums of `result`.
class RowStatistics {
public:
  explicit RowStatistics(HeadStatistics &result) : result(result) {}

  void add(RowBlock &block, int64_t row, const std::vector<size_t> &documents) {
    const auto count = static_cast<double>(documents.size());
    const size_t keys = block.rowOf(documents[0], row).size();
    addSharp(block, row, documents, keys);
    mean.assign(keys, 0);
    double entropies = 0;
    for (size_t x : documents) {
      std::span<float> values = block.rowOf(x, row);
      entropies += softmax(values);
      for (size_t j = 0; j < keys; ++j)
        mean[j] += static_cast<double>(values[j]);
    }
    for (double &value : mean)
      value /= count;
    double squares = 0;
    for (size_t x : documents) {
      std::span<const float> values = block.rowOf(x, row);
      for (size_t j = 0; j < keys; ++j) {
        const double difference = static_cast<double>(values[j]) - mean[j];
        squares += difference * difference;
      }
    }
    const double before = result.mean.information;
    addRow(result.mean, row, count, mean);
    result.score += squares;
    // sum_x KL(A_x || M) = -sum_x H(A_x) - count sum_j M log M
    result.forwardKl += std::max(0.0, -entropies - (result.mean.information - before));
    result.entropy += keys > 1 ? entropies / std::log(static_cast<double>(keys)) : 0;
    for (size_t j = keys - std::min<size_t>(keys, kRecent); j < keys; ++j)
      result.recent += count * mean[j];
    if (static_cast<int64_t>(keys) == row + 1)
      result.first += count * mean[0];
  }

private:
  /// Scores are still scores: the softmax of their mean.
  void addSharp(RowBlock &block, int64_t row, const std::vector<size_t> &documents, size_t keys) {
    std::vector<float> scores(keys);
    for (size_t x : documents) {
      std::span<const float> values = block.rowOf(x, row);
      for (size_t j = 0; j < keys; ++j)
        scores[j] += values[j] / static_cast<float>(documents.size());
    }
    softmax(scores);
    const std::vector<double> values(scores.begin(), scores.end());
    addRow(result.sharp, row, static_cast<double>(documents.size()), values);
  }

  HeadStatistics &result;
  std::vector<double> mean;
};

} // namespace

HeadStatistics headStatistics(const HeadInput &input) {
  HeadStatistics result;
  result.mean = emptyMoments(input);
  result.sharp = emptyMoments(input);
  RowBlock block(input);
  RowStatistics rows(result);
  overRows(input, block,
           [&](int64_t row, const std::vector<size_t> &documents) { rows.add(block, row, documents); });
  if (const double total = result.mean.total(); total > 0)
    for (double *sum : {&result.score, &result.forwardKl, &result.entropy, &result.recent, &result.first})
      *sum /= total;
  return result;
}

std::vector<std::vector<float>> meanOutputs(const HeadInput &input, int64_t channels) {
  std::vector<std::vector<float>> outputs;
  for (const HeadDocument &document : input.documents)
    outputs.emplace_back(static_cast<size_t>(document.length * channels));
  RowBlock block(input);
  std::vector<float> mean;
  overRows(input, block, [&](int64_t row, const std::vector<size_t> &documents) {
    const int64_t first = block.firstOf(row), keys = row - first + 1;
    mean.assign(static_cast<size_t>(keys), 0);
    for (size_t x : documents) {
      std::span<float> values = block.rowOf(x, row);
      softmax(values);
      for (size_t j = 0; j < values.size(); ++j)
        mean[j] += values[j] / static_cast<float>(documents.size());
    }
    for (size_t x : documents)
      kernelTable().sgemm(0, 0, 1, channels, keys, 1.0F, mean.data(), keys,
                          input.documents[x].v + first * input.documents[x].valueStride,
                          input.documents[x].valueStride, 0.0F, outputs[x].data() + row * channels, channels);
  });
  return outputs;
}

PatternDistances distancesTo(const HeadInput &input,
                             const std::function<std::vector<double>(int64_t)> &rowOf) {
  PatternDistances result;
  RowBlock block(input);
  double total = 0;
  overRows(input, block, [&](int64_t row, const std::vector<size_t> &documents) {
    const std::vector<double> fixed = rowOf(row);
    for (size_t x : documents) {
      std::span<float> values = block.rowOf(x, row);
      const double entropy = softmax(values);
      double cross = 0, affinity = 0;
      // A pattern may have a smaller window than the head had: P is 0 before it.
      for (size_t j = 0; j < values.size(); ++j) {
        const size_t back = values.size() - 1 - j;
        const double p = back < fixed.size() ? fixed[fixed.size() - 1 - back] : 0;
        const auto value = static_cast<double>(values[j]);
        result.frobenius += (value - p) * (value - p);
        result.variation += 0.5 * std::abs(value - p);
        affinity += std::sqrt(value * p);
        cross -= value > 0 ? value * std::log(std::max(p, 1e-30)) : 0;
      }
      result.kl += cross - entropy;
      result.hellinger += 1 - affinity;
      total += 1;
    }
  });
  if (total > 0)
    for (double *sum : {&result.frobenius, &result.kl, &result.hellinger, &result.variation})
      *sum /= total;
  return result;
}

PatternDistances distancesTo(const HeadInput &input, const Pattern &pattern) {
  return distancesTo(input, [&](int64_t row) { return patternRow(pattern, row); });
}

} // namespace weft::rt
