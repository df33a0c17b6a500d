//===- Passes.td - What gradients find saved -------------------------------===//
include "mlir/Pass/PassBase.td"

def RecomputePass : Pass<"weft-recompute", "::mlir::ModuleOp"> {
  let summary = "make again, before its first use in the gradients, what is cheap to make";
  let description = [{
    A launch's result that is made before the loss and read after it is saved.
    By `policy` a saved value is given up: launches that compute it are put again
    right before the first launch after the loss that reads it, and read what is
    still saved. `fast` gives up nothing. `lean` gives up results of elementwise
    and row kernels, as long as making one again moves at most 8 bytes for each
    that it frees. `tight` also gives up products (of matrices, and of fixed
    patterns), as long as a freed byte costs at most 4 times the operations that a
    saved byte costs on average: forward products over saved bytes. Attention and
    its log-sums are always saved.

    A region of several results is cut: what makes the wanted ones, from operands
    or from results that are still saved. Chains are made again together and are
    priced as a whole. Same kernels on the same values give the same bits; where a
    region kept a value in registers that is saved in bf16, the cut reads the
    rounded one.

    - Needs: `weft-outline-kernels`, and all that renames kernels.
    - Gives: fewer bytes alive at the loss; the same values.
    - Cost: one walk a program with gradients; one kernel printed a cut.
    - Example: `test/passes/Recompute/recompute.mlir`.
  }];
  let options = [Option<"policy", "policy", "std::string", "\"lean\"", "fast, lean or tight">,
                 Option<"enough", "enough", "int64_t", "0",
                        "of tight: no more products once they free so many bytes; 0: all that are worth it">];
}
