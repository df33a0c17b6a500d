//===- KernelOps.td - Kernels, warpgroups, barriers ------------------------===//
#ifndef TILE_KERNEL_OPS_TD
#define TILE_KERNEL_OPS_TD

include "dialects/Tile/TileDialect.td"

def Tile_KernelOp : Tile_Op<"kernel", [IsolatedFromAbove, Symbol, SingleBlock]> {
  let summary = "a kernel: what each warpgroup of a CTA does";
  let description = [{
    `tile.kernel @attend(%o: !tile.global<bf16>, %q: !tile.map) threads 128 shared 65536 items 12 { ... }`.
    A launch has any number of CTAs; the body runs the items of its CTA, each below
    `items`: those that it works out from `cta` and `grid_size`, or those that
    `tile.next_item` gives it. Results may not depend on the number of CTAs or on
    who runs which item. `shared` is the most bytes of shared memory that it may ask for.
    Constraints: threads are a multiple of 128 and at most 1024 (C1); parameters are
    globals, then maps (C2); there is at least one item (C3); rings, barriers and
    cells, each at a multiple of 1024 bytes, fit `shared` (C4).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$threads, I64Attr:$shared, I64Attr:$items);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Warpgroups of a CTA.
    int64_t warpgroups() { return static_cast<int64_t>(getThreads()) / kWarpgroupThreads; }
    /// Bytes of shared memory that the rings, barriers and cells take, each at a multiple of kSharedAlignment.
    int64_t sharedBytes();
    static constexpr int64_t kWarpgroupThreads = 128;
    static constexpr int64_t kSharedAlignment = 1024;
  }];
}

def Tile_ReturnOp : Tile_Op<"return", [Terminator, HasParent<"KernelOp">]> {
  let summary = "ends a kernel";
  let assemblyFormat = "attr-dict";
}

def Tile_CtaOp : Tile_Op<"cta", [Pure]> {
  let summary = "number of this CTA in the launch";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_GridSizeOp : Tile_Op<"grid_size", [Pure]> {
  let summary = "CTAs of the launch";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_WarpgroupOp : Tile_Op<"warpgroup", [Pure]> {
  let summary = "number of this warpgroup in the CTA, from 0";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_NextItemOp : Tile_Op<"next_item"> {
  let summary = "number of an item that no CTA has begun";
  let description = [{
    An atomic counter hands out 0, 1, 2, ...; a number from `items` on says that
    nothing is left. Each CTA goes on asking until it gets such a number, and then
    asks no more: a launch asks as often as it has items and CTAs, and behind the last
    number the counter is 0 again. The counter belongs to the kernel: it may not run twice at the
    same time on one GPU. Constraints: one thread does it (C1).
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_EndOp : Tile_Op<"end", [Terminator, Pure, ParentOneOf<["ElectOp", "SpecializeOp"]>]> {
  let summary = "ends a region without values; not written";
  let assemblyFormat = "attr-dict";
}

def Tile_ElectOp : Tile_Op<"elect", [SingleBlockImplicitTerminator<"EndOp">, NoRegionArguments]> {
  let summary = "what one thread of the warpgroup does";
  let description = [{
    With `cta`: one thread of the CTA (of warpgroup 0). It is always the same one.
    What that thread waited for the others have not waited for. Constraints: the body holds ops of one thread
    alone: barriers, loads of tiles, fences, loads and stores of a scalar, numbers of
    items, writes of cells, stages, slices and panels, `arith` and `scf` (C1).
  }];
  let arguments = (ins UnitAttr:$cta);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`cta` $cta^)? $body attr-dict";
  let hasVerifier = 1;
}

def Tile_SpecializeOp : Tile_Op<"specialize", [SingleBlockImplicitTerminator<"EndOp">, NoRegionArguments,
    HasParent<"KernelOp">]> {
  let summary = "warpgroup 0 produces, the others consume";
  let description = [{
    `tile.specialize producer 24 { ... } consumers 240 { ... }`: registers a thread
    in each role (setmaxnreg). Constraints: the kernel has at least two warpgroups
    (C1); registers are a multiple of 8 from 24 to 256 (C2) and together no more than
    the CTA starts with, 65,536 over its threads rounded down to 8 (C3): a role that
    asks for more waits for ever.
  }];
  let arguments = (ins I64Attr:$producer_registers, I64Attr:$consumer_registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumers);
  let assemblyFormat = "`producer` $producer_registers $producer `consumers` $consumer_registers $consumers attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

def Tile_AllocBarriersOp : Tile_Op<"barriers", [HasParent<"KernelOp">]> {
  let summary = "memory barriers in shared memory";
  let results = (outs Tile_BarriersType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

class Tile_BarrierOp<string opMnemonic> : Tile_Op<opMnemonic>;

def Tile_InitBarrierOp : Tile_BarrierOp<"init_barrier"> {
  let summary = "gives a barrier its count of arrivals";
  let description = [{
    A phase of the barrier ends when `count` threads have arrived and all bytes
    that were expected have come. Before anyone else uses it: `tile.fence_init` by
    the same thread, then `tile.sync` of all. Constraints: one thread does it (C1);
    `count` is from 1 to 1,048,575 (C2).
  }];
  let arguments = (ins Tile_BarriersType:$barriers, I32:$index, I64Attr:$count);
  let assemblyFormat = "$barriers `[` $index `]` `count` $count attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Tile_FenceInitOp : Tile_Op<"fence_init"> {
  let summary = "shows this thread's fresh barriers to the asynchronous view (fence.mbarrier_init)";
  let description = [{ Constraints: one thread does it (C1). }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_ExpectOp : Tile_BarrierOp<"expect"> {
  let summary = "arrives and says how many bytes the copies of this phase bring";
  let description = [{
    One arrival and `bytes` more to come. Constraints: one thread does it (C1);
    `bytes` is from 1 to 1,048,575 (C2) and, where the copies onto the same barrier
    follow in the same block, the bytes that they bring (C3).
  }];
  let arguments = (ins Tile_BarriersType:$barriers, I32:$index, I64Attr:$bytes);
  let assemblyFormat = "$barriers `[` $index `]` `bytes` $bytes attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Tile_ArriveOp : Tile_BarrierOp<"arrive"> {
  let summary = "arrives at a barrier: one thread of each warp";
  let description = [{
    Four arrivals, one a warp once its threads have come together: what all threads
    did before lies before the arrival. Inside `tile.elect` one arrival, of that
    thread: what it wrote into cells lies before, and nothing is said about the others.
  }];
  let arguments = (ins Tile_BarriersType:$barriers, I32:$index);
  let assemblyFormat = "$barriers `[` $index `]` attr-dict `:` type($barriers)";
  let extraClassDeclaration = [{
    /// Arrivals of a whole warpgroup: what it adds to the count of `tile.init_barrier`.
    static constexpr int64_t kWarps = 4;
  }];
}

def Tile_WaitOp : Tile_BarrierOp<"wait"> {
  let summary = "waits until the barrier's phase of this parity has ended";
  let description = [{
    Passes while the phase that runs has the other parity, so parity 1 passes on a
    fresh barrier. A warpgroup waits for each phase at most once: a wait that an old
    phase lets through has the wrong parity.
  }];
  let arguments = (ins Tile_BarriersType:$barriers, I32:$index, I32:$parity);
  let assemblyFormat = "$barriers `[` $index `]` `parity` $parity attr-dict `:` type($barriers)";
}

class Tile_NamedBarrierOp<string opMnemonic> : Tile_Op<opMnemonic> {
  let arguments = (ins I32:$id, I64Attr:$threads);
  let assemblyFormat = "$id `threads` $threads attr-dict";
  let hasVerifier = 1;
}

def Tile_SyncOp : Tile_NamedBarrierOp<"sync"> {
  let summary = "waits at a named barrier (bar.sync)";
  let description = [{
    Until `threads` threads have come, `tile.sync_arrive` included. `id` is from 0 to
    15. Constraints: `threads` is a multiple of 128 and at most the kernel's (C1).
  }];
}

def Tile_SyncArriveOp : Tile_NamedBarrierOp<"sync_arrive"> {
  let summary = "arrives at a named barrier without waiting (bar.arrive)";
  let description = [{
    Constraints: `threads` is a multiple of 128 and at most the kernel's (C1).
  }];
}

def Tile_FenceAsyncOp : Tile_Op<"fence_async"> {
  let summary = "shows earlier plain writes of shared memory to copies and products (fence.proxy.async)";
  let assemblyFormat = "attr-dict";
}

#endif // TILE_KERNEL_OPS_TD
