//===- OutlineKernels.cpp - Computations become kernels, equal ones once --===//

#include "passes/Fuse/Passes.h"
#include "passes/Fuse/Regions.h"

namespace weft {
#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "passes/Fuse/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

/// What a reader calls the kernel: the op, or the ops of a fused region.
static std::string labelOf(Operation *op) {
  if (auto product = dyn_cast<MixProductOp>(op); product && product.getBack())
    return "mix_product_back"; // timed apart: of other heads, and of another table
  if (!isa<FusedOp>(op))
    return op->getName().stripDialect().str();
  std::string label = "fused";
  StringRef last;
  int parts = 0;
  cast<FusedOp>(op).getBody().walk([&](Operation *inner) {
    StringRef name = inner->getName().stripDialect();
    if (auto unary = dyn_cast<UnaryOp>(inner))
      name = stringifyUnaryFn(unary.getFn());
    if (isa<YieldOp, BinaryOp, ConstantOp>(inner) || name == last || parts == 3)
      return;
    label += "_" + name.str();
    last = name;
    ++parts;
  });
  return label;
}

/// The kernel that computes `op`, its region or itself as body.
static KernelOp makeKernel(OpBuilder &builder, Operation *op, ValueRange operands) {
  auto type = builder.getFunctionType(operands.getTypes(), op->getResultTypes());
  auto fused = dyn_cast<FusedOp>(op);
  auto kernel =
      KernelOp::create(builder, op->getLoc(), builder.getStringAttr("kernel"), TypeAttr::get(type),
                       fused ? fused.getRowsAttr() : builder.getArrayAttr({}),
                       builder.getI64IntegerAttr(fused ? fused.getChunks() : 1), ArrayAttr(), ArrayAttr());
  IRMapping mapping;
  if (fused) {
    fused.getBody().cloneInto(&kernel.getBody(), mapping);
    return kernel;
  }
  Block &body = kernel.getBody().emplaceBlock();
  for (Value operand : operands)
    mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  for (Value operand : op->getOperands())
    if (auto constant = operand.getDefiningOp<ConstantOp>(); constant && !mapping.contains(operand))
      inner.clone(*constant, mapping);
  Operation *clone = inner.clone(*op, mapping);
  YieldOp::create(inner, op->getLoc(), clone->getResults());
  return kernel;
}

namespace {
struct OutlineKernels : weft::impl::OutlineKernelsPassBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder builder(module.getContext());
    llvm::StringMap<std::string> known; // hash to name
    SmallVector<Operation *> computations;
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      for (Operation &op : function.getBody().front())
        if (!isa<GetOp, SetOp, GetFlatOp, SetFlatOp, ConstantOp, ReshapeOp, LaunchOp, func::ReturnOp>(op))
          computations.push_back(&op);
    for (Operation *op : computations)
      outline(module, builder, op, known);
  }

  void outline(ModuleOp module, OpBuilder &builder, Operation *op, llvm::StringMap<std::string> &known) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      if (!operand.getDefiningOp<ConstantOp>() && !llvm::is_contained(operands, operand))
        operands.push_back(operand);
    builder.setInsertionPoint(op->getParentOp());
    KernelOp kernel = makeKernel(builder, op, operands);
    auto [entry, isNew] = known.try_emplace(kernelHash(kernel));
    if (isNew) {
      entry->second = labelOf(op) + "_" + entry->first().take_front(8).str();
      kernel.setSymName(entry->second);
      kernel->setAttr("weft.hash", builder.getStringAttr(entry->first()));
      kernel->moveBefore(*module.getOps<func::FuncOp>().begin());
    } else {
      kernel.erase();
    }
    builder.setInsertionPoint(op);
    auto launch = LaunchOp::create(builder, op->getLoc(), op->getResultTypes(),
                                   FlatSymbolRefAttr::get(builder.getContext(), entry->second), operands);
    op->replaceAllUsesWith(launch.getResults());
    op->erase();
  }
};
} // namespace
