//===- PlanMemory.cpp - Give each buffer of the arena its offset ----------===//

#include "passes/Schedule/Buffers.h"
#include "passes/Schedule/Passes.h"

namespace weft {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// A buffer and the calls between which its contents count.
struct Life {
  BufferOp buffer;
  int64_t first, last, bytes, offset = -1;
};

/// What a call that runs beside others touches is its own until the first call that waits
/// for it: the calls by whose side it runs take other memory.
llvm::DenseMap<Operation *, Operation *> joinsOf(ProgramOp program) {
  llvm::DenseMap<Operation *, Operation *> joins;
  Block &body = program.getBody().front();
  for (Operation &op : llvm::reverse(body)) {
    if (!op.hasAttr(kBesideAttr))
      continue;
    Operation *join = &body.back();
    for (Value out : cast<CallOp>(op).getOuts())
      for (Operation *user : out.getUsers()) {
        Operation *waits = user->hasAttr(kBesideAttr) ? joins.lookup(user) : user;
        if (user != &op && waits && op.isBeforeInBlock(user) && waits->isBeforeInBlock(join))
          join = waits;
      }
    joins[&op] = join;
  }
  return joins;
}

SmallVector<Life> livesOf(ProgramOp program) {
  SmallVector<Life> lives;
  llvm::DenseMap<Operation *, size_t> index;
  llvm::DenseMap<Operation *, Operation *> joins = joinsOf(program);
  llvm::DenseMap<Operation *, int64_t> times;
  int64_t time = 0;
  for (Operation &op : program.getBody().front())
    times[&op] = isa<BufferOp, ViewOp>(op) ? time : ++time;
  for (Operation &op : program.getBody().front()) {
    if (isa<BufferOp, ViewOp>(op))
      continue;
    const int64_t time = times[&op];
    Operation *join = joins.lookup(&op);
    for (Value operand : op.getOperands()) {
      BufferOp buffer = bufferOf(operand);
      if (!buffer || buffer.getSpace() != BufferSpace::Arena)
        continue;
      auto [entry, isNew] = index.try_emplace(buffer, lives.size());
      if (isNew)
        lives.push_back(
            {buffer, time, time, static_cast<int64_t>(llvm::alignTo(bytesOf(buffer.getType()), 64))});
      int64_t &last = lives[entry->second].last;
      last = std::max({last, time, join ? times[join] : time});
    }
  }
  return lives;
}

/// The lowest offset at which `life` overlaps no placed buffer alive with it.
int64_t lowestOffset(const Life &life, ArrayRef<Life *> placed) {
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (const Life *other : placed)
    if (other->first <= life.last && life.first <= other->last)
      taken.emplace_back(other->offset, other->offset + other->bytes);
  llvm::sort(taken);
  int64_t offset = 0;
  for (auto [begin, end] : taken) {
    if (offset + life.bytes <= begin)
      break;
    offset = std::max(offset, end);
  }
  return offset;
}

} // namespace

BufferOp weft::bufferOf(Value value) {
  while (auto view = value.getDefiningOp<ViewOp>())
    value = view.getBuffer();
  return value.getDefiningOp<BufferOp>();
}

namespace {

struct PlanMemory : weft::impl::PlanMemoryPassBase<PlanMemory> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      plan(program);
  }

  void plan(ProgramOp program) {
    SmallVector<Life> lives = livesOf(program);
    SmallVector<Life *> order = llvm::map_to_vector(lives, [](Life &life) { return &life; });
    llvm::stable_sort(order, [](Life *a, Life *b) { return a->bytes > b->bytes; });
    SmallVector<Life *> placed;
    int64_t arena = 0;
    for (Life *life : order) {
      life->offset = lowestOffset(*life, placed);
      life->buffer.setOffset(life->offset);
      arena = std::max(arena, life->offset + life->bytes);
      placed.push_back(life);
    }
    program.setArena(arena);
    // A buffer that no call touches has no place and no use.
    for (BufferOp buffer : llvm::make_early_inc_range(program.getBody().front().getOps<BufferOp>()))
      if (buffer->use_empty())
        buffer.erase();
  }
};

} // namespace
