//===- EmitItems.cpp - Numbers of items, and cells ------------------------===//

#include "passes/Tile/Emitter.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace weft::tile {

constexpr unsigned kGlobalSpace = 1;

Value KernelEmitter::itemCounter() {
  std::string name = ("next_item_" + kernel.getSymName()).str();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(builder, loc, builder.getI32Type(), /*isConstant=*/false, LLVM::Linkage::Internal,
                           name, builder.getI32IntegerAttr(0), /*alignment=*/4, kGlobalSpace);
  }
  return LLVM::AddressOfOp::create(builder, loc,
                                   LLVM::LLVMPointerType::get(builder.getContext(), kGlobalSpace), name);
}

/// Each CTA fetches one number that is no item, so the largest of a launch is items + CTAs - 1: behind it
/// the counter wraps to 0.
void KernelEmitter::emit(NextItemOp op) {
  Value ctas = NVVM::GridDimXOp::create(builder, loc, builder.getI32Type());
  Value largest = add(ctas, i32(static_cast<int64_t>(kernel.getItems()) - 1));
  set(op, {LLVM::AtomicRMWOp::create(builder, loc, LLVM::AtomicBinOp::uinc_wrap, itemCounter(), largest,
                                     LLVM::AtomicOrdering::monotonic, StringRef("device"))});
}

Value KernelEmitter::cellAddress(Value cells, Value index) { return add(one(cells), shift(one(index), -2)); }

void KernelEmitter::emit(WriteOp op) {
  assembly("st.shared.b32 [$0], $1;", "r,r", {cellAddress(op.getCells(), op.getIndex()), one(op.getValue())},
           {});
}

/// Lane 0 reads for its warp: ptxas knows then that the number is the same in a warp, and who
/// reads is who arrives afterwards, which is all the order that racecheck knows of.
void KernelEmitter::emit(ReadOp op) {
  Type type = builder.getI32Type();
  Value number = assembly("{ .reg .pred first; setp.eq.s32 first, $2, 0; mov.b32 $0, 0; "
                          "@first ld.shared.b32 $0, [$1]; }",
                          "=&r,r,r", {cellAddress(op.getCells(), op.getIndex()), lane}, {type})
                     .front();
  set(op, {NVVM::ShflOp::create(builder, loc, type, i32(-1), number, i32(0), i32(31), NVVM::ShflKind::idx,
                                UnitAttr())});
}

} // namespace weft::tile
