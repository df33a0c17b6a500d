//===- Watch.h - Numbers of parameters that a run reports -------*- C++ -*-===//
//
// `watch = sigmoid(gate), stable_rank(matrices)` of a recipe, with its
// parameters looked up.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"
#include "runtime/core/Json.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weft::rt {

/// sigmoid, mean: mean over a parameter's elements, of sigmoid(x) or x.
/// norm: its Frobenius norm. stable_rank: runtime/measure/Spectrum.h.
enum class WatchKind { Sigmoid, Mean, Norm, StableRank };

struct WatchedParameter {
  std::string path;
  /// Of its axes, how many from the left are the matrix's rows (stable_rank).
  int64_t rowAxes = 1;
  /// As the model declares it. A plan may keep less of it, some of its axes taken
  /// together as one (runtime/core/Slices.h). Empty: nothing is known.
  std::vector<int64_t> shape = {};
};

struct Watched {
  std::string text; // as written: sigmoid(gate)
  WatchKind kind = WatchKind::Mean;
  std::vector<WatchedParameter> parameters;
};

/// By path; `kinds`: means over the parameters that differ by numbers alone
/// (`block[..].attn.gate`); for norm the root of the sum of squares.
struct WatchValues {
  std::map<std::string, double> values, kinds;
};

/// Errors: NotFound names a parameter that the machine has not.
absl::StatusOr<WatchValues> watch(const Watched &watched, const Machine &machine);

/// `value`, what is kept of `parameter`, as a matrix in float64.
struct Matrix {
  std::vector<double> values;
  int64_t rows = 0, columns = 0;
};
Matrix asMatrix(const Tensor &value, const WatchedParameter &parameter);

/// `block.3.attn.gate` as `block[..].attn.gate`.
std::string kindOf(const std::string &path);

/// {"kind":"watch","step","watch","kinds":{...},"values":{...}}
OrderedJson toJson(int64_t step, const Watched &watched, const WatchValues &values);

} // namespace weft::rt
