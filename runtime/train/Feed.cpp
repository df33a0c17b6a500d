//===- Feed.cpp - A batch through a program ---------------------*- C++ -*-===//
#include "runtime/train/Feed.h"

#include "absl/strings/str_cat.h"

namespace weft::rt {

absl::Status setBatch(BoundProgram &program, Batch batch) {
  const std::pair<const char *, Tensor *> ports[] = {
      {"tokens", &batch.tokens}, {"targets", &batch.targets}, {"doc_start", &batch.docStart}};
  // A model without attention reads no doc_start, and has no such port.
  for (auto [name, tensor] : ports)
    if (program.hasInput(name))
      if (absl::Status status = program.setInput(name, std::move(*tensor)); !status.ok())
        return status;
  return absl::OkStatus();
}

/// A zero would train as if it were meant.
static absl::Status checkFed(const Program &program) {
  for (const Port &port : program.inputs)
    if (port.name != "tokens" && port.name != "targets" && port.name != "doc_start" && port.name != "noise")
      return absl::UnimplementedError(
          absl::StrCat("the model reads input `", port.name,
                       "`, which data does not give: expected tokens and targets alone; leave it out"));
  return absl::OkStatus();
}

static absl::Status setAll(BoundProgram &program, Batch batch, int32_t noise) {
  if (absl::Status status = checkFed(program.program()); !status.ok())
    return status;
  if (absl::Status status = setBatch(program, std::move(batch)); !status.ok())
    return status;
  if (!program.hasInput("noise"))
    return absl::OkStatus();
  Tensor value(ElementType::I32, {});
  value.as<int32_t>()[0] = noise;
  return program.setInput("noise", std::move(value));
}

absl::Status startOnBatch(BoundProgram &program, Batch batch, int32_t noise, size_t slot) {
  absl::Status status = setAll(program, std::move(batch), noise);
  return status.ok() ? program.start(slot) : status;
}

absl::StatusOr<double> runOnBatch(BoundProgram &program, Batch batch, int32_t noise) {
  if (absl::Status status = setAll(program, std::move(batch), noise); !status.ok())
    return status;
  if (absl::Status status = program.run(); !status.ok())
    return status;
  return program.number("loss_sum");
}

} // namespace weft::rt
