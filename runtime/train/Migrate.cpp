//===- Migrate.cpp - State from one executable to the next ----------------===//
#include "runtime/train/Migrate.h"

#include "runtime/core/Floats.h"
#include "runtime/core/Safetensors.h"
#include "runtime/core/Slices.h"
#include "runtime/train/State.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft::rt {
namespace {

const StateEntry *entryCalled(const Executable &executable, const std::string &name) {
  for (const StateEntry &entry : executable.states)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

/// Slices of the whole tensor that `entry` holds, ascending.
std::vector<int64_t> slicesOf(const StateEntry &entry, const StateEntry &layout) {
  if (!entry.fullShape.empty())
    return entry.kept;
  int64_t count = 1;
  for (int64_t axis = 0; axis < layout.axisCount; ++axis)
    count *= entry.shape[static_cast<size_t>(layout.firstAxis + axis)];
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), int64_t(0));
  return all;
}

absl::Status shapeError(const StateEntry &from, const StateEntry &to) {
  return absl::FailedPreconditionError(
      absl::StrCat("'", to.name, "': the model has shape ", describeShape(wholeShape(to)),
                   ", the state to go on from ", describeShape(wholeShape(from))));
}

bool isWindowOrStatistic(const StateEntry &entry) { return absl::StartsWith(entry.name, "control/"); }

/// By `mover`, if there is one and it can.
absl::StatusOr<bool> moved(const StateMover &mover, const Machine *from, Machine &to,
                           const StateEntry &entry) {
  return mover ? mover(from, to, entry.name) : absl::StatusOr<bool>(false);
}

absl::Status zeroEntry(Machine &to, const StateEntry &entry, const StateMover &mover) {
  absl::StatusOr<bool> done = moved(mover, nullptr, to, entry);
  if (!done.ok() || *done)
    return done.status();
  return to.writeState(entry.name, Tensor(entry.type, entry.shape));
}

absl::Status migrateEntry(const Machine &from, Machine &to, const StateEntry &entry,
                          const StateMover &mover) {
  const StateEntry *old = entryCalled(from.executable(), entry.name);
  if (!old && entry.role == StateEntry::Role::Moment)
    return zeroEntry(to, entry, mover);
  if (isWindowOrStatistic(entry) && (!old || old->shape != entry.shape))
    return startControl(to, entry);
  if (!old)
    return absl::FailedPreconditionError(
        absl::StrCat("'", entry.name, "': the state to go on from has no such entry"));
  if (absl::StatusOr<bool> done = moved(mover, &from, to, entry); !done.ok() || *done)
    return done.status();
  absl::StatusOr<Tensor> value = from.readState(entry.name);
  if (!value.ok())
    return value.status();
  absl::StatusOr<Tensor> part = resliced(*old, *value, entry);
  return part.ok() ? to.writeState(entry.name, *part) : part.status();
}

} // namespace

Tensor shortened(const Tensor &table, int64_t positions) {
  Tensor result(table.type, {table.shape[0], positions});
  const size_t width = sizeOf(table.type), row = static_cast<size_t>(table.shape[1]) * width,
               kept = static_cast<size_t>(positions) * width;
  for (int64_t head = 0; head < table.shape[0]; ++head)
    std::memcpy(result.bytes.data() + static_cast<size_t>(head) * kept,
                table.bytes.data() + static_cast<size_t>(head) * row, kept);
  return result;
}

absl::StatusOr<Tensor> resliced(const StateEntry &from, const Tensor &value, const StateEntry &to) {
  if (absl::StartsWith(to.name, "pattern/") && from.shape.size() == 2 && to.shape.size() == 2 &&
      from.shape[0] == to.shape[0] && to.shape[1] < from.shape[1])
    return shortened(value, to.shape[1]);
  if (wholeShape(from) != wholeShape(to) || from.type != to.type)
    return shapeError(from, to);
  if (from.shape == to.shape && from.kept == to.kept)
    return value;
  const StateEntry &layout = to.fullShape.empty() ? from : to;
  const std::vector<int64_t> held = slicesOf(from, layout), wanted = slicesOf(to, layout);
  size_t outer = 1, inner = sizeOf(to.type);
  for (int64_t axis = 0; axis < layout.firstAxis; ++axis)
    outer *= static_cast<size_t>(layout.fullShape[static_cast<size_t>(axis)]);
  for (size_t axis = static_cast<size_t>(layout.firstAxis + layout.axisCount); axis < layout.fullShape.size();
       ++axis)
    inner *= static_cast<size_t>(layout.fullShape[axis]);
  Tensor result(to.type, to.shape);
  for (size_t n = 0; n < wanted.size(); ++n) {
    auto found = std::find(held.begin(), held.end(), wanted[n]);
    if (found == held.end())
      return absl::FailedPreconditionError(absl::StrCat(
          "'", to.name, "': slice ", wanted[n],
          " left the state with its head: a plan can be added to a checkpoint, never taken away"));
    const auto place = static_cast<size_t>(found - held.begin());
    for (size_t o = 0; o < outer; ++o)
      std::memcpy(result.bytes.data() + (o * wanted.size() + n) * inner,
                  value.bytes.data() + (o * held.size() + place) * inner, inner);
  }
  return result;
}

absl::Status migrateState(const Machine &from, Machine &to, const std::map<std::string, Tensor> &given,
                          const StateMover &mover) {
  for (const StateEntry &entry : to.executable().states) {
    absl::Status status;
    switch (entry.role) {
    case StateEntry::Role::Parameter:
    case StateEntry::Role::Moment:
    case StateEntry::Role::Control:
      if (auto found = given.find(entry.name); found != given.end())
        status = to.writeState(entry.name, asType(found->second, entry.type));
      else
        status = migrateEntry(from, to, entry, mover);
      break;
    case StateEntry::Role::Gradient:
      status = zeroEntry(to, entry, mover);
      break;
    default:
      break;
    }
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace weft::rt
