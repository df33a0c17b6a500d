// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each kernel breaks the constraint that it is named after, and nothing else.

tile.kernel @map_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects block arguments}}
  %x = tile.map (%f : !tile.frag<64x16xf32>) coordinates {
  ^bb0(%a: f32):
    tile.yield %a : f32
  } -> !tile.frag<64x16xf32>
  tile.return
}

// -----

tile.kernel @map_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects tile.yield of}}
  %x = tile.map (%f : !tile.frag<64x16xf32>) {
  ^bb0(%a: f32):
    tile.yield
  } -> !tile.frag<64x16xf32>
  tile.return
}

// -----

tile.kernel @map_c3(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects results of one shape}}
  %x:2 = tile.map (%f : !tile.frag<64x16xf32>) {
  ^bb0(%a: f32):
    tile.yield %a, %a : f32, f32
  } -> !tile.frag<64x16xf32>, !tile.rows<64xf32>
  tile.return
}

// -----

// A frag does not become rows without a sum.
tile.kernel @map_c3_inputs(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects inputs that repeat to}}
  %x = tile.map (%f : !tile.frag<64x16xf32>) {
  ^bb0(%a: f32):
    tile.yield %a : f32
  } -> !tile.rows<64xf32>
  tile.return
}

// -----

tile.kernel @map_c3_columns(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects inputs that repeat to}}
  %y = tile.map (%c : !tile.cols<8xf32>) {
  ^bb0(%a: f32):
    tile.yield %a : f32
  } -> !tile.frag<64x16xf32>
  tile.return
}

// -----

tile.kernel @map_c4(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  %x = tile.map (%f : !tile.frag<64x16xf32>) {
  ^bb0(%a: f32):
    // expected-error@+1 {{stands in tile.map, which holds arith, math, tile.exp2 and tile.call}}
    %y = tile.cta
    tile.yield %a : f32
  } -> !tile.frag<64x16xf32>
  tile.return
}

// -----

tile.kernel @call_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %one = arith.constant 1.0 : f32
  // expected-error@+1 {{expects to stand in tile.map}}
  %y = tile.call @softcap(%one) : (f32) -> f32
  tile.return
}

// -----

tile.kernel @reduce_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects f32, but got}}
  %x = tile.reduce add %f : !tile.frag<64x16xf32> -> !tile.rows<64xi32>
  tile.return
}

// -----

tile.kernel @quad_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects a result of the operand's type, f32}}
  %x = tile.quad add %h : !tile.rows<64xi32> -> !tile.rows<64xi32>
  tile.return
}

// -----

tile.kernel @cast_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  %r = tile.zero : !tile.rows<64xf32>
  %h = tile.zero : !tile.rows<64xi32>
  %c = tile.zero : !tile.cols<8xf32>
  // expected-error@+1 {{expects f32 to bf16 or bf16 to f32, of one shape}}
  %x = tile.cast %f : !tile.frag<64x16xf32> -> !tile.frag<64x32xbf16>
  tile.return
}

// -----

tile.kernel @cast_c1_same(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x16xf32>
  // expected-error@+1 {{expects f32 to bf16 or bf16 to f32, of one shape}}
  %x = tile.cast %f : !tile.frag<64x16xf32> -> !tile.frag<64x16xf32>
  tile.return
}

// -----

tile.kernel @columns_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x32xf32>
  // expected-error@+1 {{expects one type of elements}}
  %x = tile.columns %f from 0 : !tile.frag<64x32xf32> -> !tile.frag<64x16xbf16>
  tile.return
}

// -----

tile.kernel @columns_c2(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x32xbf16>
  // expected-error@+1 {{expects a multiple of 16 with 16 columns from there on}}
  %x = tile.columns %f from 8 : !tile.frag<64x32xbf16> -> !tile.frag<64x16xbf16>
  tile.return
}

// -----

tile.kernel @columns_c2_end(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %f = tile.zero : !tile.frag<64x32xf32>
  // expected-error@+1 {{expects a multiple of 8 with 16 columns from there on}}
  %x = tile.columns %f from 24 : !tile.frag<64x32xf32> -> !tile.frag<64x16xf32>
  tile.return
}

// -----

tile.kernel @splat_c1(%g: !tile.global<f32>, %m: !tile.map) threads 128 shared 131072 items 1 {
  %i = arith.constant 0 : i32
  // expected-error@+1 {{expects a value of 'f32', but got 'i32'}}
  %x = tile.splat %i : i32 -> !tile.rows<64xf32>
  tile.return
}
