//===- Generate.cpp - Text from a trained model -----------------*- C++ -*-===//
#include "runtime/train/Generate.h"

#include "runtime/core/Philox.h"
#include "runtime/train/BoundProgram.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Tensor integer(std::vector<int64_t> shape, int32_t value) {
  Tensor tensor(ElementType::I32, std::move(shape));
  std::fill(tensor.as<int32_t>().begin(), tensor.as<int32_t>().end(), value);
  return tensor;
}

/// Runs `decode` on one token; logits stay in the program's result.
absl::Status feed(BoundProgram &decode, int32_t token, int64_t position) {
  if (absl::Status status = decode.setInput("tokens", integer({1, 1}, token)); !status.ok())
    return status;
  if (decode.hasInput("doc_start"))
    if (absl::Status status = decode.setInput("doc_start", integer({1, 1}, 0)); !status.ok())
      return status;
  if (decode.hasInput("offset"))
    if (absl::Status status = decode.setInput("offset", integer({}, static_cast<int32_t>(position)));
        !status.ok())
      return status;
  return decode.run();
}

/// Adds the logits that the last token gave.
absl::Status keep(const BoundProgram &decode, std::vector<float> &logits) {
  absl::StatusOr<const Tensor *> result = decode.result("logits");
  if (!result.ok())
    return result.status();
  for (int64_t id = 0; id < (*result)->elements(); ++id)
    logits.push_back(static_cast<float>(floatAt(**result, id)));
  return absl::OkStatus();
}

/// The next token from the logits of the last position.
absl::StatusOr<int32_t> draw(const BoundProgram &decode, const GenerateOptions &options, int64_t position,
                             std::vector<double> &logits) {
  absl::StatusOr<const Tensor *> result = decode.result("logits");
  if (!result.ok())
    return result.status();
  int64_t size = (*result)->elements();
  if (options.vocabulary > 0)
    size = std::min(size, options.vocabulary);
  logits.resize(static_cast<size_t>(size));
  for (int64_t id = 0; id < size; ++id)
    logits[id] = floatAt(**result, id);
  absl::StatusOr<int32_t> token = sample(
      logits, options.sampling, Philox(options.seed, "sample").uniform(static_cast<uint64_t>(position)));
  if (!token.ok())
    return absl::Status(token.status().code(),
                        absl::StrCat("position ", position, ": ", token.status().message()));
  return token;
}

absl::Status checkPrompt(std::span<const int32_t> prompt, std::optional<int64_t> capacity,
                         int64_t vocabulary) {
  if (prompt.empty())
    return absl::InvalidArgumentError("the prompt is empty: expected at least one token");
  const auto length = static_cast<int64_t>(prompt.size());
  if (capacity && length > *capacity)
    return absl::InvalidArgumentError(absl::StrCat("the prompt has ", length, " tokens, the cache holds ",
                                                   *capacity, "; shorten it, or set a longer context"));
  for (size_t i = 0; i < prompt.size(); ++i)
    if (prompt[i] < 0 || (vocabulary > 0 && prompt[i] >= vocabulary))
      return absl::InvalidArgumentError(
          absl::StrCat("prompt token ", i, ": expected an id below ", vocabulary, ", found ", prompt[i]));
  return absl::OkStatus();
}

} // namespace

const char *describe(GenerateResult::End end) {
  switch (end) {
  case GenerateResult::End::Limit:
    return "reached the limit of new tokens";
  case GenerateResult::End::CacheFull:
    return "the cache is full: the context ends here";
  case GenerateResult::End::StopToken:
    return "the model ended the text";
  case GenerateResult::End::Callback:
    return "stopped";
  }
  return "";
}

std::optional<int64_t> cacheCapacity(const Executable &executable) {
  std::optional<int64_t> capacity;
  for (const StateEntry &entry : executable.states)
    if (entry.role == StateEntry::Role::Cache)
      for (size_t axis = 0; axis < entry.axes.size() && axis < entry.shape.size(); ++axis)
        if (entry.axes[axis] == "cache")
          capacity = std::max(capacity.value_or(0), entry.shape[axis]);
  return capacity;
}

absl::StatusOr<GenerateResult> generate(Machine &machine, std::span<const int32_t> prompt,
                                        const GenerateOptions &options,
                                        const std::function<bool(int32_t)> &onToken) {
  absl::StatusOr<BoundProgram> decode = BoundProgram::bind(machine, "decode");
  if (!decode.ok())
    return decode.status();
  const std::optional<int64_t> capacity = cacheCapacity(machine.executable());
  absl::StatusOr<const Tensor *> logitsPort = decode->result("logits");
  if (!logitsPort.ok())
    return logitsPort.status();
  const int64_t size = (*logitsPort)->elements();
  const int64_t vocabulary = options.vocabulary > 0 ? std::min(options.vocabulary, size) : size;
  if (absl::Status status = checkPrompt(prompt, capacity, vocabulary); !status.ok())
    return status;

  auto start = std::chrono::steady_clock::now();
  int64_t position = 0; // tokens fed
  GenerateResult result;
  auto feedNext = [&](int32_t token) {
    absl::Status status = feed(*decode, token, position++);
    return status.ok() && options.keepLogits ? keep(*decode, result.logits) : status;
  };
  for (int32_t token : prompt)
    if (absl::Status status = feedNext(token); !status.ok())
      return status;
  result.promptSeconds = secondsSince(start);
  start = std::chrono::steady_clock::now();
  std::vector<double> logits;
  while (static_cast<int64_t>(result.tokens.size()) < options.maxTokens) {
    absl::StatusOr<int32_t> token = draw(*decode, options, position, logits);
    if (!token.ok())
      return token.status();
    if (options.stopToken && *token == *options.stopToken) {
      result.end = GenerateResult::End::StopToken;
      break;
    }
    result.tokens.push_back(*token);
    if (onToken && !onToken(*token)) {
      result.end = GenerateResult::End::Callback;
      break;
    }
    if (static_cast<int64_t>(result.tokens.size()) == options.maxTokens)
      break;
    if (capacity && position >= *capacity) {
      result.end = GenerateResult::End::CacheFull;
      break;
    }
    if (absl::Status status = feedNext(*token); !status.ok())
      return status;
  }
  result.seconds = secondsSince(start);
  return result;
}

} // namespace weft::rt
