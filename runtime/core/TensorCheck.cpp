//===- TensorCheck.cpp ----------------------------------------------------===//
#include "runtime/core/TensorCheck.h"

#include "runtime/core/ExecutableCheck.h"

#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

std::string typeText(ElementType type, const std::vector<int64_t> &shape) {
  std::string text(nameOf(type));
  text += "[";
  for (size_t i = 0; i < shape.size(); ++i)
    absl::StrAppend(&text, i ? ", " : "", shape[i]);
  return text + "]";
}

} // namespace

absl::Status checkTensor(const Tensor &tensor, ElementType type, const std::vector<int64_t> &shape,
                         std::string_view what, const std::string &name) {
  if (tensor.type != type || tensor.shape != shape)
    return absl::InvalidArgumentError(absl::StrCat(std::string(what), " ", name, ": expected ",
                                                   typeText(type, shape), ", found ",
                                                   typeText(tensor.type, tensor.shape)));
  if (uint64_t bytes = *denseBytes(type, shape); tensor.bytes.size() != bytes)
    return absl::InvalidArgumentError(absl::StrCat(std::string(what), " ", name, ": expected ", bytes,
                                                   " bytes, found ", tensor.bytes.size()));
  return absl::OkStatus();
}

absl::Status checkTensors(const Program &program, std::span<const Tensor> inputs,
                          std::span<const Tensor> results) {
  if (inputs.size() != program.inputs.size() || results.size() != program.results.size())
    return absl::InvalidArgumentError(
        absl::StrCat("program ", program.name, ": expected ", program.inputs.size(), " inputs and ",
                     program.results.size(), " results, found ", inputs.size(), " and ", results.size()));
  auto check = [](std::span<const Tensor> tensors, const std::vector<Port> &ports, std::string_view what) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (absl::Status status = checkTensor(tensors[i], ports[i].type, ports[i].shape, what, ports[i].name);
          !status.ok())
        return status;
    return absl::OkStatus();
  };
  if (absl::Status status = check(inputs, program.inputs, "input"); !status.ok())
    return status;
  return check(results, program.results, "result");
}

} // namespace weft::rt
