//===- State.h - Filling the state of a machine -----------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"

#include <cstdint>

namespace weft::rt {

/// Every entry as its rule says (runtime/core/Initialize.h); gradients,
/// moments and caches are zeroed. Errors: of the machine or the rule, with the
/// entry's name.
absl::Status initializeState(Machine &machine, uint64_t seed);

/// Zeroes the entries of `role`.
absl::Status zeroState(Machine &machine, StateEntry::Role role);

} // namespace weft::rt
