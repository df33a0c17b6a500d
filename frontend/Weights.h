//===- Weights.h - Checked weight tables ------------------------*- C++ -*-===//
//
// What the checker makes of `weights NAME for MODEL { ... }`: which tensor of
// another program's files is which parameter, and in which layout. Import reads
// it from left to right, export from right to left.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "frontend/Ast.h"
#include "frontend/Model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::lang {

/// One axis of a file's tensor: axes merged row-major, outermost first. With
/// `stack` its first part is the number of the parameter (`(3, heads, head)`).
struct LayoutAxis {
  bool stack = false;
  std::vector<std::string> axes;
  int64_t size = 0;
};

/// One tensor of the files and the parameters in it, for one layer.
struct WeightEntry {
  std::string key;                     // without the prefix: h.3.attn.c_attn.weight
  std::vector<std::string> parameters; // block.3.attn.wq, ...; several are stacked
  std::vector<LayoutAxis> layout;
  bool tied = false; // a second copy: may be absent on import; its key may stand without the prefix
  Place place;

  /// Sizes of the file's tensor.
  std::vector<int64_t> shape() const;
};

/// A setting and where a JSON file holds it: ways to look, each a path of keys.
/// Ways that are there must agree; `optional` (`or default`): none need be there.
struct SizeSource {
  std::string setting;
  std::vector<std::vector<std::string>> keys;
  bool optional = false;
};

/// What the JSON file must say for the model to compute the same as the other
/// program: `expect rope_scaling absent`, `expect hidden_act "silu" or "swish"`.
struct Expectation {
  std::vector<std::string> key;
  std::vector<std::string> allowed; // as JSON; empty text: the key is absent or null
};

struct WeightTable {
  std::string name, model;
  std::string sizesFile; // config.json, or empty
  std::vector<SizeSource> sizes;
  std::vector<Expectation> expected;     // of sizesFile; the first value allowed is what export writes
  std::vector<std::string> prefixes{""}; // the first that fits a file is taken for all its tensors
  std::vector<WeightEntry> entries;      // in order of the text, layers counting up
  std::vector<std::string> ignored;      // keys, `{i}` stands for any number
};

/// Checks table `name` of `file` (empty: the only one for the model): every
/// parameter is named exactly once and every layout fits. Errors go to
/// `diagnostics` (W062x); with any there is no table.
std::optional<WeightTable> checkWeights(const ast::File &file, const SourceFiles &sources,
                                        std::string_view name, const Model &model, Diagnostics &diagnostics);

/// The `sizes` of a table alone, which can be read before the model is known
/// (they say how large it is). Lines that do not fit are passed over:
/// checkWeights reports them.
std::optional<WeightTable> weightSizes(const ast::File &file, std::string_view name, std::string_view model);

} // namespace weft::lang
