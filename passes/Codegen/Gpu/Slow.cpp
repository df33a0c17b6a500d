//===- Slow.cpp - The CPU's body, one thread a work item ------------------===//
#include "passes/Codegen/Codegen.h"
#include "passes/Codegen/Gpu/Kinds.h"
#include "passes/Codegen/RowProgram.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace weft {

/// Scratch of a block stays below this as long as a thread's does.
constexpr int64_t kScratch = 65536;

static LogicalResult fill(KernelOp kernel, KernelBody &body) {
  if (KernelKind kind = kindOf(kernel); kind.build)
    return kind.build(body);
  auto program = buildRowProgram(kernel);
  if (failed(program))
    return failure();
  body.scratchBytes = program->scratchBytes;
  emitRowProgram(body.e, *program, kernel, body.operands, body.begin, body.end, body.scratch);
  return success();
}

BlockKind slowKind(const BareKernel &bare) {
  KernelOp kernel = bare.kernel;
  BlockKind kind;
  kind.items = gridOf(kernel);
  kind.threads = Block::kWarp;
  kind.build = [kernel, items = kind.items](Block &block) mutable -> LogicalResult {
    Emitter &e = block.e;
    // How many threads a block gets, and where each one's scratch lies, is known at the end.
    Value width = arith::ExtUIOp::create(e.b, e.loc, e.i64, NVVM::BlockDimXOp::create(e.b, e.loc, e.i32));
    auto stride = arith::ConstantOp::create(e.b, e.loc, e.b.getI64IntegerAttr(0));
    Value offset = e.muli(block.thread, stride.getResult());
    Value scratch = LLVM::GEPOp::create(e.b, e.loc, e.ptr, e.b.getI8Type(), block.scratch,
                                        ArrayRef<LLVM::GEPArg>{offset});
    Value first = e.addi(e.muli(block.block, width), block.thread);
    auto loop = scf::ForOp::create(e.b, e.loc, first, e.number(items), e.muli(block.blocks, width));
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    Value item = loop.getInductionVar();
    Value none = LLVM::ZeroOp::create(e.b, e.loc, e.ptr);
    KernelBody body{e, block.operands, item, e.addi(item, 1), none, scratch};
    body.argumentCount = block.argumentCount;
    if (failed(fill(kernel, body)))
      return failure();
    stride.setValueAttr(e.b.getI64IntegerAttr(body.scratchBytes));
    if (body.scratchBytes > 0)
      block.threads = std::clamp<int64_t>(kScratch / body.scratchBytes, 1, Block::kWarp);
    block.scratchBytes = block.threads * body.scratchBytes;
    return success();
  };
  return kind;
}

} // namespace weft
