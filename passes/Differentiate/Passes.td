//===- Passes.td - From a forward function to programs ---------------------===//
#ifndef WEFT_DIFFERENTIATE_PASSES_TD
#define WEFT_DIFFERENTIATE_PASSES_TD

include "mlir/Pass/PassBase.td"

class WeftPass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::weft::WeftDialect", "::mlir::func::FuncDialect"];
}

def Simplify : WeftPass<"simplify"> {
  let summary = "removes what constants make idle: x * 1, x + 0, 0 * x, sums over nothing";
  let description = [{
    Works on functions, in one walk, then erases what nothing uses.

    Needs: unrolled functions. Gives: the same values, but that 0 * x is 0 for
    every x: a branch that settings switch off leaves nothing behind, not even a
    NaN. Cost: one walk.

    Example: `%k = weft.constant {value = 1.0 : f64} : tensor<f32>` and
    `weft.binary mul %k, %x` become `%x`.

    Tests: `test/passes/Differentiate/simplify.mlir`.
  }];
}

def FormLossHead : WeftPass<"form-loss-head"> {
  let summary = "makes product and cross entropy one op, so that logits are never whole";
  let description = [{
    The loss must be linear in sums over counted targets, since the recipe
    divides it by their count: cross_entropy ops joined by add, sub, neg, and mul
    and div by constants. Anything else is an error that names the op. A
    cross_entropy over `contract(x, table)` becomes `weft.loss_head`; the product
    stays where an output uses it. One that can't be formed stays as it was, with
    a remark that says why.

    Needs: `@forward` with a result called `loss` (without one, does nothing).
    Gives: the same values. Cost: the product is computed twice where an output
    of the same program uses it.

    Example: `%l = weft.contract %x, %embed`, `weft.cross_entropy %l, %targets`
    become `weft.loss_head %x, %embed, %targets`.

    Tests: `test/passes/Differentiate/form-loss-head.mlir`.
  }];
}

def FormPrograms : WeftPass<"form-programs"> {
  let summary = "makes the programs that a command runs out of @forward";
  let description = [{
    micro(inputs of @forward) -> loss_sum: forward alone, for `differentiate`.
    With dropout it has one input more, `noise : tensor<i32>`.
    eval(inputs) -> loss_sum, prefill(inputs but targets) -> outputs: dropout is
    the identity. decode(the inputs of one row and position, offset : tensor<i32>)
    -> logits: keys and values go through caches. calibrate(inputs but targets)
    -> `SITE.q`, `SITE.k`, `SITE.v` of every attend, calibrate_branch(those,
    `SITE.mixed`) -> `SITE.out`, `SITE.stream`, `SITE.replaced`, calibrate_gradient(inputs) ->
    loss_sum and, after `differentiate`, `SITE.gate`; calibrate_statistics(those of
    calibrate, documents, reach, `SITE.a`, `SITE.r`, `SITE.z`) -> `SITE.columns`,
    `SITE.diagonals`, `SITE.sums`: all as eval.
    update(inverse_count, hyper.0,
    ...) -> grad_norm: clips, steps each group by AdamW or Muon, zeroes the gradients.

    A parameter is trained when the loss depends on it and, where the module has
    `weft.groups`, a group names it; each trained one gets the state entries
    `grad/PATH`, and `adamw.m/PATH` and `adamw.v/PATH`, or `muon.m/PATH`. update
    needs `weft.groups = [{beta1, beta2, eps, decay, params = ["embed", ...]}, ...]`,
    or `{kind = "muon", momentum, decay, nesterov, iterations, params}`, and takes
    `weft.clip : f64` (absent or 0: no clipping). Muon steps a parameter as the
    matrix [in, out] or [out, in]: axes that @forward's products sum go in. The
    step is multiplied by sqrt(max(1, out / in)).

    Needs: unrolled, typed `@forward`. Gives: the programs asked for; `@forward`
    is gone. Cost: one clone a program.

    Example: `form-programs{programs=micro,update}`.

    Tests: `test/passes/Differentiate/form-programs.mlir`.
  }];
  let options = [
    ListOption<"programs", "programs", "std::string", "programs to make: micro, update, eval, prefill, decode, calibrate, calibrate_branch, calibrate_gradient, calibrate_statistics">,
    Option<"cacheLength", "cache-length", "int64_t", "0",
           "positions that decode's caches hold (0: those that @forward is compiled for)">,
    Option<"lastPosition", "last-position", "bool", "false",
           "prefill gives its outputs at the last position alone, and computes what they need">,
  ];
}

def Differentiate : WeftPass<"differentiate"> {
  let summary = "adds the gradients of @micro's loss to the state";
  let description = [{
    Reverse mode. Every op on the way from a trained parameter (one with an entry
    `grad/PATH`) to the loss builds its own gradient; several gradients of one
    value are summed in the reverse order of its uses. Then `grad/PATH` = old +
    gradient. An op without a gradient is an error that names it. The loss comes
    from the op that computes the gradient too, where there is one.

    Needs: `@micro` and gradient states by `form-programs`. Gives: the same
    `loss_sum`. Cost: linear in ops.

    Example: `%w = weft.get @w` used by `weft.contract %x, %w` gives
    `weft.get @"grad/w"`, `weft.contract %x, %dy`, `weft.binary add`, `weft.set @"grad/w"`.

    Tests: `test/passes/Differentiate/differentiate.mlir`.
  }];
}

def FormObserve : WeftPass<"form-observe"> {
  let summary = "makes @observe, the program of a control step, out of @micro";
  let description = [{
    observe(inputs of micro) -> loss_sum: @micro and, for each attend that reads
    its windows from `control/windows/SITE`, entropies of its rows, and
    `weft.head_statistics` added to the state entry `control/statistics/SITE`,
    [heads, 12]. Rows of slots behind the data are left out, by `targets`.

    Needs: @micro, differentiated. Gives: the gradients of @micro, bit for bit.
    Cost: a product and a sum for each pair of those attends, and one pass over
    what they read and write.

    Example: `weft.set @"control/statistics/attn"` behind the sets of gradients.

    Tests: `test/passes/Differentiate/form-observe.mlir`.
  }];
}

def FoldAccumulations : WeftPass<"fold-accumulations"> {
  let summary = "adds in place: sums of products become products with `init`";
  let description = [{
    A tree of adds whose inner sums have one use is one sum. A state's gradient
    and then contract, sum_to, gather_grad and loss_head_grad in order of
    execution form a chain through their `init`; what else there is gets added at
    the end. Tied tables: old -> loss_head_grad -> gather_grad.

    Needs: functions after `differentiate`. Gives: the same sums in another
    order. Cost: linear in ops.

    Example: `weft.binary add %old, %g` with `%g = weft.contract %x, %dy` becomes
    `weft.contract %x, %dy init %old`.

    With `residuals`, a product also takes an earlier term of its sum as `init`:
    for products that read what they add to (beta = 1) at no cost.

    Tests: `test/passes/Differentiate/fold-accumulations.mlir`.
  }];
  let options = [Option<"residuals", "residuals", "bool", "false", "start from an earlier term that is no product">];
}

def ExpandPolar : WeftPass<"expand-polar"> {
  let summary = "writes Newton-Schulz steps as products and elementwise ops";
  let description = [{
    Each `weft.polar` becomes its norm, a division, and for each iteration three
    products (`weft.contract`) and scalings. Of y and its transpose the one with
    the shorter rows is squared; sides are told apart by `weft.reshape`.

    Needs: static sizes. Gives: no `weft.polar`. Cost: linear in iterations.

    Example: `weft.polar %x iterations 5`.

    Tests: `test/passes/Differentiate/expand-polar.mlir`.
  }];
}

#endif // WEFT_DIFFERENTIATE_PASSES_TD
