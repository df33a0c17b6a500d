//===- Passes.td - From kernels to a schedule -------------------------------===//
include "mlir/Pass/PassBase.td"

def LayOutParamsPass : Pass<"weft-lay-out-params", "::mlir::ModuleOp"> {
  let summary = "give every state entry its place";
  let description = [{
    Parameters stand in the order of the optimiser's groups (`weft.groups`), one
    after another, so that a group is one vector for the optimiser; gradients and
    moments repeat that order. Groups, tables and caches start at 64 bytes. The
    gradients' list under `weft.norm` is put into the order of storage.

    - Needs: states of the programs (`weft-form-update`).
    - Gives: an offset for each `weft.state`; `weft.state_bytes` on the module.
    - Cost: one walk.
    - Example: `test/passes/Schedule/lay-out-params.mlir`.
  }];
}

def PlanMemoryPass : Pass<"weft-plan-memory", "::mlir::ModuleOp"> {
  let summary = "give each buffer of the arena its offset";
  let description = [{
    A buffer lives from the first call that touches it to the last, or where that
    runs beside others to the first call that waits for it. Largest
    first, each takes the lowest offset that no buffer alive at the same time
    overlaps. Offsets are multiples of 64 bytes.

    - Needs: `weft-schedule`.
    - Gives: an offset for each arena buffer, `arena` on the program.
    - Cost: quadratic in buffers alive at one time.
    - Example: `test/passes/Schedule/plan-memory.mlir`.
  }];
}

def PrepareOncePass : Pass<"weft-prepare-once", "::mlir::ModuleOp"> {
  let summary = "compute once what no run changes";
  let description = [{
    A call that reads nothing but state which no program writes, and whose results
    are written by it alone, is moved into a program `prepare`, with its results in
    the state behind the entries: weights in 16 bits where nothing is trained,
    tables of patterns. Equal calls are made once. A machine runs `prepare` before
    its first run, and again after a write of state that it reads.

    - Needs: `weft-schedule`; for GPUs alone, whose machine knows `prepare`.
    - Gives: `prepare` when there is such a call; a larger `weft.state_bytes`.
    - Cost: one walk, and calls times ranges that programs write.
    - Example: `test/passes/Schedule/prepare-once.mlir`.
  }];
}

def RunBesidePass : Pass<"weft-run-beside", "::mlir::ModuleOp"> {
  let summary = "mark calls that need not wait for the one before, and begin them early";
  let description = [{
    Calls that work on fixed patterns, calls that only make what these read, and
    products with fewer tiles than a GPU has multiprocessors that do not need the
    call before (keys and values beside queries) get `weft.beside` and move up
    behind the last call that they share memory with. The machine lets them wait
    for such calls alone: patterns run beside attention, and fill what its last
    tiles leave idle. Values do not change.

    - Needs: `weft-schedule`; before `weft-plan-memory`, which keeps their memory apart.
    - Gives: `weft.beside` on calls; another order.
    - Cost: calls times marked calls.
    - Example: `test/passes/Schedule/run-beside.mlir`.
  }];
}

def SchedulePass : Pass<"weft-schedule", "::mlir::ModuleOp"> {
  let summary = "functions of launches become programs of calls on buffers";
  let description = [{
    Each value gets a buffer: an input or result port, the state, or the arena.
    An `init` operand shares the buffer of its result; an assignment of a state
    entry is written in place when nothing reads the old value later, else
    copied at the end. The loss head is cut into chunks of tokens here, so that
    logits are never whole.

    - Needs: `weft-outline-kernels`, `weft-lay-out-params`.
    - Gives: `weft.program`s; no function is left.
    - Cost: one walk.
    - Example: `test/passes/Schedule/schedule.mlir`.
  }];
  let options = [Option<"logitsBytes", "logits-bytes", "int64_t", "33554432",
                        "most bytes of logits that exist at one time">,
                 Option<"chip", "chip", "std::string", "",
                        "the GPU that kernels are for (sm_90a, sm_80); empty: the CPU">];
}
