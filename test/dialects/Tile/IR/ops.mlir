// RUN: weft-opt %s | FileCheck %s
// RUN: weft-opt %s | weft-opt | FileCheck %s

// Each op once, read back as it was written.

!ring = !tile.smem<2x128x128xbf16, swizzle 128, panels 2>
!tile = !tile.smem<1x128x128xbf16, swizzle 128, panels 2>
!half = !tile.smem<1x64x128xbf16, swizzle 128, panels 2, pitch 128>
!acc = !tile.frag<64x128xf32>

// CHECK-LABEL: tile.kernel @ops(%{{.*}}: !tile.global<bf16>, %{{.*}}: !tile.global<f32>, %{{.*}}: !tile.map) threads 256 shared 131072 items 4
tile.kernel @ops(%g: !tile.global<bf16>, %f: !tile.global<f32>, %m: !tile.map) threads 256 shared 131072 items 4 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  // CHECK: tile.cta
  %cta = tile.cta
  // CHECK: tile.grid_size
  %grid = tile.grid_size
  // CHECK: tile.warpgroup
  %w = tile.warpgroup
  // CHECK: tile.alloc : {{(!tile.smem)?}}<2x128x128xbf16, swizzle 128, panels 2>
  %ring = tile.alloc : !ring
  %row = tile.alloc : !tile.smem<1x1x128xf32>
  // CHECK: tile.barriers : {{(!tile.barriers)?}}<2>
  %b = tile.barriers : !tile.barriers<2>
  // CHECK: tile.stage %{{.*}}[%{{.*}}] : {{(!tile.smem)?}}<2x128x128xbf16, swizzle 128, panels 2> -> {{(!tile.smem)?}}<1x128x128xbf16, swizzle 128, panels 2>
  %t = tile.stage %ring[%i] : !ring -> !tile
  // CHECK: tile.slice %{{.*}}[%{{.*}}] : {{.*}} -> {{(!tile.smem)?}}<1x64x128xbf16, swizzle 128, panels 2, pitch 128>
  %h = tile.slice %t[%i] : !tile -> !half
  // CHECK: tile.panel %{{.*}} at 1 : {{.*}} -> {{(!tile.smem)?}}<1x128x64xbf16, swizzle 128>
  %p = tile.panel %t at 1 : !tile -> !tile.smem<1x128x64xbf16, swizzle 128>
  %blocks = tile.alloc : !tile.smem<1x312x8xbf16>
  // CHECK: tile.hankel %{{.*}}[%{{.*}}] : {{(!tile.smem)?}}<1x312x8xbf16> -> {{(!tile.smem)?}}<1x64x64xbf16, panels 8, pitch 8>
  %hankel = tile.hankel %blocks[%i] : !tile.smem<1x312x8xbf16> -> !tile.smem<1x64x64xbf16, panels 8, pitch 8>
  // CHECK: tile.elect cta {
  tile.elect cta {
    // CHECK: tile.init_barrier %{{.*}}[%{{.*}}] count 1 : {{(!tile.barriers)?}}<2>
    tile.init_barrier %b[%i] count 1 : !tile.barriers<2>
    // CHECK: tile.fence_init
    tile.fence_init
  }
  // CHECK: tile.sync %{{.*}} threads 256
  tile.sync %i threads 256
  // CHECK: tile.sync_arrive %{{.*}} threads 256
  tile.sync_arrive %i threads 256
  // CHECK: tile.elect {
  tile.elect {
    // CHECK: tile.expect %{{.*}}[%{{.*}}] bytes 16896 : {{(!tile.barriers)?}}<2>
    tile.expect %b[%i] bytes 16896 : !tile.barriers<2>
    // CHECK: tile.load_tile %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}} barrier %{{.*}}[%{{.*}}] : {{(!tile.smem)?}}<1x128x64xbf16, swizzle 128>, {{(!tile.barriers)?}}<2>
    tile.load_tile %m[%i, %i] to %p barrier %b[%i] : !tile.smem<1x128x64xbf16, swizzle 128>, !tile.barriers<2>
    // CHECK: tile.load_bulk %{{.*}}[%{{.*}}] to %{{.*}} barrier %{{.*}}[%{{.*}}] : {{(!tile.global)?}}<f32>, {{(!tile.smem)?}}<1x1x128xf32>, {{(!tile.barriers)?}}<2>
    tile.load_bulk %f[%o] to %row barrier %b[%i] : !tile.global<f32>, !tile.smem<1x1x128xf32>, !tile.barriers<2>
  }
  // CHECK: tile.copy_cols %{{.*}}[%{{.*}}] stride %{{.*}} columns %{{.*}} to %{{.*}} barrier %{{.*}}[%{{.*}}] : {{(!tile.global)?}}<f32>, {{(!tile.smem)?}}<1x1x128xf32>, {{(!tile.barriers)?}}<2>
  tile.copy_cols %f[%o] stride %o columns %i to %row barrier %b[%i] : !tile.global<f32>, !tile.smem<1x1x128xf32>, !tile.barriers<2>
  // CHECK: tile.wait %{{.*}}[%{{.*}}] parity %{{.*}} : {{(!tile.barriers)?}}<2>
  tile.wait %b[%i] parity %i : !tile.barriers<2>
  // CHECK: tile.arrive %{{.*}}[%{{.*}}] : {{(!tile.barriers)?}}<2>
  tile.arrive %b[%i] : !tile.barriers<2>
  // CHECK: tile.copy_async %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} to %{{.*}} : {{(!tile.global)?}}<bf16>, {{(!tile.smem)?}}<1x128x128xbf16, swizzle 128, panels 2>
  tile.copy_async %g[%o] stride %o rows %i to %t : !tile.global<bf16>, !tile
  // CHECK: tile.copy_commit
  tile.copy_commit
  // CHECK: tile.copy_wait 0
  tile.copy_wait 0
  // CHECK: tile.fence_async
  tile.fence_async
  // CHECK: tile.fence_products
  tile.fence_products
  // CHECK: tile.product %{{.*}}, %{{.*}} : {{(!tile.smem)?}}<1x64x128xbf16, swizzle 128, panels 2, pitch 128>, {{(!tile.smem)?}}<1x128x128xbf16, swizzle 128, panels 2> -> {{(!tile.frag)?}}<64x128xf32>
  %s = tile.product %h, %t : !half, !tile -> !acc
  // CHECK: tile.commit_products
  tile.commit_products
  // CHECK: tile.wait_products 0(%{{.*}}) : {{(!tile.frag)?}}<64x128xf32> -> {{(!tile.frag)?}}<64x128xf32>
  %s1 = tile.wait_products 0 (%s) : !acc -> !acc
  // CHECK: tile.read_cols %{{.*}} : {{(!tile.smem)?}}<1x1x128xf32> -> {{(!tile.cols)?}}<128xf32>
  %cols = tile.read_cols %row : !tile.smem<1x1x128xf32> -> !tile.cols<128xf32>
  // CHECK: tile.map(%{{.*}}, %{{.*}} : {{(!tile.frag)?}}<64x128xf32>, {{(!tile.cols)?}}<128xf32>) coordinates {
  %e = tile.map (%s1, %cols : !acc, !tile.cols<128xf32>) coordinates {
  ^bb0(%x: f32, %c: f32, %r: i32, %j: i32):
    %y = arith.addf %x, %c : f32
    // CHECK: tile.exp2 %
    %z = tile.exp2 %y
    // CHECK: tile.yield %{{.*}} : f32
    tile.yield %z : f32
  // CHECK: } -> {{(!tile.frag)?}}<64x128xf32>
  } -> !acc
  // CHECK: tile.reduce add %{{.*}} partial : {{(!tile.frag)?}}<64x128xf32> -> {{(!tile.rows)?}}<64xf32>
  %part = tile.reduce add %e partial : !acc -> !tile.rows<64xf32>
  // CHECK: tile.quad add %{{.*}} : {{(!tile.rows)?}}<64xf32> -> {{(!tile.rows)?}}<64xf32>
  %sum = tile.quad add %part : !tile.rows<64xf32> -> !tile.rows<64xf32>
  // CHECK: tile.reduce max %{{.*}} : {{(!tile.frag)?}}<64x128xf32> -> {{(!tile.rows)?}}<64xf32>
  %top = tile.reduce max %e : !acc -> !tile.rows<64xf32>
  // CHECK: tile.cast %{{.*}} : {{(!tile.frag)?}}<64x128xf32> -> {{(!tile.frag)?}}<64x128xbf16>
  %a = tile.cast %e : !acc -> !tile.frag<64x128xbf16>
  // CHECK: tile.zero : {{(!tile.frag)?}}<64x128xf32>
  %zero = tile.zero : !acc
  // CHECK: tile.product_sync %{{.*}}, %{{.*}} init %{{.*}} trans_b : {{(!tile.frag)?}}<64x128xbf16>, {{(!tile.smem)?}}<1x128x128xbf16, swizzle 128, panels 2> init {{(!tile.frag)?}}<64x128xf32> -> {{(!tile.frag)?}}<64x128xf32>
  %q = tile.product_sync %a, %t init %zero trans_b : !tile.frag<64x128xbf16>, !tile init !acc -> !acc
  // CHECK: tile.read_frag %{{.*}} : {{.*}} -> {{(!tile.frag)?}}<64x128xbf16>
  %ra = tile.read_frag %h : !half -> !tile.frag<64x128xbf16>
  // CHECK: tile.write_frag %{{.*}}, %{{.*}} : {{(!tile.frag)?}}<64x128xbf16>,
  tile.write_frag %ra, %h : !tile.frag<64x128xbf16>, !half
  // CHECK: tile.columns %{{.*}} from 64 : {{(!tile.frag)?}}<64x128xbf16> -> {{(!tile.frag)?}}<64x32xbf16>
  %columns = tile.columns %a from 64 : !tile.frag<64x128xbf16> -> !tile.frag<64x32xbf16>
  // CHECK: tile.cast %{{.*}} : {{(!tile.frag)?}}<64x32xbf16> -> {{(!tile.frag)?}}<64x32xf32>
  %wider = tile.cast %columns : !tile.frag<64x32xbf16> -> !tile.frag<64x32xf32>
  // CHECK: tile.load_frag %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} wide : {{(!tile.global)?}}<bf16> -> {{(!tile.frag)?}}<64x32xbf16>
  %lw = tile.load_frag %g[%o] stride %o rows %i wide : !tile.global<bf16> -> !tile.frag<64x32xbf16>
  // CHECK: tile.store_frag %{{.*}}, %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} wide : {{(!tile.frag)?}}<64x32xf32>, {{(!tile.global)?}}<bf16>
  tile.store_frag %wider, %g[%o] stride %o rows %i wide : !tile.frag<64x32xf32>, !tile.global<bf16>
  // CHECK: tile.load_frag %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} : {{(!tile.global)?}}<bf16> -> {{(!tile.frag)?}}<64x128xf32>
  %lf = tile.load_frag %g[%o] stride %o rows %i : !tile.global<bf16> -> !acc
  // CHECK: tile.store_frag %{{.*}}, %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} : {{(!tile.frag)?}}<64x128xf32>, {{(!tile.global)?}}<bf16>
  tile.store_frag %lf, %g[%o] stride %o rows %i : !acc, !tile.global<bf16>
  // CHECK: tile.store_frag %{{.*}}, %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} tail : {{(!tile.frag)?}}<64x128xf32>, {{(!tile.global)?}}<bf16>
  tile.store_frag %lf, %g[%o] stride %o rows %i tail : !acc, !tile.global<bf16>
  // CHECK: tile.load_rows %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} : {{(!tile.global)?}}<f32> -> {{(!tile.rows)?}}<64xf32>
  %lr = tile.load_rows %f[%o] stride %o rows %i : !tile.global<f32> -> !tile.rows<64xf32>
  // CHECK: tile.load_rows %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} tail : {{(!tile.global)?}}<f32> -> {{(!tile.rows)?}}<64xf32>
  %lt = tile.load_rows %f[%o] stride %o rows %i tail : !tile.global<f32> -> !tile.rows<64xf32>
  // CHECK: tile.store_rows %{{.*}}, %{{.*}}[%{{.*}}] stride %{{.*}} rows %{{.*}} : {{(!tile.rows)?}}<64xf32>, {{(!tile.global)?}}<f32>
  tile.store_rows %lr, %f[%o] stride %o rows %i : !tile.rows<64xf32>, !tile.global<f32>
  // CHECK: tile.load_cols %{{.*}}[%{{.*}}] stride %{{.*}} columns %{{.*}} : {{(!tile.global)?}}<f32> -> {{(!tile.cols)?}}<128xf32>
  %lc = tile.load_cols %f[%o] stride %o columns %i : !tile.global<f32> -> !tile.cols<128xf32>
  // CHECK: tile.load %{{.*}}[%{{.*}}] : {{(!tile.global)?}}<f32> -> f32
  %ls = tile.load %f[%o] : !tile.global<f32> -> f32
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] : f32, {{(!tile.global)?}}<f32>
  tile.store %ls, %f[%o] : f32, !tile.global<f32>
  // CHECK: tile.cells : {{(!tile.cells)?}}<3>
  %cells = tile.cells : !tile.cells<3>
  tile.elect {
    // CHECK: tile.next_item
    %next = tile.next_item
    // CHECK: tile.write %{{.*}}, %{{.*}}[%{{.*}}] : {{(!tile.cells)?}}<3>
    tile.write %next, %cells[%i] : !tile.cells<3>
  }
  // CHECK: tile.read %{{.*}}[%{{.*}}] : {{(!tile.cells)?}}<3>
  %told = tile.read %cells[%i] : !tile.cells<3>
  // CHECK: tile.splat %{{.*}} : f32 -> {{(!tile.rows)?}}<64xf32>
  %sp = tile.splat %ls : f32 -> !tile.rows<64xf32>
  // CHECK: tile.specialize producer 24 {
  // CHECK-NEXT: } consumers 240 {
  // CHECK-NEXT: }
  tile.specialize producer 24 {
  } consumers 240 {
  }
  // CHECK: tile.return
  tile.return
}
