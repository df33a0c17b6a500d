//===- Lower.cpp - A tile kernel as a module in the LLVM dialect ----------===//

#include "passes/Tile/Lower.h"

#include "dialects/Tile/Tile.h"
#include "passes/Tile/Emitter.h"
#include "passes/Tile/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace weft {
#define GEN_PASS_DEF_LOWERTILEPASS
#include "passes/Tile/Passes.h.inc"
} // namespace weft

using namespace mlir;

namespace weft {

static void addScalarPasses(OpPassManager &passes) {
  // Equal addresses and constants of neighbouring elements become one.
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

FailureOr<OwningOpRef<ModuleOp>> lowerTileToLLVM(tile::KernelOp kernel, const GpuTarget &target) {
  MLIRContext *context = kernel.getContext();
  context->loadDialect<LLVM::LLVMDialect, NVVM::NVVMDialect, scf::SCFDialect, cf::ControlFlowDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  if (failed(tile::KernelEmitter(kernel, target, *module).emit()))
    return failure();
  PassManager passes(context);
  addScalarPasses(passes);
  if (failed(passes.run(*module)))
    return failure();
  return module;
}

namespace {

struct LowerTilePass : impl::LowerTilePassBase<LowerTilePass> {
  using LowerTilePassBase::LowerTilePassBase;

  void runOnOperation() override {
    GpuTarget target;
    target.chip = chip;
    for (tile::KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>())) {
      // Two symbols of one name can't stand side by side.
      kernel->remove();
      bool fine = succeeded(tile::KernelEmitter(kernel, target, getOperation()).emit());
      kernel->destroy();
      if (!fine)
        return signalPassFailure();
    }
    OpPassManager passes(ModuleOp::getOperationName());
    addScalarPasses(passes);
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
};

} // namespace

} // namespace weft
