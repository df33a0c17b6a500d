//===- BigramMachine.h - A small model written by hand ----------*- C++ -*-===//
//
// logits = table[token]: the smallest model that learns. Its gradient, clipping
// and AdamW are plain loops, so the training loop can be judged without the
// compiler. Programs, ports and state are those of a compiled model.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"

#include <array>
#include <functional>
#include <map>
#include <vector>

namespace weft::rt {

struct BigramOptions {
  int64_t vocabulary = 16, rows = 1, positions = 8; // rows of one micro-batch
  int64_t context = 32;                             // cache of decode
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0, clip = 0;
  InitRule init{InitRule::Kind::Normal, 0.5, 0};
  ElementType type = ElementType::F32;
  int32_t poison = -1; // a token whose gradient is infinite
};

class BigramMachine : public Machine {
public:
  explicit BigramMachine(const BigramOptions &options);
  const Executable &executable() const override { return description; }
  absl::Status run(std::string_view program, std::span<const Tensor> inputs,
                   std::span<Tensor> results) override;
  absl::StatusOr<Tensor> readState(std::string_view name) const override;
  absl::Status writeState(std::string_view name, const Tensor &value) override;

  /// What the loop asked for, one entry a run of `micro` or `update`.
  std::vector<int32_t> firstTokens, noises;
  std::vector<std::array<double, 3>> hyper;
  std::vector<double> inverseCounts;
  /// Called by every readState, so a test can end the process inside a save.
  std::function<void(std::string_view)> onRead;

private:
  double loss(const Tensor &tokens, const Tensor &targets, bool gradients);
  double update(double inverseCount, std::span<const double> rates);
  void logits(const Tensor &tokens, Tensor &out);

  BigramOptions options;
  Executable description;
  std::map<std::string, Tensor, std::less<>> state;
};

double get(const Tensor &tensor, int64_t index);
void set(Tensor &tensor, int64_t index, double value);

} // namespace weft::rt
