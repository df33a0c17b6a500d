//===- Mqar.h - Associative recall of key-value pairs -----------*- C++ -*-===//
//
// Multi-query associative recall (Arora et al., "Zoology", 2023; SAF section
// C.3.6): a row begins with n pairs of a key and a value; later each key stands
// once more, and what is asked for there is its value.
//
//   vocabulary V, length L (even), n pairs, p passes: V > L, 2 n (p + 1) <= L
//   keys       n distinct ids of 1 .. V/2-1      values  n distinct of V/2 .. V-1
//   0 .. 2np-1 k1 v1 k2 v2 ..., p times
//   slots      g = 0 .. (L - 2np)/2 - 1 with weight (g+1)^(a-1); n distinct ones,
//              drawn one after another, weights renormalised; pair i gets the i-th
//   at 2np+2g  input: the key; target: its value. No other target counts (-1)
//   elsewhere  ids of 0 .. V-1, one draw each (filler off: 0)
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::rt {

struct MqarOptions {
  int64_t vocabulary = 8192, length = 512, pairs = 8, passes = 1;
  double a = 0.01; // 1: every slot alike
  bool filler = true;
  uint64_t seed = 0;
  int64_t rows = 1000; // of an evaluation; training never runs out
  bool test = false;   // rows for testing: none of those that training draws
};

/// Options of `builtin:mqar` or `builtin:mqar/pairs=8,vocab=8192,rows=1000,passes=1,
/// a=0.01,filler=on,seed=3` over those in `given`; none when `source` is no such
/// name. Errors: InvalidArgument names the key or the value.
absl::StatusOr<std::optional<MqarOptions>> parseMqar(std::string_view source, MqarOptions given);

class Mqar {
public:
  /// Errors: InvalidArgument with the numbers that do not fit.
  static absl::StatusOr<Mqar> make(const MqarOptions &options);

  const MqarOptions &options() const { return choices; }

  /// Row `index` (from 0, no end): a pure function of (seed, test, index). Both
  /// spans hold `length` ids; targets are -1 where nothing is asked.
  void row(int64_t index, std::span<int32_t> inputs, std::span<int32_t> targets) const;

  /// Places drawn keys, values and slots; the rest of the inputs is 0.
  void layOut(std::span<const int32_t> keys, std::span<const int32_t> values, std::span<const int64_t> slots,
              std::span<int32_t> inputs, std::span<int32_t> targets) const;

private:
  explicit Mqar(const MqarOptions &options) : choices(options) {}
  int64_t slots() const { return (choices.length - 2 * choices.pairs * choices.passes) / 2; }
  MqarOptions choices;
};

} // namespace weft::rt
