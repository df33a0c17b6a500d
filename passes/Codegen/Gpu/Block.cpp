//===- Block.cpp - Short words for kernels of thread blocks ---------------===//
#include "passes/Codegen/Gpu/Block.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <limits>

using namespace mlir;

namespace weft {

constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;
using Predicate = arith::CmpIPredicate;

Block::Block(OpBuilder builder, Location loc, const BlockKind &kind, ModuleOp module)
    : e(builder, loc, kind.width), scratchBytes(kind.scratchBytes), threads(kind.threads),
      itemCount(kind.items), module(module) {
  e.approximate = true;
  auto wide = [&](Value x) -> Value { return arith::ExtUIOp::create(e.b, e.loc, e.i64, x); };
  Value number = NVVM::ThreadIdXOp::create(e.b, e.loc, e.i32);
  thread = wide(number);
  lane = wide(e.both(number, e.constantInt(e.i32, kWarp - 1)));
  warp = wide(arith::ShRUIOp::create(e.b, e.loc, number, e.constantInt(e.i32, 5)));
  block = wide(NVVM::BlockIdXOp::create(e.b, e.loc, e.i32));
  blocks = wide(NVVM::GridDimXOp::create(e.b, e.loc, e.i32));
}

void Block::items(function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(e.b, e.loc, block, e.number(itemCount), blocks);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

void Block::barrier() { NVVM::Barrier0Op::create(e.b, e.loc); }

static Value everyLane(Emitter &e) { return e.constantInt(e.i32, -1); }

void Block::warpBarrier() { NVVM::SyncWarpOp::create(e.b, e.loc, everyLane(e)); }

Value Block::exchanged(Value value, int64_t mask) {
  return NVVM::ShflOp::create(e.b, e.loc, value.getType(), everyLane(e), value, e.constantInt(e.i32, mask),
                              e.constantInt(e.i32, kWarp - 1), NVVM::ShflKind::bfly, UnitAttr());
}

Value Block::fromBelow(Value value, int64_t step) {
  return NVVM::ShflOp::create(e.b, e.loc, value.getType(), everyLane(e), value, e.constantInt(e.i32, step),
                              e.constantInt(e.i32, 0), NVVM::ShflKind::up, UnitAttr());
}

static Value folded(Emitter &e, Value x, Value y, bool largest) {
  return largest ? e.larger(x, y) : e.add(x, y);
}

Value Block::overLanes(Value value, int64_t lanes, bool largest) {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
    value = folded(e, value, exchanged(value, mask), largest);
  return value;
}

Value Block::overBlock(Value value, bool largest) {
  value = overLanes(value, kWarp, largest);
  if (threads == kWarp)
    return value;
  if (!partials)
    partials = shared(kWarp);
  barrier();
  e.when(e.compare(Predicate::eq, lane, e.number(0)), [&] { e.store(value, partials, warp); });
  barrier();
  return overLanes(ofWarps(partials, largest ? -std::numeric_limits<double>::infinity() : 0), kWarp, largest);
}

Value Block::ofWarps(Value memory, double outside) {
  Value there = e.compare(Predicate::slt, lane, e.number(threads / kWarp));
  return e.select(there, e.load(e.f32, memory, lane), e.constant(e.f32, outside));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LLVM::GlobalOp Block::declare(Type type, unsigned space, Attribute value, bool constant) {
  OpBuilder b(module.getContext());
  b.setInsertionPointToStart(module.getBody());
  constexpr unsigned kAlignment = 16;
  std::string name = "memory_" + std::to_string(globals++);
  return LLVM::GlobalOp::create(b, e.loc, type, constant, LLVM::Linkage::Internal, name, value, kAlignment,
                                space);
}

Value Block::addressOf(LLVM::GlobalOp global) {
  OpBuilder::InsertionGuard guard(e.b);
  // One address for the whole function, whatever loop asks first.
  Operation *function = e.b.getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  e.b.setInsertionPointToStart(&function->getRegion(0).front());
  Value address = LLVM::AddressOfOp::create(e.b, e.loc, global);
  return LLVM::AddrSpaceCastOp::create(e.b, e.loc, e.ptr, address);
}

Value Block::shared(int64_t count) {
  return addressOf(declare(LLVM::LLVMArrayType::get(e.f32, count), kSharedSpace, {}, false));
}

Value Block::dynamic(int64_t bytes) {
  if (!dynamicGlobal) {
    dynamicGlobal = declare(LLVM::LLVMArrayType::get(e.b.getI8Type(), 0), kSharedSpace, {}, false);
    dynamicGlobal.setLinkage(LLVM::Linkage::External);
  }
  Value start = addressOf(dynamicGlobal);
  if (dynamicBytes > 0)
    start = e.bytesFrom(start, dynamicBytes);
  dynamicBytes += bytes;
  return start;
}

void Block::copy(Value from, Value to) {
  constexpr int kBytes = 16;
  auto inSpace = [&](Value pointer, unsigned space) -> Value {
    return LLVM::AddrSpaceCastOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext(), space),
                                         pointer);
  };
  // Past the first cache: each byte is read once.
  NVVM::CpAsyncOp::create(e.b, e.loc, inSpace(to, kSharedSpace), inSpace(from, kGlobalSpace), kBytes,
                          NVVM::LoadCacheModifierKind::CG, Value());
}

void Block::commitCopies() { NVVM::CpAsyncCommitGroupOp::create(e.b, e.loc); }

void Block::awaitCopies(int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(e.b, e.loc, static_cast<uint32_t>(pending));
}

Value Block::global(Type element, int64_t count) {
  auto type = LLVM::LLVMArrayType::get(element, count);
  return addressOf(declare(type, kGlobalSpace, LLVM::ZeroAttr::get(e.b.getContext()), false));
}

Value Block::table(ArrayRef<int32_t> values) {
  auto type = LLVM::LLVMArrayType::get(e.i32, values.size());
  auto shape = RankedTensorType::get({static_cast<int64_t>(values.size())}, e.i32);
  return addressOf(declare(type, kGlobalSpace, DenseElementsAttr::get(shape, values), true));
}

void Block::last(function_ref<void()> body) {
  Value counter = global(e.i32, 1);
  Value mine = shared(1);
  auto fence = [&] { LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::acq_rel, StringRef("device")); };
  fence();
  barrier();
  Value leader = e.compare(Predicate::eq, thread, e.number(0));
  e.when(leader, [&] {
    Value before =
        LLVM::AtomicRMWOp::create(e.b, e.loc, LLVM::AtomicBinOp::add, counter, e.constantInt(e.i32, 1),
                                  LLVM::AtomicOrdering::acq_rel, StringRef("device"));
    e.store(before, mine);
  });
  barrier();
  Value before = arith::ExtUIOp::create(e.b, e.loc, e.i64, e.load(e.i32, mine));
  e.when(e.compare(Predicate::eq, e.addi(before, 1), blocks), [&] {
    fence();
    body();
    // The next call counts from 0 again.
    e.when(leader, [&] { e.store(e.constantInt(e.i32, 0), counter); });
  });
}

} // namespace weft
