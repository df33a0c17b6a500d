// One 64-row tile of softmax(Q K^T) V over 8 blocks of 128 keys, 64 channels: the next scores run while
// probabilities meet the values, as in the real kernels.
!q = !tile.smem<1x64x64xbf16, swizzle 128>
!kv = !tile.smem<2x128x64xbf16, swizzle 128>
!block = !tile.smem<1x128x64xbf16, swizzle 128>
!scores = !tile.frag<64x128xf32>
!prob = !tile.frag<64x128xbf16>
!out = !tile.frag<64x64xf32>
!rows = !tile.rows<64xf32>
tile.kernel @attention(%o: !tile.global<bf16>, %lse: !tile.global<f32>, %qm: !tile.map, %km: !tile.map, %vm: !tile.map)
    threads 256 shared 200000 items 32 {
  %q = tile.alloc : !q
  %k = tile.alloc : !kv
  %v = tile.alloc : !kv
  %qf = tile.barriers : !tile.barriers<1>
  %kf = tile.barriers : !tile.barriers<2>
  %vf = tile.barriers : !tile.barriers<2>
  %ke = tile.barriers : !tile.barriers<2>
  %ve = tile.barriers : !tile.barriers<2>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %long64 = arith.constant 64 : i64
  %long1 = arith.constant 1 : i64
  %scale = arith.constant 0.18 : f32
  %low = arith.constant -1.0e30 : f32
  tile.elect cta {
    tile.init_barrier %qf[%c0] count 1 : !tile.barriers<1>
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      tile.init_barrier %kf[%i] count 1 : !tile.barriers<2>
      tile.init_barrier %vf[%i] count 1 : !tile.barriers<2>
      tile.init_barrier %ke[%i] count 4 : !tile.barriers<2>
      tile.init_barrier %ve[%i] count 4 : !tile.barriers<2>
    }
    tile.fence_init
  }
  tile.sync %c0 threads 256
  %cta = tile.cta
  %row0 = arith.muli %cta, %c64 : i32
  %q0 = tile.stage %q[%c0] : !q -> !q
  tile.specialize producer 40 {
    tile.elect {
      tile.expect %qf[%c0] bytes 8192 : !tile.barriers<1>
      tile.load_tile %qm[%c0, %row0] to %q0 barrier %qf[%c0] : !q, !tile.barriers<1>
      scf.for %j = %c0 to %c8 step %c1 : i32 {
        %s = arith.remui %j, %c2 : i32
        %turn = arith.divui %j, %c2 : i32
        %p = arith.andi %turn, %c1 : i32
        %free = arith.xori %p, %c1 : i32
        %y = arith.muli %j, %c128 : i32
        %ks = tile.stage %k[%s] : !kv -> !block
        %vs = tile.stage %v[%s] : !kv -> !block
        tile.wait %ke[%s] parity %free : !tile.barriers<2>
        tile.expect %kf[%s] bytes 16384 : !tile.barriers<2>
        tile.load_tile %km[%c0, %y] to %ks barrier %kf[%s] : !block, !tile.barriers<2>
        tile.wait %ve[%s] parity %free : !tile.barriers<2>
        tile.expect %vf[%s] bytes 16384 : !tile.barriers<2>
        tile.load_tile %vm[%c0, %y] to %vs barrier %vf[%s] : !block, !tile.barriers<2>
      }
    }
  } consumers 240 {
    tile.wait %qf[%c0] parity %c0 : !tile.barriers<1>
    tile.wait %kf[%c0] parity %c0 : !tile.barriers<2>
    %k0 = tile.stage %k[%c0] : !kv -> !block
    tile.fence_products
    %first = tile.product %q0, %k0 : !q, !block -> !scores
    tile.commit_products
    %s0 = tile.wait_products 0 (%first) : !scores -> !scores
    tile.arrive %ke[%c0] : !tile.barriers<2>
    %m0 = tile.reduce max %s0 : !scores -> !rows
    %e0 = tile.map(%s0, %m0 : !scores, !rows) {
    ^bb0(%x: f32, %m: f32):
      %d = arith.subf %x, %m : f32
      %y = arith.mulf %d, %scale : f32
      %e = tile.exp2 %y
      tile.yield %e : f32
    } -> !scores
    %l0 = tile.reduce add %e0 partial : !scores -> !rows
    %p0 = tile.cast %e0 : !scores -> !prob
    %o0 = tile.zero : !out
    %r:4 = scf.for %j = %c1 to %c8 step %c1 iter_args(%o1 = %o0, %m1 = %m0, %l1 = %l0, %p1 = %p0) -> (!out, !rows, !rows, !prob) : i32 {
      %before = arith.subi %j, %c1 : i32
      %s = arith.remui %j, %c2 : i32
      %turn = arith.divui %j, %c2 : i32
      %par = arith.andi %turn, %c1 : i32
      %vs = arith.remui %before, %c2 : i32
      %vturn = arith.divui %before, %c2 : i32
      %vpar = arith.andi %vturn, %c1 : i32
      tile.wait %kf[%s] parity %par : !tile.barriers<2>
      %kt = tile.stage %k[%s] : !kv -> !block
      %vt = tile.stage %v[%vs] : !kv -> !block
      tile.fence_products
      %next = tile.product %q0, %kt : !q, !block -> !scores
      tile.commit_products
      tile.wait %vf[%vs] parity %vpar : !tile.barriers<2>
      %sum = tile.product %p1, %vt init %o1 trans_b : !prob, !block init !out -> !out
      tile.commit_products
      %w:3 = tile.wait_products 1 (%next, %sum, %p1) : !scores, !out, !prob -> !scores, !out, !prob
      tile.arrive %ke[%s] : !tile.barriers<2>
      %top = tile.reduce max %w#0 : !scores -> !rows
      %m2 = tile.map(%top, %m1 : !rows, !rows) {
      ^bb0(%x: f32, %m: f32):
        %y = arith.maxnumf %x, %m : f32
        tile.yield %y : f32
      } -> !rows
      %al = tile.map(%m1, %m2 : !rows, !rows) {
      ^bb0(%x: f32, %m: f32):
        %d = arith.subf %x, %m : f32
        %y = arith.mulf %d, %scale : f32
        %e = tile.exp2 %y
        tile.yield %e : f32
      } -> !rows
      %e1 = tile.map(%w#0, %m2 : !scores, !rows) coordinates {
      ^bb0(%x: f32, %m: f32, %row: i32, %column: i32):
        %d = arith.subf %x, %m : f32
        %y = arith.mulf %d, %scale : f32
        %e = tile.exp2 %y
        tile.yield %e : f32
      } -> !scores
      %part = tile.reduce add %e1 partial : !scores -> !rows
      %l2 = tile.map(%l1, %al, %part : !rows, !rows, !rows) {
      ^bb0(%l: f32, %a: f32, %x: f32):
        %y = arith.mulf %l, %a : f32
        %z = arith.addf %y, %x : f32
        tile.yield %z : f32
      } -> !rows
      %u:2 = tile.wait_products 0 (%w#1, %w#2) : !out, !prob -> !out, !prob
      tile.arrive %ve[%vs] : !tile.barriers<2>
      %p2 = tile.cast %e1 : !scores -> !prob
      %o2 = tile.map(%u#0, %al : !out, !rows) {
      ^bb0(%x: f32, %a: f32):
        %y = arith.mulf %x, %a : f32
        tile.yield %y : f32
      } -> !out
      scf.yield %o2, %m2, %l2, %p2 : !out, !rows, !rows, !prob
    }
    tile.wait %vf[%c1] parity %c1 : !tile.barriers<2>
    %last = tile.stage %v[%c1] : !kv -> !block
    tile.fence_products
    %all = tile.product %r#3, %last init %r#0 trans_b : !prob, !block init !out -> !out
    tile.commit_products
    %f:2 = tile.wait_products 0 (%all, %r#3) : !out, !prob -> !out, !prob
    %l = tile.quad add %r#2 : !rows -> !rows
    %o9 = tile.map(%f#0, %l : !out, !rows) {
    ^bb0(%x: f32, %s: f32):
      %y = arith.divf %x, %s : f32
      tile.yield %y : f32
    } -> !out
    %lse9 = tile.map(%r#1, %l : !rows, !rows) {
    ^bb0(%m: f32, %s: f32):
      %y = math.log %s : f32
      %z = arith.addf %m, %y : f32
      tile.yield %z : f32
    } -> !rows
    %row64 = arith.extsi %row0 : i32 to i64
    %at = arith.muli %row64, %long64 : i64
    tile.store_frag %o9, %o[%at] stride %long64 rows %c64 : !out, !tile.global<bf16>
    tile.store_rows %lse9, %lse[%row64] stride %long1 rows %c64 : !rows, !tile.global<f32>
  }
  tile.return
}
