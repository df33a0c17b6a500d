// D = A B: A is 64 x 64, B 128 x 64 with k contiguous; bf16 through tensor maps, D in f32.
tile.kernel @product(%d: !tile.global<f32>, %a: !tile.map, %b: !tile.map) threads 128 shared 65536 items 1 {
  %left = tile.alloc : !tile.smem<1x64x64xbf16, swizzle 128>
  %right = tile.alloc : !tile.smem<1x128x64xbf16, swizzle 128>
  %full = tile.barriers : !tile.barriers<1>
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  %offset = arith.constant 0 : i64
  %stride = arith.constant 128 : i64
  tile.elect cta {
    tile.init_barrier %full[%zero] count 1 : !tile.barriers<1>
    tile.fence_init
  }
  tile.sync %zero threads 128
  %one_left = tile.stage %left[%zero] : !tile.smem<1x64x64xbf16, swizzle 128> -> !tile.smem<1x64x64xbf16, swizzle 128>
  %one_right = tile.stage %right[%zero] : !tile.smem<1x128x64xbf16, swizzle 128> -> !tile.smem<1x128x64xbf16, swizzle 128>
  tile.elect cta {
    tile.expect %full[%zero] bytes 24576 : !tile.barriers<1>
    tile.load_tile %a[%zero, %zero] to %one_left barrier %full[%zero] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<1>
    tile.load_tile %b[%zero, %zero] to %one_right barrier %full[%zero] : !tile.smem<1x128x64xbf16, swizzle 128>, !tile.barriers<1>
  }
  tile.wait %full[%zero] parity %zero : !tile.barriers<1>
  tile.fence_products
  %sum = tile.product %one_left, %one_right : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.smem<1x128x64xbf16, swizzle 128> -> !tile.frag<64x128xf32>
  tile.commit_products
  %done = tile.wait_products 0 (%sum) : !tile.frag<64x128xf32> -> !tile.frag<64x128xf32>
  tile.store_frag %done, %d[%offset] stride %stride rows %rows : !tile.frag<64x128xf32>, !tile.global<f32>
  tile.return
}
