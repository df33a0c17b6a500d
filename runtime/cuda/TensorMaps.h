//===- TensorMaps.h - What the GPU's tensor copies read ---------*- C++ -*-===//
#pragma once

#include "runtime/cuda/Gpu.h"

namespace weft::rt::cuda {

/// `map` on memory at `base`, as a kernel takes it (cuTensorMapEncodeTiled): no
/// interleaving, element strides of 1, zeros outside the tensor. Errors:
/// InvalidArgument names `kernel`, the map's number and what is wrong with it.
absl::StatusOr<EncodedTensorMap> encodeTensorMap(const Driver &driver, const TensorMap &map,
                                                 DevicePointer base, const std::string &kernel,
                                                 size_t number);

} // namespace weft::rt::cuda
