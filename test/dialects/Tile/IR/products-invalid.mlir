// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each kernel breaks the constraint that it is named after, and nothing else.

// 32 rows on the left.
tile.kernel @product_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x32x64xbf16>
  %b = tile.alloc : !tile.smem<1x64x64xbf16>
  // expected-error@+1 {{expects operands of bf16, one stage each, with 64 rows on the left}}
  %p = tile.product %a, %b : !tile.smem<1x32x64xbf16>, !tile.smem<1x64x64xbf16> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

tile.kernel @product_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x64x64xbf16>
  %b = tile.alloc : !tile.smem<1x64x32xbf16>
  // expected-error@+1 {{expects one number of summed elements, a multiple of 16, but got 64 on the left and 32 on the right}}
  %p = tile.product %a, %b : !tile.smem<1x64x64xbf16>, !tile.smem<1x64x32xbf16> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

// The right one is read as [k, n] here: k agrees, n is 32.
tile.kernel @product_c3(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x64x64xbf16>
  %b = tile.alloc : !tile.smem<1x64x32xbf16>
  // expected-error@+1 {{of 64 x 32 f32, columns a multiple of 8 and at most 256}}
  %p = tile.product %a, %b trans_b : !tile.smem<1x64x64xbf16>, !tile.smem<1x64x32xbf16> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

tile.kernel @product_sync_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.zero : !tile.frag<64x16xbf16>
  %b = tile.alloc : !tile.smem<2x64x16xbf16>
  // expected-error@+1 {{expects operands of bf16, one stage each}}
  %p = tile.product_sync %a, %b : !tile.frag<64x16xbf16>, !tile.smem<2x64x16xbf16> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

tile.kernel @product_sync_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.zero : !tile.frag<64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x32xbf16>
  // expected-error@+1 {{a multiple of 16, but got 16 on the left and 32 on the right}}
  %p = tile.product_sync %a, %b : !tile.frag<64x16xbf16>, !tile.smem<1x64x32xbf16> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

tile.kernel @product_sync_c3(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.zero : !tile.frag<64x16xbf16>
  %b = tile.alloc : !tile.smem<1x24x16xbf16>
  // expected-error@+1 {{of 64 x 24 f32, columns a multiple of 16}}
  %p = tile.product_sync %a, %b : !tile.frag<64x16xbf16>, !tile.smem<1x24x16xbf16> -> !tile.frag<64x24xf32>
  tile.return
}

// -----

// The old name after the wait: the registers are the ones of %w.
tile.kernel @product_c4(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x16xbf16>
  %p = tile.product %a, %b : !tile.smem<1x64x16xbf16>, !tile.smem<1x64x16xbf16> -> !tile.frag<64x64xf32>
  %w = tile.wait_products 0 (%p) : !tile.frag<64x64xf32> -> !tile.frag<64x64xf32>
  // expected-error@+1 {{uses the result of tile.product, which is under way}}
  %x = tile.reduce add %p : !tile.frag<64x64xf32> -> !tile.rows<64xf32>
  tile.return
}

// -----

tile.kernel @product_c4_before(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x16xbf16>
  %p = tile.product %a, %b : !tile.smem<1x64x16xbf16>, !tile.smem<1x64x16xbf16> -> !tile.frag<64x64xf32>
  // expected-error@+1 {{uses the result of tile.product, which is under way}}
  %x = tile.cast %p : !tile.frag<64x64xf32> -> !tile.frag<64x64xbf16>
  %w = tile.wait_products 0 (%p) : !tile.frag<64x64xf32> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

tile.kernel @product_c4_never(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x16xbf16>
  // expected-error@+1 {{has a result that no tile.wait_products ends}}
  %p = tile.product %a, %b : !tile.smem<1x64x16xbf16>, !tile.smem<1x64x16xbf16> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

// Its registers would be free for other values while the product reads them.
tile.kernel @product_c4_left(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x16xbf16>
  // expected-error@+1 {{has a left fragment that no tile.wait_products gives back}}
  %p = tile.product %f, %b : !tile.frag<64x16xbf16>, !tile.smem<1x64x16xbf16> -> !tile.frag<64x64xf32>
  %w = tile.wait_products 0 (%p) : !tile.frag<64x64xf32> -> !tile.frag<64x64xf32>
  tile.return
}

// -----

tile.kernel @product_c4_left_used(%g: !tile.global<bf16>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %f = tile.zero : !tile.frag<64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x16xbf16>
  %p = tile.product %f, %b : !tile.frag<64x16xbf16>, !tile.smem<1x64x16xbf16> -> !tile.frag<64x64xf32>
  // expected-error@+1 {{uses the left fragment of tile.product, which is under way}}
  tile.store_frag %f, %g[%o] stride %o rows %i : !tile.frag<64x16xbf16>, !tile.global<bf16>
  %w:2 = tile.wait_products 0 (%p, %f) : !tile.frag<64x64xf32>, !tile.frag<64x16xbf16> -> !tile.frag<64x64xf32>, !tile.frag<64x16xbf16>
  tile.return
}

// -----

tile.kernel @wait_products_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x16xbf16>
  %p = tile.product %a, %b : !tile.smem<1x64x16xbf16>, !tile.smem<1x64x16xbf16> -> !tile.frag<64x64xf32>
  // expected-error@+1 {{expects results of the operands' types}}
  %w = tile.wait_products 0 (%p) : !tile.frag<64x64xf32> -> !tile.frag<64x32xf32>
  tile.return
}

// -----

tile.kernel @wait_products_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %a = tile.alloc : !tile.smem<1x64x16xbf16>
  %b = tile.alloc : !tile.smem<1x64x16xbf16>
  %p = tile.product %a, %b : !tile.smem<1x64x16xbf16>, !tile.smem<1x64x16xbf16> -> !tile.frag<64x64xf32>
  // expected-error@+1 {{expects 0 to 7 groups under way, but got 8}}
  %w = tile.wait_products 8 (%p) : !tile.frag<64x64xf32> -> !tile.frag<64x64xf32>
  tile.return
}
