//===- Prefill.cpp - One pass over a text, without sampling -----*- C++ -*-===//
#include "runtime/train/Prefill.h"

#include "runtime/train/BoundProgram.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::rt {

/// Row 0's first `count` positions of [rows, positions, ...], as [count, ...].
static Tensor firstRow(const Tensor &whole, int64_t count) {
  std::vector<int64_t> shape(whole.shape.begin() + 1, whole.shape.end());
  shape[0] = count;
  Tensor part(whole.type, shape);
  std::copy_n(whole.bytes.begin(), part.bytes.size(), part.bytes.begin());
  return part;
}

absl::StatusOr<std::map<std::string, Tensor>> prefill(Machine &machine, std::span<const int32_t> tokens) {
  absl::StatusOr<BoundProgram> program = BoundProgram::bind(machine, "prefill");
  if (!program.ok())
    return program.status();
  std::vector<int64_t> shape;
  for (const Port &port : program->program().inputs)
    if (port.name == "tokens")
      shape = port.shape;
  if (shape.size() != 2)
    return absl::InvalidArgumentError("program 'prefill' has no input 'tokens' [rows, positions]");
  const auto count = static_cast<int64_t>(tokens.size());
  if (count < 1 || count > shape[1])
    return absl::InvalidArgumentError(
        absl::StrCat("the text has ", count, " tokens, expected 1 to ", shape[1], ", the context"));

  Tensor padded(ElementType::I32, shape), starts(ElementType::I32, shape);
  std::copy(tokens.begin(), tokens.end(), padded.as<int32_t>().begin());
  if (absl::Status status = program->setInput("tokens", std::move(padded)); !status.ok())
    return status;
  if (program->hasInput("doc_start"))
    if (absl::Status status = program->setInput("doc_start", std::move(starts)); !status.ok())
      return status;
  if (absl::Status status = program->run(); !status.ok())
    return status;
  std::map<std::string, Tensor> outputs;
  for (const Port &port : program->program().results) {
    absl::StatusOr<const Tensor *> value = program->result(port.name);
    if (!value.ok())
      return value.status();
    const bool byPosition = port.shape.size() >= 2 && port.shape[0] == shape[0] && port.shape[1] == shape[1];
    outputs[port.name] = byPosition ? firstRow(**value, count) : **value;
  }
  return outputs;
}

} // namespace weft::rt
