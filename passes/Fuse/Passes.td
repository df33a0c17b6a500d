//===- Passes.td - From ops to kernels --------------------------------------===//
include "mlir/Pass/PassBase.td"

def FusePass : Pass<"weft-fuse", "::mlir::ModuleOp"> {
  let summary = "group ops between products into regions that one kernel computes row by row";
  let description = [{
    Joins an op to the regions of its producers, and of other readers of its
    operands, as long as they run over the same rows, no value would have to
    leave a region and come back, and the row values of the region fit the
    budget. Values that only their region reads are never stored.

    - Needs: `weft-split-sums`.
    - Gives: every elementwise or row op stands in a `weft.fused`.
    - Cost: a search for a path for each join, bounded by the ops between.
    - Example: `test/passes/Fuse/fuse.mlir`.
  }];
  let options = [Option<"rowBudget", "row-budget", "int64_t", "262144",
                        "bytes of row values that a region may keep live">,
                 Option<"chunks", "chunks", "int64_t", "32", "most parts of a kernel over rows">,
                 Option<"recompute", "recompute", "bool", "false",
                        "compute a norm again where its operand is read, rather than store it">];
}

def OutlineKernelsPass : Pass<"weft-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "make every computation a launch of a kernel; equal computations share one";
  let description = [{
    A kernel's name is the hash of its printed body, types and attributes:
    locations and labels do not count, so 48 equal layers give as many kernels
    as 12. What differs by layer is an operand.

    - Needs: `weft-fuse`.
    - Gives: functions hold `weft.launch`, state reads and assignments alone.
    - Cost: one print and one hash an op.
    - Example: `test/passes/Fuse/outline-kernels.mlir`.
  }];
}

def StoreInBf16Pass : Pass<"weft-store-in-bf16", "::mlir::ModuleOp"> {
  let summary = "keep activations, and weights as products read them, in 16 bits";
  let description = [{
    For the GPU. Kernels compute in 32 bits; what they read and write of
    activations is bf16, through `weft.convert` at their edges. Parameters,
    their gradients, moments, losses, log-sums and partial sums stay as they
    are; a parameter that a product reads is rounded once a program. Caches are
    bf16. It is lossy: values are rounded to eight bits of mantissa where they
    are stored.

    - Needs: `weft-outline-kernels`.
    - Gives: no product mixes element types; kernels of equal bodies stay one.
    - Cost: one walk, one print a kernel.
    - Example: `test/passes/Fuse/store-in-bf16.mlir`.
  }];
  let options = [Option<"chunks", "chunks", "int64_t", "32", "most parts; as weft-fuse has">];
}

def FoldActivationsPass : Pass<"weft-fold-activations", "::mlir::ModuleOp"> {
  let summary = "products do what follows them element by element";
  let description = [{
    For the GPU. With WEFT_CUDA_PRODUCTS=generated a product in bf16 without `init`
    and the first launch that reads it become one kernel on tiles, where that launch is
    functions of elements: on sm_90a, from 528 tiles of 128 x 256 and 9 steps of 64
    summed columns on, where it reads the product alone and the right factor is
    stored [k, n]. What others read of the product is a result, with `keeps`. The
    function sees the product rounded, as it did.

    Else a product that only `unary_grad gelu_tanh` reads is multiplied by the gradient
    where it is made: what cuBLASLt has an epilogue for, with factors, result and the
    kept value in bf16, without `init`. It is lossy: the gradient sees the product
    before it is rounded. gelu_tanh itself stays a kernel of its own: cuBLASLt's
    epilogue for it takes longer.

    - Needs: `weft-store-in-bf16`.
    - Gives: no launch of its own for such a gradient.
    - Cost: one walk, one kernel tried for each pair of kernels.
    - Example: `test/passes/Fuse/fold-activations.mlir`, `test/passes/Fuse/fold-on-tiles.mlir`.
  }];
  let options = [Option<"chip", "chip", "std::string", "\"sm_90a\"", "the GPU: sm_90a has tiles">,
                 Option<"keeps", "keeps", "bool", "true", "fold on tiles what is kept for later, too">];
}

def TilePatternsPass : Pass<"weft-tile-patterns", "::mlir::ModuleOp"> {
  let summary = "attention by fixed patterns becomes products of tiles that one table holds";
  let description = [{
    For a GPU that has tile kernels for them. `weft.mix` becomes `weft.mix_table`,
    `weft.mix_scale` of the values by exp(a) and `weft.mix_product`, whose rows are
    scaled by 1 / Z; `weft.mix_grad_value` the same the other way round. A pattern
    with an `offset`, or with channels that have no tiles, stays. It is lossy: tiles
    hold exp(r) in bf16, and row sums are those of what they hold, so that a row
    still weighs 1.

    - Needs: static sizes.
    - Gives: one table for a pattern's forward and backward, after CSE.
    - Cost: one walk.
    - Example: `test/passes/Fuse/tile-patterns.mlir`.
  }];
  let options = [Option<"chip", "chip", "std::string", "\"sm_90a\"", "the GPU: sm_90a or sm_80">];
}

def SplitSumsPass : Pass<"weft-split-sums", "::mlir::ModuleOp"> {
  let summary = "sums over all rows become one part a chunk and a sum of the parts in order";
  let description = [{
    Gradients of gains, shifts and gates sum over every token. `weft.sum_to`
    over the rows becomes `weft.partial_sum`, which fuses with what makes its
    operand, and a `weft.sum_to` over the axis `chunk`. The number of chunks
    depends on sizes alone: the result is the same for any number of workers.

    - Needs: static sizes.
    - Gives: no `weft.sum_to` removes `batch` and `pos` from a tensor that has both first.
    - Cost: one walk.
    - Example: `test/passes/Fuse/split-sums.mlir`.
  }];
  let options = [Option<"chunks", "chunks", "int64_t", "32", "most parts; as weft-fuse has">];
}
