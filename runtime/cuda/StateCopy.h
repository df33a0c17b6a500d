//===- StateCopy.h - State between machines on one GPU ----------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"

namespace weft::rt {

/// Makes the entry called `name` of `to` what `from` holds of it, or with a null `from`
/// zero, without a way over the host. False, and nothing is done, unless both are CUDA
/// machines on one device whose entries have one type, shape and slices. Errors: of the
/// driver; NotFound.
absl::StatusOr<bool> copyStateOnDevice(const Machine *from, Machine &to, std::string_view name);

} // namespace weft::rt
