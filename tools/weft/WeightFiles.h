//===- WeightFiles.h - Weights in another program's layout -------*- C++ -*-===//
//
// A weight table (frontend/Weights.h) says which tensor of the files is which
// parameter, with axes in another order, merged, or several parameters stacked
// in one. Here it is carried out, one tensor in memory at a time.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Weights.h"
#include "runtime/core/Json.h"
#include "runtime/core/Safetensors.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Element (i, j, ...) of a parameter of `shape` is element
/// first + i * strides[0] + j * strides[1] + ... of the file's tensor.
struct Placement {
  std::vector<int64_t> shape, strides;
  int64_t first = 0;
};

/// Where parameter number `part` of `entry` lies.
Placement placementOf(const lang::WeightEntry &entry, size_t part, const lang::ParameterInfo &parameter);

/// A parameter out of the file's tensor, and into it. Both tensors are F32.
rt::Tensor taken(const rt::Tensor &file, const Placement &placement);
void put(const rt::Tensor &parameter, const Placement &placement, rt::Tensor &file);

/// Settings that the sizes of `table` find in `config`, as `--set` takes them, in
/// order of the table. Errors: FailedPrecondition names the keys that are not there,
/// hold something else than a number, or contradict one another.
absl::StatusOr<std::vector<std::string>> settingsFrom(const lang::WeightTable &table, const rt::Json &config,
                                                      const std::string &what);

/// FailedPrecondition names the first key of `config` that is not as the table
/// expects, with what was expected and found.
absl::Status checkExpected(const lang::WeightTable &table, const rt::Json &config, const std::string &what);

/// The JSON file that a table's sizes and expectations give for settings of these
/// values (words are no sizes).
rt::OrderedJson configOf(const lang::WeightTable &table, const std::map<std::string, double> &settings);

/// Files of weights that were compared with a table and a model in both directions.
class WeightFiles {
public:
  /// Opens a file, an index or a folder, and reads its headers alone.
  /// Errors: of SafetensorsSet; FailedPrecondition lists tensors that are missing,
  /// unknown, or of another shape or type than the table's.
  static absl::StatusOr<WeightFiles> open(const std::string &path, const lang::WeightTable &table,
                                          const std::vector<lang::ParameterInfo> &parameters);

  /// FailedPrecondition when a second copy is not the first one, with the largest difference.
  absl::Status checkCopies();

  /// A parameter as F32. Errors: of the file; FailedPrecondition names a tensor with
  /// a number that is not finite.
  absl::StatusOr<rt::Tensor> parameter(const std::string &path);

  size_t tensorCount() const { return used; }
  /// `F32`, or `BF16 and F32`.
  std::string types() const;
  /// The prefix of the table that the files have.
  const std::string &prefix() const { return before; }
  const std::vector<std::string> &strayShards() const { return set->ignored(); }

private:
  absl::Status compare();
  std::string choosePrefix() const;
  std::string nameOf(const lang::WeightEntry &entry) const;
  absl::StatusOr<const rt::Tensor *> tensor(const std::string &name);

  std::string where;
  const lang::WeightTable *table = nullptr;
  std::optional<rt::SafetensorsSet> set;
  std::string before;
  size_t used = 0;
  std::map<std::string, lang::ParameterInfo> infos;                            // by path
  std::map<std::string, std::pair<const lang::WeightEntry *, size_t>> sources; // by path
  std::string held;                                                            // name of the tensor in `last`
  rt::Tensor last;
};

} // namespace weft
