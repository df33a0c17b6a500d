//===- Generate.h - Text from a trained model -------------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace weft::rt {

/// How the next token is drawn. In this order: logits / temperature (0: the
/// largest logit, the lower id on ties); only the `topK` largest (0: all, ties
/// to lower ids); of these the fewest whose probabilities reach `topP`.
struct Sampling {
  double temperature = 1;
  int64_t topK = 0;
  double topP = 1;
};

/// The token that `uniform` in [0, 1) picks from `logits`. Ids are ordered by
/// falling logit, then rising id. -inf is never drawn. Errors: InvalidArgument
/// for NaN or +inf, for no id left, and for options out of range.
absl::StatusOr<int32_t> sample(std::span<const double> logits, const Sampling &sampling, double uniform);

struct GenerateOptions {
  Sampling sampling;
  int64_t maxTokens = 128;
  uint64_t seed = 0;
  int64_t vocabulary = 0;           // ids from here on are never drawn (0: logits' length)
  std::optional<int32_t> stopToken; // ends the text and is not part of it
  bool keepLogits = false;          // of every token fed, prompt and text
};

struct GenerateResult {
  enum class End { Limit, CacheFull, StopToken, Callback };
  std::vector<int32_t> tokens; // without the prompt
  std::vector<float> logits;   // [tokens fed, logits' length], when kept
  End end = End::Limit;
  double promptSeconds = 0, seconds = 0; // seconds: of the new tokens
};

/// "reached the limit of new tokens" and so on.
const char *describe(GenerateResult::End end);

/// Tokens the decode cache holds, or nullopt when the model keeps none (or no
/// limit): size of axis `cache` of the state's caches.
std::optional<int64_t> cacheCapacity(const Executable &executable);

/// Feeds `prompt` through program `decode`, then draws tokens until a limit.
/// `onToken` (may be empty) gets each at once; false ends. Number i of stream
/// "sample" under `seed` draws the token at position i, so a text depends on
/// prompt, seed and options alone. Errors: InvalidArgument for an empty prompt,
/// one longer than the cache, ids outside the vocabulary; of the machine.
absl::StatusOr<GenerateResult> generate(Machine &machine, std::span<const int32_t> prompt,
                                        const GenerateOptions &options,
                                        const std::function<bool(int32_t)> &onToken);

} // namespace weft::rt
