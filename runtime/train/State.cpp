//===- State.cpp - Filling the state of a machine ---------------*- C++ -*-===//
#include "runtime/train/State.h"

#include "runtime/core/Initialize.h"
#include "runtime/core/Slices.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::rt {

namespace {

/// Parameters, if they are wanted, tables and control entries.
absl::Status fill(Machine &machine, uint64_t seed, bool parameters) {
  // One block serves all entries: memory that was touched before costs a tenth of new pages.
  Tensor whole;
  for (const StateEntry &entry : machine.executable().states) {
    if (entry.role != StateEntry::Role::Table && !(parameters && entry.role == StateEntry::Role::Parameter))
      continue;
    // A slice starts as it does in the whole: heads that a plan leaves start alike.
    whole.type = entry.type;
    whole.shape = wholeShape(entry);
    whole.bytes.resize(static_cast<size_t>(whole.elements()) * sizeOf(whole.type));
    if (absl::Status status = initialize(whole, entry.init, entry.name, seed); !status.ok())
      return absl::Status(status.code(), absl::StrCat("'", entry.name, "': ", status.message()));
    absl::Status status;
    if (entry.fullShape.empty()) {
      status = machine.writeState(entry.name, whole);
    } else {
      absl::StatusOr<Tensor> value = sliceFor(entry, whole);
      status = value.ok() ? machine.writeState(entry.name, *value) : value.status();
    }
    if (!status.ok())
      return status;
  }
  for (const StateEntry &entry : machine.executable().states)
    if (entry.role == StateEntry::Role::Control)
      if (absl::Status status = startControl(machine, entry); !status.ok())
        return status;
  return absl::OkStatus();
}

} // namespace

absl::Status initializeState(Machine &machine, uint64_t seed) { return fill(machine, seed, true); }

absl::Status initializeTables(Machine &machine) { return fill(machine, 0, false); }

absl::Status startControl(Machine &machine, const StateEntry &entry) {
  Tensor value(entry.type, entry.shape);
  if (entry.type == ElementType::I32)
    std::ranges::fill(value.as<int32_t>(), static_cast<int32_t>(entry.init.a));
  else if (absl::Status status = initialize(value, entry.init, entry.name, 0); !status.ok())
    return status;
  return machine.writeState(entry.name, value);
}

absl::Status zeroState(Machine &machine, StateEntry::Role role) {
  for (const StateEntry &entry : machine.executable().states)
    if (entry.role == role)
      if (absl::Status status = machine.writeState(entry.name, Tensor(entry.type, entry.shape)); !status.ok())
        return status;
  return absl::OkStatus();
}

} // namespace weft::rt
