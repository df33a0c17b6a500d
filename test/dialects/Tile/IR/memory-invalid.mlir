// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each kernel breaks the constraint that it is named after, and nothing else.

tile.kernel @stage_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %r = tile.alloc : !tile.smem<2x64x128xbf16, swizzle 128, panels 2>
  // expected-error@+1 {{expects a result of type}}
  %s = tile.stage %r[%i] : !tile.smem<2x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x32x128xbf16, swizzle 128, panels 2>
  tile.return
}

// -----

// The pitch stays that of the owner.
tile.kernel @slice_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %r = tile.alloc : !tile.smem<2x64x128xbf16, swizzle 128, panels 2>
  %s = tile.stage %r[%i] : !tile.smem<2x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x128xbf16, swizzle 128, panels 2>
  // expected-error@+1 {{expects a result of type}}
  %p = tile.slice %s[%i] : !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x32x128xbf16, swizzle 128, panels 2>
  tile.return
}

// -----

tile.kernel @slice_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %r = tile.alloc : !tile.smem<2x64x128xbf16, swizzle 128, panels 2>
  %s = tile.stage %r[%i] : !tile.smem<2x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x128xbf16, swizzle 128, panels 2>
  // expected-error@+1 {{expects a multiple of 8 rows, at most 64, but got 72}}
  %p = tile.slice %s[%i] : !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x72x128xbf16, swizzle 128, panels 2>
  tile.return
}

// -----

tile.kernel @hankel_c1(%g: !tile.global<f32>) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %r = tile.alloc : !tile.smem<1x312x16xbf16>
  // expected-error@+1 {{expects one stage of bf16 in rows of 8 without swizzle}}
  %p = tile.hankel %r[%i] : !tile.smem<1x312x16xbf16> -> !tile.smem<1x64x64xbf16, panels 8, pitch 8>
  tile.return
}

// -----

tile.kernel @hankel_c2(%g: !tile.global<f32>) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %r = tile.alloc : !tile.smem<1x112x8xbf16>
  // expected-error@+1 {{from at least 120 rows}}
  %p = tile.hankel %r[%i] : !tile.smem<1x112x8xbf16> -> !tile.smem<1x64x64xbf16, panels 8, pitch 8>
  tile.return
}

// -----

tile.kernel @panel_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %r = tile.alloc : !tile.smem<2x64x128xbf16, swizzle 128, panels 2>
  %s = tile.stage %r[%i] : !tile.smem<2x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x128xbf16, swizzle 128, panels 2>
  // expected-error@+1 {{expects a panel below 2, but got 2}}
  %p = tile.panel %s at 2 : !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x64xbf16, swizzle 128>
  tile.return
}

// -----

tile.kernel @panel_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %r = tile.alloc : !tile.smem<2x64x128xbf16, swizzle 128, panels 2>
  %s = tile.stage %r[%i] : !tile.smem<2x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x128xbf16, swizzle 128, panels 2>
  // expected-error@+1 {{expects a result of type}}
  %p = tile.panel %s at 1 : !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x32x64xbf16, swizzle 128>
  tile.return
}

// -----

tile.kernel @load_tile_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %t = tile.alloc : !tile.smem<1x64x64xbf16, swizzle 128>
  // expected-error@+1 {{expects one thread to do it}}
  tile.load_tile %m[%i] to %t barrier %b[%i] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<2>
  tile.return
}

// -----

tile.kernel @load_tile_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %t = tile.alloc : !tile.smem<1x64x128xbf16, swizzle 128, panels 2>
  tile.elect {
    // expected-error@+1 {{expects one panel of one stage, at most 256 by 256}}
    tile.load_tile %m[%i] to %t barrier %b[%i] : !tile.smem<1x64x128xbf16, swizzle 128, panels 2>, !tile.barriers<2>
  }
  tile.return
}

// -----

tile.kernel @load_tile_c3(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %t = tile.alloc : !tile.smem<1x64x64xbf16, swizzle 128>
  tile.elect {
    // expected-error@+1 {{expects 1 to 5 coordinates, but got 6}}
    tile.load_tile %m[%i, %i, %i, %i, %i, %i] to %t barrier %b[%i] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<2>
  }
  tile.return
}

// -----

tile.kernel @load_tile_c4(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %t = tile.alloc : !tile.smem<1x64x4xf32>
  tile.elect {
    // expected-error@+1 {{expects a first coordinate at a multiple of 16 bytes, but got 2 for 'f32'}}
    tile.load_tile %m[%two, %i] to %t barrier %b[%i] : !tile.smem<1x64x4xf32>, !tile.barriers<2>
  }
  tile.return
}

// -----

tile.kernel @load_bulk_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %t = tile.alloc : !tile.smem<1x1x64xf32>
  // expected-error@+1 {{expects one thread to do it}}
  tile.load_bulk %g[%o] to %t barrier %b[%i] : !tile.global<f32>, !tile.smem<1x1x64xf32>, !tile.barriers<2>
  tile.return
}

// -----

tile.kernel @load_bulk_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %t = tile.alloc : !tile.smem<1x2x64xf32, panels 2>
  tile.elect {
    // expected-error@+1 {{expects one panel of 'f32' without swizzle}}
    tile.load_bulk %g[%o] to %t barrier %b[%i] : !tile.global<f32>, !tile.smem<1x2x64xf32, panels 2>, !tile.barriers<2>
  }
  tile.return
}

// -----

tile.kernel @load_bulk_c3(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %t = tile.alloc : !tile.smem<1x1x62xf32>
  tile.elect {
    // expected-error@+1 {{expects a multiple of 16 bytes, but got 248}}
    tile.load_bulk %g[%o] to %t barrier %b[%i] : !tile.global<f32>, !tile.smem<1x1x62xf32>, !tile.barriers<2>
  }
  tile.return
}

// -----

tile.kernel @copy_cols_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %t = tile.alloc : !tile.smem<1x1x136xf32>
  // expected-error@+1 {{expects one row of at most 128 f32 without swizzle}}
  tile.copy_cols %g[%o] stride %o columns %i to %t barrier %b[%i] : !tile.global<f32>, !tile.smem<1x1x136xf32>, !tile.barriers<2>
  tile.return
}

// -----

tile.kernel @copy_cols_c2(%g: !tile.global<bf16>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %t = tile.alloc : !tile.smem<1x1x64xf32>
  // expected-error@+1 {{expects elements of f32, but got}}
  tile.copy_cols %g[%o] stride %o columns %i to %t barrier %b[%i] : !tile.global<bf16>, !tile.smem<1x1x64xf32>, !tile.barriers<2>
  tile.return
}

// -----

tile.kernel @copy_async_c1(%g: !tile.global<bf16>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %t = tile.alloc : !tile.smem<2x64x64xbf16>
  // expected-error@+1 {{expects one stage of 'bf16'}}
  tile.copy_async %g[%o] stride %o rows %i to %t : !tile.global<bf16>, !tile.smem<2x64x64xbf16>
  tile.return
}

// -----

tile.kernel @copy_async_c2(%g: !tile.global<bf16>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %t = tile.alloc : !tile.smem<1x64x12xbf16>
  // expected-error@+1 {{expects a panel's row of a multiple of 16 bytes, but got 24}}
  tile.copy_async %g[%o] stride %o rows %i to %t : !tile.global<bf16>, !tile.smem<1x64x12xbf16>
  tile.return
}

// -----

tile.kernel @copy_wait_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  // expected-error@+1 {{expects a number of groups from 0 on, but got -1}}
  tile.copy_wait -1
  tile.return
}

// -----

tile.kernel @store_frag_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %f = tile.zero : !tile.frag<64x16xbf16>
  // expected-error@+1 {{expects elements of 'bf16', but got}}
  tile.store_frag %f, %g[%o] stride %o rows %i : !tile.frag<64x16xbf16>, !tile.global<f32>
  tile.return
}

// -----

tile.kernel @store_frag_c2(%g: !tile.global<bf16>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %o = arith.constant 0 : i64
  %i = arith.constant 0 : i32
  %f = tile.zero : !tile.frag<64x16xbf16>
  // expected-error@+1 {{expects elements of bf16 and a multiple of 32 columns with 'wide'}}
  tile.store_frag %f, %g[%o] stride %o rows %i wide : !tile.frag<64x16xbf16>, !tile.global<bf16>
  tile.return
}

// -----

tile.kernel @load_frag_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %o = arith.constant 0 : i64
  %i = arith.constant 0 : i32
  // expected-error@+1 {{expects elements of bf16 and a multiple of 32 columns with 'wide'}}
  %f = tile.load_frag %g[%o] stride %o rows %i wide : !tile.global<f32> -> !tile.frag<64x32xf32>
  tile.return
}

// -----

tile.kernel @load_frag_c1(%g: !tile.global<i32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  // expected-error@+1 {{expects elements of 'f32' or bf16, but got}}
  %f = tile.load_frag %g[%o] stride %o rows %i : !tile.global<i32> -> !tile.frag<64x16xf32>
  tile.return
}

// -----

tile.kernel @store_rows_c1(%g: !tile.global<i32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %f = tile.zero : !tile.rows<64xf32>
  // expected-error@+1 {{expects elements of 'f32' or bf16, but got}}
  tile.store_rows %f, %g[%o] stride %o rows %i : !tile.rows<64xf32>, !tile.global<i32>
  tile.return
}

// -----

tile.kernel @load_rows_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  // expected-error@+1 {{expects elements of 'i32', but got}}
  %f = tile.load_rows %g[%o] stride %o rows %i : !tile.global<f32> -> !tile.rows<64xi32>
  tile.return
}

// -----

tile.kernel @load_cols_c1(%g: !tile.global<bf16>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  // expected-error@+1 {{expects elements of 'i32', but got}}
  %f = tile.load_cols %g[%o] stride %o columns %i : !tile.global<bf16> -> !tile.cols<8xi32>
  tile.return
}

// -----

tile.kernel @load_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  // expected-error@+1 {{expects elements of 'i32', but got}}
  %f = tile.load %g[%o] : !tile.global<f32> -> i32
  tile.return
}

// -----

tile.kernel @store_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  // expected-error@+1 {{expects elements of 'i32', but got}}
  tile.store %i, %g[%o] : i32, !tile.global<f32>
  tile.return
}

// -----

tile.kernel @read_frag_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %t = tile.alloc : !tile.smem<1x64x16xf32>
  // expected-error@+1 {{expects a fragment and one stage of bf16}}
  %f = tile.read_frag %t : !tile.smem<1x64x16xf32> -> !tile.frag<64x16xbf16>
  tile.return
}

// -----

tile.kernel @read_frag_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %t = tile.alloc : !tile.smem<1x64x32xbf16>
  // expected-error@+1 {{expects a tile of 64 x 16}}
  %f = tile.read_frag %t : !tile.smem<1x64x32xbf16> -> !tile.frag<64x16xbf16>
  tile.return
}

// -----

tile.kernel @write_frag_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xbf16>
  %t = tile.alloc : !tile.smem<2x64x16xbf16>
  // expected-error@+1 {{expects a fragment and one stage of bf16}}
  tile.write_frag %f, %t : !tile.frag<64x16xbf16>, !tile.smem<2x64x16xbf16>
  tile.return
}

// -----

tile.kernel @write_frag_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xbf16>
  %t = tile.alloc : !tile.smem<1x32x16xbf16>
  // expected-error@+1 {{expects a tile of 64 x 16}}
  tile.write_frag %f, %t : !tile.frag<64x16xbf16>, !tile.smem<1x32x16xbf16>
  tile.return
}

// -----

tile.kernel @read_cols_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %t = tile.alloc : !tile.smem<1x1x8xbf16>
  // expected-error@+1 {{expects one row of f32 without swizzle}}
  %f = tile.read_cols %t : !tile.smem<1x1x8xbf16> -> !tile.cols<8xf32>
  tile.return
}

// -----

tile.kernel @read_cols_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %t = tile.alloc : !tile.smem<1x1x16xf32>
  // expected-error@+1 {{expects as many elements as columns, 8}}
  %f = tile.read_cols %t : !tile.smem<1x1x16xf32> -> !tile.cols<8xf32>
  tile.return
}

// -----

tile.kernel @write_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  %t = tile.cells : !tile.cells<1>
  // expected-error@+1 {{expects one thread to do it}}
  tile.write %i, %t[%i] : !tile.cells<1>
  tile.return
}
