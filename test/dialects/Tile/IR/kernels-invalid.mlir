// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each kernel breaks the constraint that it is named after, and nothing else.

// expected-error@+1 {{expects a multiple of 128 threads, at most 1024, but got 96}}
tile.kernel @kernel_c1() threads 96 shared 0 items 1 {
  tile.return
}

// -----

// expected-error@+1 {{expects globals, then maps as parameters, but parameter 1 is}}
tile.kernel @kernel_c2(%m: !tile.map, %g: !tile.global<f32>) threads 128 shared 0 items 1 {
  tile.return
}

// -----

// expected-error@+1 {{expects at least one item, but got 0}}
tile.kernel @kernel_c3() threads 128 shared 0 items 0 {
  tile.return
}

// -----

// expected-error@+1 {{expects rings, barriers and cells within 8192 bytes of shared memory, but they take 9216}}
tile.kernel @kernel_c4() threads 128 shared 8192 items 1 {
  %r = tile.alloc : !tile.smem<1x64x64xbf16, swizzle 128>
  %b = tile.barriers : !tile.barriers<2>
  tile.return
}

// -----

tile.kernel @next_item_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  // expected-error@+1 {{expects one thread to do it}}
  %n = tile.next_item
  tile.return
}

// -----

tile.kernel @elect_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  tile.elect {
    // expected-error@+1 {{stands in tile.elect, where one thread acts}}
    tile.fence_products
  }
  tile.return
}

// -----

tile.kernel @specialize_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  // expected-error@+1 {{expects a producer and at least one consumer}}
  tile.specialize producer 24 {
  } consumers 240 {
  }
  tile.return
}

// -----

tile.kernel @specialize_c2(%g: !tile.global<f32>, %m: !tile.map) threads 384 shared 131072 items 1 {
  // expected-error@+1 {{expects a multiple of 8 registers from 24 to 256, but got 20}}
  tile.specialize producer 20 {
  } consumers 240 {
  }
  tile.return
}

// -----

tile.kernel @specialize_c3(%g: !tile.global<f32>, %m: !tile.map) threads 384 shared 131072 items 1 {
  // expected-error@+1 {{expects roles of at most 504 registers together, which is what the CTA starts with, but got 512}}
  tile.specialize producer 32 {
  } consumers 240 {
  }
  tile.return
}

// -----

tile.kernel @init_barrier_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  // expected-error@+1 {{expects one thread to do it: put it into tile.elect}}
  tile.init_barrier %b[%i] count 1 : !tile.barriers<2>
  tile.return
}

// -----

tile.kernel @init_barrier_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  tile.elect {
    // expected-error@+1 {{expects a count from 1 to 1048575, but got 0}}
    tile.init_barrier %b[%i] count 0 : !tile.barriers<2>
  }
  tile.return
}

// -----

tile.kernel @fence_init_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  // expected-error@+1 {{expects one thread to do it: put it into tile.elect}}
  tile.fence_init
  tile.return
}

// -----

tile.kernel @expect_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  // expected-error@+1 {{expects one thread to do it: put it into tile.elect}}
  tile.expect %b[%i] bytes 16 : !tile.barriers<2>
  tile.return
}

// -----

tile.kernel @expect_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  tile.elect {
    // expected-error@+1 {{expects from 1 to 1048575 bytes, but got 0}}
    tile.expect %b[%i] bytes 0 : !tile.barriers<2>
  }
  tile.return
}

// -----

// Two tiles of 8,192 bytes come, one was expected; copies onto the other barrier do not count.
tile.kernel @expect_c3(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %b = tile.barriers : !tile.barriers<2>
  %i = arith.constant 0 : i32
  %t = tile.alloc : !tile.smem<1x64x64xbf16, swizzle 128>
  %j = arith.constant 1 : i32
  tile.elect {
    // expected-error@+1 {{expects the bytes of the copies that follow onto this barrier, 16384, but got 8192}}
    tile.expect %b[%i] bytes 8192 : !tile.barriers<2>
    tile.load_tile %m[%i, %i] to %t barrier %b[%i] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<2>
    tile.load_tile %m[%i, %i] to %t barrier %b[%j] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<2>
    tile.load_tile %m[%i, %i] to %t barrier %b[%i] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<2>
  }
  tile.return
}

// -----

tile.kernel @sync_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  // expected-error@+1 {{expects a multiple of 128 threads, at most the kernel's, but got 256}}
  tile.sync %i threads 256
  tile.return
}

// -----

tile.kernel @sync_arrive_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  // expected-error@+1 {{expects a multiple of 128 threads, at most the kernel's, but got 64}}
  tile.sync_arrive %i threads 64
  tile.return
}
