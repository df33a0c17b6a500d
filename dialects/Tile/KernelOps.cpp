//===- KernelOps.cpp - Rules of kernels, warpgroups and barriers ----------===//

#include "dialects/Tile/Constraints.h"

using namespace mlir;
using namespace weft::tile;

//===----------------------------------------------------------------------===//
// tile.kernel
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto number = [&](StringRef word, StringAttr name) -> ParseResult {
    int64_t value = 0;
    if (parser.parseKeyword(word) || parser.parseInteger(value))
      return failure();
    result.addAttribute(name, parser.getBuilder().getI64IntegerAttr(value));
    return success();
  };
  StringAttr symbol;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(symbol, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
      number("threads", getThreadsAttrName(result.name)) ||
      number("shared", getSharedAttrName(result.name)) || number("items", getItemsAttrName(result.name)) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") threads " << getThreads() << " shared " << getShared() << " items " << getItems();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getSymNameAttrName(), getThreadsAttrName(),
                                                                 getSharedAttrName(), getItemsAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

int64_t KernelOp::sharedBytes() {
  int64_t bytes = 0;
  for (Operation &op : getBody().front()) {
    int64_t part = 0;
    if (auto alloc = dyn_cast<AllocOp>(op))
      part = alloc.getType().ringBytes();
    else if (auto barriers = dyn_cast<AllocBarriersOp>(op))
      part = barriers.getType().getCount() * 8;
    else if (auto cells = dyn_cast<AllocCellsOp>(op))
      part = cells.getType().getCount() * 4;
    bytes += llvm::alignTo(part, kSharedAlignment);
  }
  return bytes;
}

LogicalResult KernelOp::verify() {
  auto threads = static_cast<int64_t>(getThreads());
  if (threads < kWarpgroupThreads || threads % kWarpgroupThreads != 0 || threads > 1024) // C1
    return emitOpError() << "expects a multiple of 128 threads, at most 1024, but got " << threads;
  bool maps = false;
  for (BlockArgument argument : getBody().getArguments()) { // C2
    bool isMap = isa<MapType>(argument.getType());
    if ((!isMap && !isa<GlobalType>(argument.getType())) || (maps && !isMap))
      return emitOpError() << "expects globals, then maps as parameters, but parameter "
                           << argument.getArgNumber() << " is " << argument.getType();
    maps |= isMap;
  }
  if (static_cast<int64_t>(getItems()) < 1) // C3
    return emitOpError() << "expects at least one item, but got " << static_cast<int64_t>(getItems());
  if (sharedBytes() > static_cast<int64_t>(getShared())) // C4
    return emitOpError() << "expects rings, barriers and cells within " << getShared()
                         << " bytes of shared memory, but they take " << sharedBytes();
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

LogicalResult NextItemOp::verify() { return verifyOneThread(*this); } // C1

LogicalResult ElectOp::verify() {
  Operation *other = nullptr;
  getBody().walk([&](Operation *op) { // C1
    if (isSingleThreadOp(op))
      return WalkResult::advance();
    other = op;
    return WalkResult::interrupt();
  });
  if (!other)
    return success();
  return other->emitOpError()
         << "stands in tile.elect, where one thread acts, but the whole warpgroup does it: "
            "move it outside";
}

LogicalResult SpecializeOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  if (kernel.warpgroups() < 2) // C1
    return emitOpError() << "expects a producer and at least one consumer, but the kernel has one warpgroup";
  auto producer = static_cast<int64_t>(getProducerRegisters());
  auto consumers = static_cast<int64_t>(getConsumerRegisters());
  for (int64_t registers : {producer, consumers})
    if (registers < 24 || registers > 256 || registers % 8 != 0) // C2
      return emitOpError() << "expects a multiple of 8 registers from 24 to 256, but got " << registers;
  // A CTA starts with as many for each thread as 65536 allow, a multiple of 8, and
  // gets no more: a role that asks for what nobody gave back waits for ever.
  int64_t each = 65536 / (KernelOp::kWarpgroupThreads * kernel.warpgroups()) / 8 * 8;
  int64_t all = producer + consumers * (kernel.warpgroups() - 1);
  if (all > each * kernel.warpgroups()) // C3
    return emitOpError() << "expects roles of at most " << each * kernel.warpgroups()
                         << " registers together, which is what the CTA starts with, but got " << all;
  return success();
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

/// mbarrier counts arrivals and bytes in 20 bits.
static constexpr int64_t kBarrierLimit = (1 << 20) - 1;

LogicalResult InitBarrierOp::verify() {
  if (failed(verifyOneThread(*this))) // C1
    return failure();
  auto count = static_cast<int64_t>(getCount());
  if (count < 1 || count > kBarrierLimit) // C2
    return emitOpError() << "expects a count from 1 to " << kBarrierLimit << ", but got " << count;
  return success();
}

LogicalResult FenceInitOp::verify() { return verifyOneThread(*this); } // C1

/// Bytes that the copies after `expect` in its block bring onto the same barrier, up to the next expectation
/// of it; -1 when there is none, or when a region between them may bring some.
static int64_t bytesThatFollow(ExpectOp expect) {
  int64_t bytes = -1;
  auto count = [&](auto copy) {
    if (copy.getBarriers() == expect.getBarriers() && copy.getIndex() == expect.getIndex())
      bytes = std::max<int64_t>(bytes, 0) + copy.getTile().getType().tileBytes();
  };
  for (Operation *op = expect->getNextNode(); op; op = op->getNextNode()) {
    if (auto next = dyn_cast<ExpectOp>(op))
      if (next.getBarriers() == expect.getBarriers() && next.getIndex() == expect.getIndex())
        break;
    if (op->getNumRegions() != 0 && op->walk([](Operation *inner) {
                                        return isa<LoadTileOp, LoadBulkOp>(inner) ? WalkResult::interrupt()
                                                                                  : WalkResult::advance();
                                      }).wasInterrupted())
      return -1;
    if (auto tile = dyn_cast<LoadTileOp>(op))
      count(tile);
    if (auto bulk = dyn_cast<LoadBulkOp>(op))
      count(bulk);
  }
  return bytes;
}

LogicalResult ExpectOp::verify() {
  if (failed(verifyOneThread(*this))) // C1
    return failure();
  auto bytes = static_cast<int64_t>(getBytes());
  if (bytes < 1 || bytes > kBarrierLimit) // C2
    return emitOpError() << "expects from 1 to " << kBarrierLimit << " bytes, but got " << bytes;
  int64_t found = bytesThatFollow(*this);
  if (found >= 0 && found != bytes) // C3
    return emitOpError() << "expects the bytes of the copies that follow onto this barrier, " << found
                         << ", but got " << bytes;
  return success();
}

template <typename NamedBarrierOp> static LogicalResult verifyNamedBarrier(NamedBarrierOp op) {
  auto kernel = op->template getParentOfType<KernelOp>();
  auto threads = static_cast<int64_t>(op.getThreads());
  if (threads < 1 || threads % KernelOp::kWarpgroupThreads != 0 ||
      (kernel && threads > static_cast<int64_t>(kernel.getThreads()))) // C1
    return op.emitOpError() << "expects a multiple of 128 threads, at most the kernel's, but got " << threads;
  return success();
}

LogicalResult SyncOp::verify() { return verifyNamedBarrier(*this); }

LogicalResult SyncArriveOp::verify() { return verifyNamedBarrier(*this); }
