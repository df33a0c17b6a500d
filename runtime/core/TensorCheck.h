//===- TensorCheck.h - Do tensors fit what takes them? ----------*- C++ -*-===//
#pragma once

#include "runtime/Executable.h"

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {

/// Whether `tensor` has `type`, `shape` and their bytes. Errors: InvalidArgument
/// `WHAT NAME: expected ..., found ...`.
absl::Status checkTensor(const Tensor &tensor, ElementType type, const std::vector<int64_t> &shape,
                         std::string_view what, const std::string &name);

/// Whether tensors fit the ports of `program`. Errors: InvalidArgument.
absl::Status checkTensors(const Program &program, std::span<const Tensor> inputs,
                          std::span<const Tensor> results);

/// What a machine keeps in `programs` (a map by name of structs with a pointer
/// `program`) under `name`, once the tensors fit its ports. Errors: NotFound names
/// the model; InvalidArgument as checkTensors.
template <typename Programs>
absl::StatusOr<typename Programs::mapped_type *>
programFor(Programs &programs, const std::string &model, std::string_view name,
           std::span<const Tensor> inputs, std::span<const Tensor> results) {
  auto found = programs.find(name);
  if (found == programs.end())
    return absl::NotFoundError(absl::StrCat("model ", model, " has no program '", std::string(name), "'"));
  if (absl::Status status = checkTensors(*found->second.program, inputs, results); !status.ok())
    return status;
  return &found->second;
}

} // namespace weft::rt
