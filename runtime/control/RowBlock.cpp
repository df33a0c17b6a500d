//===- RowBlock.cpp - Rows of attention of all documents ------------------===//
#include "runtime/control/RowBlock.h"

#include "runtime/cpu/Gemm.h"

#include <cmath>

namespace weft::rt {

RowBlock::RowBlock(const HeadInput &input) : input(input) {
  const int64_t width = std::min(input.length, input.window + kRows);
  scores.resize(input.documents.size() * static_cast<size_t>(kRows * width));
  stride = width;
}

void RowBlock::load(int64_t row) {
  begin = row;
  firstKey = std::max<int64_t>(0, row - input.window + 1);
  for (size_t x = 0; x < input.documents.size(); ++x) {
    const HeadDocument &document = input.documents[x];
    const int64_t end = std::min(document.length, row + kRows);
    if (end <= row)
      continue;
    kernelTable().sgemm(0, 1, end - row, end - firstKey, input.channels, static_cast<float>(input.scale),
                        document.q + row * document.queryStride, document.queryStride,
                        document.k + firstKey * document.keyStride, document.keyStride, 0.0F,
                        scores.data() + static_cast<int64_t>(x) * kRows * stride, stride);
  }
}

std::vector<size_t> RowBlock::reaching(int64_t row) const {
  std::vector<size_t> found;
  for (size_t x = 0; x < input.documents.size(); ++x)
    if (input.documents[x].length > row)
      found.push_back(x);
  return found;
}

double softmax(std::span<float> row) {
  const float most = *std::max_element(row.begin(), row.end());
  double sum = 0, weighted = 0;
  for (float &value : row) {
    const float shifted = value - most;
    value = std::exp(shifted);
    sum += static_cast<double>(value);
    weighted += static_cast<double>(value) * static_cast<double>(shifted);
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (float &value : row)
    value *= inverse;
  return std::max(0.0, std::log(sum) - weighted / sum);
}

int64_t longestOf(const HeadInput &input) {
  int64_t longest = 0;
  for (const HeadDocument &document : input.documents)
    longest = std::max(longest, document.length);
  return std::min(longest, input.length);
}

} // namespace weft::rt
