//===- Cta.cpp - Turns of warpgroups --------------------------------------===//

#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

using namespace mlir;

namespace weft::tile {

/// Operations of a warpgroup after which it counts as endless.
static constexpr int64_t kOperationLimit = 200'000'000;

/// NaN that nothing has written.
static Ring emptied(Ring ring, size_t warpgroups) {
  RowState row;
  row.plainReads.assign(warpgroups, 0);
  row.products = row.plainReads;
  ring.rows.assign(static_cast<size_t>(ring.stages * ring.panels * ring.pitch), row);
  ring.data.assign(ring.rows.size() * static_cast<size_t>(ring.width),
                   std::numeric_limits<float>::quiet_NaN());
  return ring;
}

static Ring ringOf(AllocOp op, size_t warpgroups) {
  SmemType type = op.getType();
  return emptied({type.getStages(), type.getPanels(), type.getPitch(), type.panelColumns(), {}, {}, op},
                 warpgroups);
}

/// Cells are a ring of one number a stage, which holds its bits.
static Ring ringOf(AllocCellsOp op, size_t warpgroups) {
  return emptied({op.getType().getCount(), 1, 1, 1, {}, {}, op}, warpgroups);
}

Cta::Cta(KernelOp kernel, const Arguments &arguments, const Schedule &schedule, int64_t number,
         std::vector<std::vector<int32_t>> &writers, Deal &deal)
    : kernel(kernel), arguments(arguments), schedule(schedule), number(number),
      random(schedule.seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(number) + 1), writers(writers),
      deal(deal) {
  kernel.walk([&](Operation *op) {
    asks |= isa<NextItemOp>(op);
    for (mlir::Value result : op->getResults())
      slots.try_emplace(result, slots.size());
    for (Region &region : op->getRegions())
      for (mlir::Value argument : region.getArguments())
        slots.try_emplace(argument, slots.size());
  });
  sources.warpgroups = static_cast<size_t>(kernel.warpgroups());
  for (auto op : kernel.getBody().getOps<AllocBarriersOp>())
    sources.barriers += static_cast<size_t>(op.getType().getCount());
  MemoryBarrier fresh;
  fresh.gathering = fresh.ended = Clock(sources.count());
  barriers.assign(sources.barriers, fresh);
  size_t firstBarrier = 0;
  std::vector<Value> values(slots.size());
  size_t globals = 0, maps = 0;
  for (mlir::Value argument : kernel.getBody().getArguments())
    values[slots[argument]].index = isa<MapType>(argument.getType()) ? maps++ : globals++;
  for (Operation &op : kernel.getBody().front()) {
    if (auto alloc = dyn_cast<AllocOp>(op)) {
      SmemType type = alloc.getType();
      values[slots[alloc.getResult()]].tile = {rings.size(), 0, 0, type.getRows(), 0, type.getPanels()};
      rings.push_back(ringOf(alloc, sources.warpgroups));
    } else if (auto cells = dyn_cast<AllocCellsOp>(op)) {
      values[slots[cells.getResult()]].tile = {rings.size(), 0, 0, 1, 0, 1};
      rings.push_back(ringOf(cells, sources.warpgroups));
    } else if (auto allocBarriers = dyn_cast<AllocBarriersOp>(op)) {
      values[slots[allocBarriers.getResult()]].index = firstBarrier;
      firstBarrier += static_cast<size_t>(allocBarriers.getType().getCount());
    }
  }
  for (size_t i = 0; i < sources.warpgroups; ++i) {
    Warpgroup w;
    w.index = i;
    w.values = values;
    w.clock = Clock(sources.count());
    w.waited.assign(sources.barriers, -2);
    w.waitedElected = w.waited;
    enter(w, kernel.getBody().front());
    warpgroups.push_back(std::move(w));
  }
}

uint64_t Cta::draw(uint64_t below) {
  // SplitMix64.
  uint64_t z = random += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (z ^ z >> 31) % below;
}

absl::Status Cta::run() {
  while (true) {
    llvm::SmallVector<size_t> ready;
    bool done = true;
    for (const Warpgroup &w : warpgroups) {
      done &= w.waits == Waits::Done;
      if (canRun(w))
        ready.push_back(w.index);
    }
    if (done)
      return finish();
    absl::Status status;
    if (ready.empty())
      status = landAwaited();
    else
      status = takeTurn(warpgroups[ready[draw(ready.size())]]);
    if (status.ok() && schedule.effects == Effects::Random)
      status = stirUp();
    if (!status.ok())
      return status;
  }
}

bool Cta::canRun(const Warpgroup &w) const {
  if (w.waits == Waits::Barrier)
    return (barriers[w.barrier].phases & 1) != w.parity;
  return w.waits == Waits::No;
}

/// Some operations, or up to one that waits.
absl::Status Cta::takeTurn(Warpgroup &w) {
  if (w.waits == Waits::Barrier)
    if (absl::Status status = passBarrier(w); !status.ok())
      return status;
  for (uint64_t left = 1 + draw(24); left > 0 && w.waits == Waits::No; --left)
    if (absl::Status status = step(w); !status.ok())
      return status;
  if (w.operations > kOperationLimit)
    return fault(kDeadlock, kernel,
                 absl::StrCat("warpgroup ", w.index, " ran ", w.operations,
                              " operations without an end; bound its loops"));
  return absl::OkStatus();
}

/// Under Effects::Random: something under way may take effect now.
absl::Status Cta::stirUp() {
  if (!copies.empty() && draw(4) == 0)
    if (absl::Status status = land(draw(copies.size())); !status.ok())
      return status;
  Warpgroup &w = warpgroups[draw(warpgroups.size())];
  if (!w.products.empty() && draw(3) == 0)
    applyProducts(w, w.products[draw(w.products.size())].group);
  if (!w.copies.empty() && draw(3) == 0)
    return applyCopies(w, w.copies[draw(w.copies.size())].group);
  return absl::OkStatus();
}

/// Nobody can go on: a copy has to land, one that somebody waits for if there is one.
absl::Status Cta::landAwaited() {
  llvm::SmallVector<size_t> awaited;
  for (size_t i = 0; i < copies.size(); ++i)
    for (const Warpgroup &w : warpgroups)
      if (w.waits == Waits::Barrier && w.barrier == copies[i].barrier) {
        awaited.push_back(i);
        break;
      }
  if (!awaited.empty())
    return land(awaited[draw(awaited.size())]);
  if (!copies.empty())
    return land(draw(copies.size()));
  return deadlock();
}

absl::Status Cta::deadlock() {
  std::string waits;
  for (const Warpgroup &w : warpgroups) {
    if (w.waits == Waits::Done) {
      absl::StrAppend(&waits, "warpgroup ", w.index, " has ended; ");
      continue;
    }
    if (w.waits == Waits::Named) {
      absl::StrAppend(&waits, "warpgroup ", w.index, " waits at named barrier ", w.barrier, "; ");
      continue;
    }
    const MemoryBarrier &barrier = barriers[w.barrier];
    if (barrier.pending == 0 && barrier.bytes != 0)
      return fault(kBytesDiffer, w.waitOp,
                   absl::StrCat("all have arrived at barrier ", w.barrier, " and no copy is under way, but ",
                                barrier.bytes, " bytes are still expected"));
    absl::StrAppend(&waits, "warpgroup ", w.index, " waits at barrier ", w.barrier, " for parity ", w.parity,
                    ", whose phase ", barrier.phases, " lacks ", barrier.pending, " arrivals and ",
                    barrier.bytes, " bytes; ");
  }
  Operation *at = kernel;
  for (const Warpgroup &w : warpgroups)
    if (w.waitOp && w.waits != Waits::Done)
      at = w.waitOp;
  waits.resize(waits.size() - 2);
  return fault(kDeadlock, at, waits);
}

absl::Status Cta::finish() {
  if (!schedule.judge)
    return absl::OkStatus();
  for (const Warpgroup &w : warpgroups)
    if (!w.products.empty() || !w.copies.empty())
      return fault(kMissingWait, w.products.empty() ? w.copies.front().op : w.products.front().op,
                   absl::StrCat("warpgroup ", w.index, " ends while this is under way"));
  if (!copies.empty())
    return fault(kMissingWait, copies.front().op, "the CTA ends while this copy is under way");
  if (asks && !told)
    return fault(kItemsLeft, kernel,
                 "the CTA ends without the number that says so: tile.next_item would not start from 0 in the "
                 "next launch");
  for (size_t i = 0; i < barriers.size(); ++i)
    if (barriers[i].bytes != 0)
      return fault(kBytesDiffer, kernel,
                   absl::StrCat("barrier ", i, " ends with ", barriers[i].bytes, " bytes expected"));
  return absl::OkStatus();
}

absl::Status Cta::fault(std::string_view name, Operation *op, const std::string &what) const {
  std::string location;
  llvm::raw_string_ostream stream(location);
  op->getLoc().print(stream);
  return absl::FailedPreconditionError(absl::StrCat(absl::string_view(name.data(), name.size()), ": ",
                                                    op->getName().getStringRef().str(), " at ", location,
                                                    " in CTA ", number, ": ", what));
}

absl::StatusOr<RegistersRef> Cta::settled(Warpgroup &w, Operation *op, mlir::Value value) {
  RegistersRef registers = at(w, value).registers;
  bool underWay = registers->writtenBy || registers->readBy;
  if (schedule.judge && (underWay || registers->renamed))
    return fault(kInFlight, op,
                 underWay ? "the operand belongs to products under way: pass it through tile.wait_products "
                            "and use its result"
                          : "tile.wait_products gave the operand a new name: use its result");
  return registers;
}

void Cta::give(Warpgroup &w, mlir::Value value, RegistersRef registers) {
  registers->made = w.operations;
  at(w, value).registers = std::move(registers);
}

} // namespace weft::tile
