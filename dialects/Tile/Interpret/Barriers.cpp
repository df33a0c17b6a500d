//===- Barriers.cpp - Memory barriers and named barriers ------------------===//

#include "dialects/Tile/Interpret/State.h"

#include "absl/strings/str_cat.h"

using namespace mlir;

namespace weft::tile {

/// What an arrival of the whole warpgroup shows to those who wait; of one thread: what that thread may count on
/// and wrote into cells.
Clock Cta::published(const Warpgroup &w) const {
  Clock clock = w.clock;
  clock[sources.thread(w.index)] = w.threadWrites;
  if (w.elected())
    return clock;
  clock[sources.plain(w.index)] = w.now;
  clock[sources.fenced(w.index)] = w.fenced;
  clock[sources.copies(w.index)] = w.copiesEnded;
  clock[sources.shown(w.index)] = w.copiesShown;
  return clock;
}

absl::StatusOr<size_t> Cta::barrierOf(Warpgroup &w, Operation *op, mlir::Value value, mlir::Value index) {
  int64_t count = cast<BarriersType>(value.getType()).getCount(), place = integer(w, index);
  if (place < 0 || place >= count)
    return fault(kOutOfTile, op, absl::StrCat("barrier ", place, " of ", count));
  size_t barrier = at(w, value).index + static_cast<size_t>(place);
  const MemoryBarrier &state = barriers[barrier];
  if (isa<InitBarrierOp>(op) || !schedule.judge)
    return barrier;
  if (state.initialised == 0)
    return fault(kMissingWait, op,
                 absl::StrCat("barrier ", barrier, " has no count yet: tile.init_barrier first"));
  bool sameThread = w.elected() && w.index == state.initialiser && w.electNumber == state.electNumber;
  if (!sameThread && w.clock[sources.plain(state.initialiser)] < state.initialised)
    return fault(kMissingWait, op,
                 absl::StrCat("warpgroup ", w.index, " may not see yet that barrier ", barrier,
                              " has a count: put tile.sync of all between"));
  if (!state.fenced && isa<LoadTileOp, LoadBulkOp>(op))
    return fault(kMissingFence, op,
                 absl::StrCat("copies may not see yet that barrier ", barrier,
                              " has a count: put tile.fence_init after tile.init_barrier"));
  return barrier;
}

/// All have arrived and all bytes have come: the phase ends.
absl::Status Cta::tryEnd(Operation *op, MemoryBarrier &barrier) {
  auto place = static_cast<size_t>(&barrier - barriers.data());
  if (barrier.pending != 0)
    return absl::OkStatus();
  if (barrier.bytes < 0)
    return fault(kBytesDiffer, op,
                 absl::StrCat("copies brought ", -barrier.bytes, " bytes more to barrier ", place,
                              " than were expected"));
  if (barrier.bytes > 0)
    return absl::OkStatus();
  ++barrier.phases;
  barrier.pending = barrier.count;
  barrier.ended = barrier.gathering;
  barrier.ended[sources.phases(place)] = barrier.phases;
  barrier.gathering = Clock(sources.count());
  return absl::OkStatus();
}

absl::Status Cta::arrive(Warpgroup &w, Operation *op, size_t place, int64_t arrivals, int64_t bytes) {
  MemoryBarrier &barrier = barriers[place];
  if (arrivals > barrier.pending)
    return fault(kWrongParity, op,
                 absl::StrCat(arrivals, " arrivals at barrier ", place, ", whose phase ", barrier.phases,
                              " lacks only ", barrier.pending, " of ", barrier.count));
  barrier.gathering.join(published(w));
  if (!w.elected())
    ++w.now;
  barrier.pending -= arrivals;
  barrier.bytes += bytes;
  return tryEnd(op, barrier);
}

absl::Status Cta::wait(Warpgroup &w, WaitOp op) {
  absl::StatusOr<size_t> barrier = barrierOf(w, op, op.getBarriers(), op.getIndex());
  if (!barrier.ok())
    return barrier.status();
  w.barrier = *barrier;
  w.parity = integer(w, op.getParity());
  w.waitOp = op;
  w.waits = Waits::Barrier;
  if (w.parity != 0 && w.parity != 1)
    return fault(kWrongParity, op, absl::StrCat("parity ", w.parity, " is neither 0 nor 1"));
  return canRun(w) ? passBarrier(w) : absl::OkStatus();
}

absl::Status Cta::passBarrier(Warpgroup &w) {
  const MemoryBarrier &barrier = barriers[w.barrier];
  int64_t phase = barrier.phases - 1;
  int64_t &last = (w.elected() ? w.waitedElected : w.waited)[w.barrier];
  if (schedule.judge && phase <= last)
    return fault(kWrongParity, w.waitOp,
                 absl::StrCat("parity ", w.parity, " passes barrier ", w.barrier, " by phase ", phase,
                              ", which warpgroup ", w.index, " has waited for before"));
  last = phase;
  w.clock.join(barrier.ended);
  w.waits = Waits::No;
  return absl::OkStatus();
}

/// After a named barrier all threads know what each of them did.
void Cta::synced(Warpgroup &w, const Clock &other) {
  w.clock.join(other);
  w.waits = Waits::No;
}

absl::Status Cta::meet(Warpgroup &w, Operation *op, int64_t id, int64_t threads, bool stays) {
  if (id < 0 || id > 15)
    return fault(kOutOfTile, op, absl::StrCat("named barrier ", id, " of 16"));
  NamedBarrier &barrier = named[id];
  if (barrier.arrived == 0)
    barrier.threads = threads, barrier.gathering = Clock(sources.count());
  if (barrier.threads != threads)
    return fault(kDeadlock, op,
                 absl::StrCat("named barrier ", id, " gathers ", barrier.threads,
                              " threads, but this one names ", threads));
  barrier.gathering.join(published(w));
  ++w.now;
  barrier.arrived += KernelOp::kWarpgroupThreads;
  if (stays) {
    barrier.waiting.push_back(w.index);
    w.waits = Waits::Named;
    w.barrier = static_cast<size_t>(id);
    w.waitOp = op;
  }
  if (barrier.arrived < threads)
    return absl::OkStatus();
  if (barrier.arrived > threads)
    return fault(kDeadlock, op, absl::StrCat("more than ", threads, " threads at named barrier ", id));
  for (size_t waiter : barrier.waiting)
    synced(warpgroups[waiter], barrier.gathering);
  barrier.waiting.clear();
  barrier.arrived = 0;
  return absl::OkStatus();
}

absl::Status Cta::performBarrier(Warpgroup &w, Operation *op) {
  if (isa<FenceInitOp>(op)) {
    for (MemoryBarrier &barrier : barriers)
      barrier.fenced |=
          barrier.initialised != 0 && barrier.initialiser == w.index && barrier.electNumber == w.electNumber;
    return absl::OkStatus();
  }
  if (isa<FenceAsyncOp>(op)) {
    // One thread's fence says nothing about what the others wrote.
    if (!w.elected())
      w.fenced = w.now++, w.copiesShown = w.copiesEnded;
    return absl::OkStatus();
  }
  if (auto sync = dyn_cast<SyncOp>(op))
    return meet(w, op, integer(w, sync.getId()), static_cast<int64_t>(sync.getThreads()), true);
  if (auto arrival = dyn_cast<SyncArriveOp>(op))
    return meet(w, op, integer(w, arrival.getId()), static_cast<int64_t>(arrival.getThreads()), false);
  if (auto waits = dyn_cast<WaitOp>(op))
    return wait(w, waits);
  absl::StatusOr<size_t> place = barrierOf(w, op, op->getOperand(0), op->getOperand(1));
  if (!place.ok())
    return place.status();
  if (auto expect = dyn_cast<ExpectOp>(op))
    return arrive(w, op, *place, 1, static_cast<int64_t>(expect.getBytes()));
  if (isa<ArriveOp>(op))
    return arrive(w, op, *place, w.elected() ? 1 : ArriveOp::kWarps, 0);
  auto init = cast<InitBarrierOp>(op);
  MemoryBarrier &barrier = barriers[*place];
  if (schedule.judge && barrier.initialised != 0)
    return fault(kWrittenTwice, op, absl::StrCat("barrier ", *place, " has a count already"));
  barrier.count = barrier.pending = static_cast<int64_t>(init.getCount());
  barrier.initialiser = w.index, barrier.initialised = w.now, barrier.electNumber = w.electNumber;
  return absl::OkStatus();
}

} // namespace weft::tile
