//===- Recipe.h - How a model is trained ------------------------*- C++ -*-===//
//
// The typed contents of a `train NAME for MODEL { ... }` block (docs/language.md).
// The frontend fills it; the runtime follows it. Plain data, no MLIR.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::rt {

/// A length of training: `2000 steps`, `2%` (of all steps).
struct Duration {
  double amount = 0;
  bool fraction = false; // amount is a share of all steps, 0.02 for 2%
  int64_t steps(int64_t total) const {
    return fraction ? static_cast<int64_t>(amount * static_cast<double>(total) + 0.5)
                    : static_cast<int64_t>(amount);
  }
};

/// What is held out: a share of the end, a document of a built-in text, or files.
struct HeldOut {
  enum class Kind { None, LastFraction, Source };
  Kind kind = Kind::None;
  double fraction = 0;
  std::string source; // "builtin:austen/persuasion", "shards/val-*.bin"
};

/// Which parameters an optimiser, or decay, takes. Paths are glob-like addresses (`block[..]`, as written).
struct ParameterSet {
  enum class Kind {
    All,
    Matrices,
    Kernels,
    Rest,
    Paths
  }; // matrices: two axes or more; kernels: matrices of the layers
  Kind kind = Kind::All;
  std::vector<std::string> paths; // Paths, or the prefix of `block[..] matrices`
};

struct Optimizer {
  enum class Kind { AdamW, Muon };
  Kind kind = Kind::AdamW;
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.0;
  double momentum = 0.95; // muon
  bool nesterov = true;
  int iterations = 5;
  ParameterSet on;
};

struct Schedule {
  enum class Kind { Constant, Cosine, Linear, Wsd };
  Kind kind = Kind::Constant;
  Duration warmup, decay; // decay: wsd's last part
  double floor = 0;       // share of the peak rate at the end
};

struct Region {
  std::string name, marker;
};

struct Recipe {
  std::string name;
  std::string text; // the source of the train statement, for run.weft
  std::vector<std::string> data;
  HeldOut heldOut;
  double portion = 1; // share of the training tokens, from the start, that is used
  std::string tokenizer = "bytes";                   // bytes | gpt2 | gpt2(N) | a file
  int64_t tokenizerCut = 0;                          // N of gpt2(N), or 0
  bool documentsApart = true;                        // apart | joined
  bool boundaryCount = false;                        // skip | count
  bool packWhole = false;                            // whole | split (default)
  bool longDrop = false;                             // drop | split (default)
  int64_t rows = 1, positions = 1, microBatches = 1; // batch = rows x positions in microBatches
  std::optional<int64_t> steps;
  std::optional<double> tokens, epochs;
  std::vector<Optimizer> optimizers{Optimizer{}};
  ParameterSet decayOn{ParameterSet::Kind::Matrices, {}};
  Schedule schedule;
  double clip = 0;       // 0: none
  int64_t evalEvery = 0; // steps; 0: at the end only
  int64_t evalRows = 0;  // 0: all
  int64_t saveEvery = 0, saveKeep = 2;
  int64_t logEvery = 10;
  enum class Precision { Auto, Fp32, Bf16 } precision = Precision::Auto;
  /// What gradients find saved: all, no elementwise or row results, no products either.
  enum class Memory { Auto, Fast, Lean, Tight } memory = Memory::Auto;
  std::vector<Region> regions;
  std::vector<std::string> watch; // as written
  uint64_t seed = 0;
};

} // namespace weft::rt
