//===- Floats.h - Elements of tensors as numbers ----------------*- C++ -*-===//
#pragma once

#include "runtime/Tensor.h"

namespace weft::rt {

/// Element `index` of a tensor of any type.
double floatAt(const Tensor &tensor, int64_t index);

/// `tensor` with elements of `type`, F32 or F64; numbers are rounded to nearest.
Tensor asType(const Tensor &tensor, ElementType type);

} // namespace weft::rt
