//===- Floats.cpp - Elements of tensors as numbers ------------------------===//
#include "runtime/core/Floats.h"

#include <bit>

namespace weft::rt {

double floatAt(const Tensor &tensor, int64_t index) {
  const auto at = static_cast<size_t>(index);
  switch (tensor.type) {
  case ElementType::F32:
    return tensor.as<float>()[at];
  case ElementType::F64:
    return tensor.as<double>()[at];
  case ElementType::BF16:
    return std::bit_cast<float>(uint32_t{tensor.as<uint16_t>()[at]} << 16);
  case ElementType::I32:
    return tensor.as<int32_t>()[at];
  case ElementType::I64:
    return static_cast<double>(tensor.as<int64_t>()[at]);
  }
  return 0;
}

Tensor asType(const Tensor &tensor, ElementType type) {
  if (tensor.type == type)
    return tensor;
  Tensor result(type, tensor.shape);
  for (int64_t i = 0; i < tensor.elements(); ++i)
    if (type == ElementType::F64)
      result.as<double>()[static_cast<size_t>(i)] = floatAt(tensor, i);
    else
      result.as<float>()[static_cast<size_t>(i)] = static_cast<float>(floatAt(tensor, i));
  return result;
}

} // namespace weft::rt
