//===- State.h - Filling the state of a machine -----------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"

#include <cstdint>

namespace weft::rt {

/// Parameters and tables of a machine that was just made, as their rules say
/// (runtime/core/Initialize.h); all else is zero there already. Errors: of the
/// machine or the rule, with the entry's name.
absl::Status initializeState(Machine &machine, uint64_t seed);

/// Zeroes the entries of `role`.
absl::Status zeroState(Machine &machine, StateEntry::Role role);

} // namespace weft::rt
