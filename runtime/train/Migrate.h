//===- Migrate.h - State from one executable to the next --------*- C++ -*-===//
//
// Between two phases of a plan the executable changes: frozen and pruned heads
// leave parameters and moments. State goes over by name; an entry that holds
// fewer slices (StateEntry::kept) takes those out of what the old one held, bit
// for bit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Machine.h"

#include <functional>
#include <map>
#include <string>

namespace weft::rt {

/// Writes parameters, moments and control entries of `to`: from `given` (by
/// name) first, then from `from`. Windows of heads that left (`control/windows`)
/// are not taken over where shapes differ: their controller writes them. Moments
/// of a parameter that `from` has not start at zero. Gradients become zero.
/// Errors: FailedPrecondition names an entry of `to` that can't be had, with
/// both shapes, or a slice that `from` no longer holds.
///
/// `mover` is asked first for entries that stay as they are, and with a null machine
/// for those that become zero; what it gives false for goes over the host.
using StateMover =
    std::function<absl::StatusOr<bool>(const Machine *from, Machine &to, std::string_view name)>;
absl::Status migrateState(const Machine &from, Machine &to, const std::map<std::string, Tensor> &given = {},
                          const StateMover &mover = nullptr);

/// What `to` holds of `value`, which `from` holds. Errors: as above.
absl::StatusOr<Tensor> resliced(const StateEntry &from, const Tensor &value, const StateEntry &to);

/// The first `positions` places of each row of a pattern's table [heads, T].
Tensor shortened(const Tensor &table, int64_t positions);

} // namespace weft::rt
