//===- State.cpp - Filling the state of a machine ---------------*- C++ -*-===//
#include "runtime/train/State.h"

#include "runtime/core/Initialize.h"

#include "absl/strings/str_cat.h"

namespace weft::rt {

absl::Status initializeState(Machine &machine, uint64_t seed) {
  for (const StateEntry &entry : machine.executable().states) {
    if (entry.role != StateEntry::Role::Parameter && entry.role != StateEntry::Role::Table)
      continue;
    Tensor value(entry.type, entry.shape);
    if (absl::Status status = initialize(value, entry.init, entry.name, seed); !status.ok())
      return absl::Status(status.code(), absl::StrCat("'", entry.name, "': ", status.message()));
    if (absl::Status status = machine.writeState(entry.name, value); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status zeroState(Machine &machine, StateEntry::Role role) {
  for (const StateEntry &entry : machine.executable().states)
    if (entry.role == role)
      if (absl::Status status = machine.writeState(entry.name, Tensor(entry.type, entry.shape)); !status.ok())
        return status;
  return absl::OkStatus();
}

} // namespace weft::rt
