//===- State.h - Filling the state of a machine -----------------*- C++ -*-===//
#pragma once

#include "runtime/Machine.h"

#include <cstdint>

namespace weft::rt {

/// Parameters and tables of a machine that was just made, as their rules say
/// (runtime/core/Initialize.h), control entries as startControl; all else is zero
/// there already. Errors: of the
/// machine or the rule, with the entry's name.
absl::Status initializeState(Machine &machine, uint64_t seed);

/// The same but for parameters, where they come from another machine.
absl::Status initializeTables(Machine &machine);

/// Sets an entry of the role Control to the constant that it starts with.
absl::Status startControl(Machine &machine, const StateEntry &entry);

/// Zeroes the entries of `role`.
absl::Status zeroState(Machine &machine, StateEntry::Role role);

} // namespace weft::rt
