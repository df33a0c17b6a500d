//===- Watch.cpp - Numbers of parameters that a run reports ----------------===//
#include "runtime/measure/Watch.h"

#include "runtime/core/Floats.h"
#include "runtime/measure/Spectrum.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {

/// How many axes of `kept` are rows, where `parameter` has more axes than it.
static int64_t rowAxesOf(const std::vector<int64_t> &kept, const WatchedParameter &parameter) {
  const std::vector<int64_t> &whole = parameter.shape;
  if (whole.size() <= kept.size())
    return parameter.rowAxes;
  int64_t first = 0; // of the axes taken together
  while (first + 1 < static_cast<int64_t>(kept.size()) &&
         kept[static_cast<size_t>(first)] == whole[static_cast<size_t>(first)])
    ++first;
  return parameter.rowAxes <= first
             ? parameter.rowAxes
             : parameter.rowAxes - static_cast<int64_t>(whole.size()) + static_cast<int64_t>(kept.size());
}

Matrix asMatrix(const Tensor &value, const WatchedParameter &parameter) {
  const int64_t rowAxes = rowAxesOf(value.shape, parameter);
  Matrix matrix{std::vector<double>(static_cast<size_t>(value.elements())), 1, 1};
  for (size_t i = 0; i < matrix.values.size(); ++i)
    matrix.values[i] = floatAt(value, static_cast<int64_t>(i));
  for (size_t axis = 0; axis < value.shape.size(); ++axis)
    (static_cast<int64_t>(axis) < rowAxes ? matrix.rows : matrix.columns) *= value.shape[axis];
  return matrix;
}

std::string kindOf(const std::string &path) {
  std::string kind;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; }))
      kind += "[..]";
    else
      kind += (kind.empty() ? "" : ".") + part;
    begin = end + 1;
  }
  return kind;
}

static double numberOf(WatchKind kind, const Matrix &matrix) {
  if (kind == WatchKind::StableRank)
    return stableRank({matrix.values, matrix.rows, matrix.columns});
  double sum = 0;
  for (double value : matrix.values)
    sum += kind == WatchKind::Sigmoid ? 1 / (1 + std::exp(-value))
           : kind == WatchKind::Mean  ? value
                                      : value * value;
  return kind == WatchKind::Norm ? std::sqrt(sum) : sum / static_cast<double>(matrix.values.size());
}

absl::StatusOr<WatchValues> watch(const Watched &watched, const Machine &machine) {
  WatchValues result;
  std::map<std::string, std::vector<double>> byKind;
  for (const WatchedParameter &parameter : watched.parameters) {
    absl::StatusOr<Tensor> value = machine.readState(parameter.path);
    if (!value.ok())
      return absl::Status(value.status().code(),
                          absl::StrCat("watch = ", watched.text, ": ", value.status().message()));
    double number = numberOf(watched.kind, asMatrix(*value, parameter));
    result.values[parameter.path] = number;
    byKind[kindOf(parameter.path)].push_back(number);
  }
  for (const auto &[kind, numbers] : byKind) {
    const bool norm = watched.kind == WatchKind::Norm;
    double sum = 0;
    for (double number : numbers)
      sum += norm ? number * number : number;
    result.kinds[kind] = norm ? std::sqrt(sum) : sum / static_cast<double>(numbers.size());
  }
  return result;
}

OrderedJson toJson(int64_t step, const Watched &watched, const WatchValues &values) {
  return {{"kind", "watch"},
          {"step", step},
          {"watch", watched.text},
          {"kinds", values.kinds},
          {"values", values.values}};
}

} // namespace weft::rt
