//===- WholePattern.cpp - Patterns with a number a pair -------------------===//
#include "runtime/control/WholePattern.h"

#include "runtime/control/RowBlock.h"
#include "runtime/core/Philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

/// The nearest number of bfloat16, ties to even; of a finite number >= 0.
float toHalf(double number) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(number));
  return std::bit_cast<float>((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
}

/// Draws of one head.
class Draws {
public:
  explicit Draws(const PatternMaking &making)
      : uniforms(making.seed, absl::StrCat(making.stream, "/uniform")),
        normals(making.seed, absl::StrCat(making.stream, "/normal")) {}

  double uniform(int64_t number) const { return uniforms.uniform(static_cast<uint64_t>(number)); }
  double normal(int64_t number) const { return normals.normal(static_cast<uint64_t>(number)); }

  /// The logarithm of a draw of Gamma(shape), shape > 0: Marsaglia and Tsang, "A
  /// simple method for generating gamma variables", 2000, and below 1 by
  /// Gamma(a) = Gamma(a + 1) U^(1/a), in logarithms so that small shapes don't vanish.
  double logGamma(double shape, int64_t number) const {
    const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    const int64_t first = number * kTries;
    const double boost = shape < 1 ? std::log(1 - uniform(first + kTries - 1)) / shape : 0;
    for (int64_t tried = 0; tried < kTries - 1; ++tried) {
      const double x = normal(first + tried), root = 1 + c * x, v = root * root * root;
      if (root > 0 && std::log(1 - uniform(first + tried)) < 0.5 * x * x + d - d * v + d * std::log(v))
        return std::log(d * v) + boost;
    }
    return std::log(d) + boost; // 31 tries of which each fails one time in twenty
  }

private:
  static constexpr int64_t kTries = 32;
  Philox uniforms, normals;
};

/// Makes the rows of one head.
class RowMaker {
public:
  RowMaker(const PatternMaking &making, RowBlock &block, int64_t length)
      : making(making), block(block), length(length), draws(making) {}

  std::vector<double> row(int64_t row, const std::vector<size_t> &documents) {
    const size_t keys = block.rowOf(documents[0], row).size();
    if (making.kind == "sharp")
      return sharp(row, documents, keys);
    for (size_t x : documents)
      softmax(block.rowOf(x, row));
    if (making.kind == "resample") {
      const auto drawn = static_cast<size_t>(draws.uniform(row) * static_cast<double>(documents.size()));
      std::span<const float> values = block.rowOf(documents[drawn], row);
      return {values.begin(), values.end()};
    }
    std::vector<double> values = mean(row, documents, keys);
    if (making.kind == "gaussian")
      return gaussian(row, documents, std::move(values));
    return making.kind == "dirichlet" ? dirichlet(row, values) : values;
  }

private:
  /// The number of the pair of `row` and its key number `key`.
  int64_t pair(int64_t row, size_t key) const {
    return row * length + block.firstOf(row) + static_cast<int64_t>(key);
  }

  std::vector<double> mean(int64_t row, const std::vector<size_t> &documents, size_t keys) {
    std::vector<double> mean(keys);
    for (size_t x : documents)
      for (size_t j = 0; j < keys; ++j)
        mean[j] += static_cast<double>(block.rowOf(x, row)[j]) / static_cast<double>(documents.size());
    return mean;
  }

  std::vector<double> sharp(int64_t row, const std::vector<size_t> &documents, size_t keys) {
    const std::vector<double> scores = mean(row, documents, keys);
    std::vector<float> values(scores.begin(), scores.end());
    softmax(values);
    return {values.begin(), values.end()};
  }

  std::vector<double> gaussian(int64_t row, const std::vector<size_t> &documents, std::vector<double> mean) {
    std::vector<double> drawn(mean.size());
    for (size_t j = 0; j < mean.size(); ++j) {
      double squares = 0;
      for (size_t x : documents) {
        const double difference = static_cast<double>(block.rowOf(x, row)[j]) - mean[j];
        squares += difference * difference;
      }
      const double deviation = std::sqrt(squares / static_cast<double>(documents.size()));
      drawn[j] = std::max(0.0, mean[j] + deviation * draws.normal(pair(row, j)));
    }
    // All below 0: nothing was drawn.
    return std::accumulate(drawn.begin(), drawn.end(), 0.0) > 0 ? drawn : mean;
  }

  std::vector<double> dirichlet(int64_t row, const std::vector<double> &mean) const {
    std::vector<double> drawn(mean.size(), -std::numeric_limits<double>::infinity());
    const double scale = making.concentration * static_cast<double>(mean.size());
    for (size_t j = 0; j < mean.size(); ++j)
      if (mean[j] > 0)
        drawn[j] = draws.logGamma(scale * mean[j], pair(row, j));
    const double most = *std::max_element(drawn.begin(), drawn.end());
    for (double &value : drawn)
      value = std::exp(value - most);
    return drawn;
  }

  const PatternMaking &making;
  RowBlock &block;
  int64_t length;
  Draws draws;
};

WholePattern empty(int64_t length, int64_t window) {
  return {std::vector<float>(static_cast<size_t>(length * length)), length, window};
}

} // namespace

std::vector<double> WholePattern::row(int64_t row) const {
  const auto begin = p.begin() + row * length;
  return {begin + std::max<int64_t>(0, row - window + 1), begin + row + 1};
}

void WholePattern::setRow(int64_t row, std::span<const double> values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const auto end = p.begin() + row * length + row + 1;
  std::transform(values.begin(), values.end(), end - static_cast<std::ptrdiff_t>(values.size()),
                 [&](double value) { return toHalf(value / sum); });
}

WholePattern wholePattern(const HeadInput &input, const PatternMaking &making, const Pattern &fit) {
  WholePattern pattern = empty(input.length, input.window);
  RowBlock block(input);
  RowMaker maker(making, block, input.length);
  int64_t reached = 0;
  overRows(input, block, [&](int64_t row, const std::vector<size_t> &documents) {
    pattern.setRow(row, maker.row(row, documents));
    reached = row + 1;
  });
  for (int64_t row = reached; row < input.length; ++row)
    pattern.setRow(row, patternRow(fit, row));
  return pattern;
}

WholePattern wholePattern(const Pattern &pattern) {
  WholePattern whole = empty(pattern.length(), pattern.window);
  for (int64_t row = 0; row < whole.length; ++row)
    whole.setRow(row, patternRow(pattern, row));
  return whole;
}

WholePattern cutTo(WholePattern pattern, int64_t window) {
  for (int64_t row = 0; row < pattern.length; ++row) {
    std::vector<double> values = pattern.row(row);
    const auto kept = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(values.size()), window));
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(kept));
    // A row whose whole mass lay behind the window looks at all that is left alike.
    if (std::accumulate(values.begin(), values.end(), 0.0) <= 0)
      std::fill(values.begin(), values.end(), 1.0);
    std::fill_n(pattern.p.begin() + row * pattern.length, row + 1, 0.0F);
    pattern.setRow(row, values);
  }
  pattern.window = std::min(pattern.window, window);
  return pattern;
}

} // namespace weft::rt
