//===- EmitBarriers.cpp - Memory barriers, named barriers, fences ---------===//
//
// Names and operands: PTX ISA 8.0, "Parallel Synchronization and Communication
// Instructions". Addresses are those of the CTA's own shared memory.
//
//===----------------------------------------------------------------------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <cstdlib>

using namespace mlir;

namespace weft::tile {

Value KernelEmitter::barrierAddress(Value barriers, Value index) {
  return add(one(barriers), shift(one(index), -3));
}

void KernelEmitter::emit(InitBarrierOp op) {
  Value count = i32(static_cast<int64_t>(op.getCount()));
  assembly("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r",
           {barrierAddress(op.getBarriers(), op.getIndex()), count}, {});
}

void KernelEmitter::emit(FenceInitOp) { assembly("fence.mbarrier_init.release.cluster;", "", {}, {}); }

void KernelEmitter::emit(ExpectOp op) {
  Value bytes = i32(static_cast<int64_t>(op.getBytes()));
  assembly("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r",
           {barrierAddress(op.getBarriers(), op.getIndex()), bytes}, {});
}

void KernelEmitter::emit(ArriveOp op) {
  Value address = barrierAddress(op.getBarriers(), op.getIndex());
  if (op->getParentOfType<ElectOp>()) {
    assembly("mbarrier.arrive.shared::cta.b64 _, [$0];", "r", {address}, {});
    return;
  }
  // What all lanes did comes before the arrival of one.
  assembly("bar.warp.sync -1;\n\t"
           "{ .reg .pred first; setp.eq.s32 first, $1, 0; @first mbarrier.arrive.shared::cta.b64 _, [$0]; }",
           "r,r", {address, lane}, {});
}

namespace {

/// A pause of up to 2 us before a wait, other for each warp and time, so that roles meet in orders that
/// they hardly ever meet in: `WEFT_CUDA_JITTER=SEED` when a kernel is compiled. Empty without it.
std::string pauseBeforeWait() {
  const char *text = std::getenv("WEFT_CUDA_JITTER");
  unsigned seed = 0;
  if (!text || StringRef(text).getAsInteger(10, seed))
    return "";
  return ("{ .reg .b32 pause; mov.u32 pause, %clock; xor.b32 pause, pause, " + Twine(seed) +
          "; mul.lo.u32 pause, pause, 0x9E3779B1; shr.u32 pause, pause, 21; nanosleep.u32 pause; }\n\t")
      .str();
}

} // namespace

void KernelEmitter::emit(WaitOp op) {
  // Labels inside the braces are its own, however often the text is repeated.
  assembly(pauseBeforeWait() + "{ .reg .pred done;\n\t"
                               "again: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n\t"
                               "@done bra over;\n\t"
                               "bra again;\n\t"
                               "over: }",
           "r,r", {barrierAddress(op.getBarriers(), op.getIndex()), one(op.getParity())}, {});
}

void KernelEmitter::emitNamedBarrier(StringRef instruction, Value id, int64_t threads) {
  std::string count = std::to_string(threads);
  APInt constant;
  // A number in the text tells ptxas which barriers are used; a register means all 16.
  if (matchPattern(id, m_ConstantInt(&constant)))
    assembly((instruction + " " + std::to_string(constant.getSExtValue()) + ", " + count + ";").str(), "", {},
             {});
  else
    assembly((instruction + " $0, " + count + ";").str(), "r", {one(id)}, {});
}

void KernelEmitter::emit(SyncOp op) {
  emitNamedBarrier("bar.sync", op.getId(), static_cast<int64_t>(op.getThreads()));
}

void KernelEmitter::emit(SyncArriveOp op) {
  emitNamedBarrier("bar.arrive", op.getId(), static_cast<int64_t>(op.getThreads()));
}

void KernelEmitter::emit(FenceAsyncOp) { assembly("fence.proxy.async.shared::cta;", "", {}, {}); }

} // namespace weft::tile
