//===- Passes.td - From tiles to the LLVM dialect ---------------------------===//
include "mlir/Pass/PassBase.td"

def LowerTilePass : Pass<"weft-lower-tile", "::mlir::ModuleOp"> {
  let summary = "write kernels of tiles as functions of one thread in the LLVM and NVVM dialects";
  let description = [{
    Each fragment becomes scalars, each product an instruction of wgmma or mma.sync
    for 16 channels, with its accumulators tied to its results; a fence and a wait
    take the registers that they order through themselves.

    - Needs: a module of `tile.kernel`.
    - Gives: one `llvm.func` with `nvvm.kernel` for each.
    - Cost: as many scalars as a thread holds elements, in each op.
    - Example: `test/passes/Tile/lower-tile.mlir`.
  }];
  let options = [Option<"chip", "chip", "std::string", "\"sm_90a\"", "the GPU: sm_90a or sm_80">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::cf::ControlFlowDialect"];
}
