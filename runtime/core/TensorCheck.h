//===- TensorCheck.h - Do tensors fit what takes them? ----------*- C++ -*-===//
#pragma once

#include "runtime/Executable.h"

#include <span>

namespace weft::rt {

/// Whether `tensor` has `type`, `shape` and their bytes. Errors: InvalidArgument
/// `WHAT NAME: expected ..., found ...`.
absl::Status checkTensor(const Tensor &tensor, ElementType type, const std::vector<int64_t> &shape,
                         std::string_view what, const std::string &name);

/// Whether tensors fit the ports of `program`. Errors: InvalidArgument.
absl::Status checkTensors(const Program &program, std::span<const Tensor> inputs,
                          std::span<const Tensor> results);

} // namespace weft::rt
