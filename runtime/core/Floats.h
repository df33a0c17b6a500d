//===- Floats.h - Elements of tensors as numbers ----------------*- C++ -*-===//
#pragma once

#include "runtime/Tensor.h"

namespace weft::rt {

/// Element `index` of a tensor of any type.
double floatAt(const Tensor &tensor, int64_t index);

} // namespace weft::rt
