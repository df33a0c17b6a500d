// RUN: weft-opt %s --split-input-file --verify-diagnostics --weft-freeze-heads

// expected-error@below {{heads of other are to be frozen or pruned: expected one attend there, found 0}}
module attributes {weft.pruned = {other = array<i64: 0>}} {
  func.func @forward() { return }
}

// -----

// expected-error@below {{expected {heads = array<i64: ...>, windows = array<i32: ...> of as many, trained = true or false}}}
module attributes {weft.frozen = {s = {heads = array<i64: 0>, windows = array<i32>, trained = false}}} {
  func.func @forward() { return }
}

// -----

// expected-error@below {{freeze-heads found no function @forward: unroll layers first}}
module attributes {weft.pruned = {s = array<i64: 0>}} {
}

// -----

!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!h = tensor<2x8x2x2xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x2xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.pruned = {s = array<i64: 2>}} {
  func.func @forward(%x: !h, %d: !ids) -> !h {
    %w = weft.integers [8, 8] : tensor<2xi32>
    // expected-error@unknown {{the pruned heads of s: expected increasing numbers below its 2 heads, found 2}}
    %a, %lse = weft.attend %x, %x, %x windows %w documents %d {scale = 0.5 : f64} : (!h, !h, !h, tensor<2xi32>, !ids) -> (!h, !l) loc("in s")
    return %a : !h
  }
}

// -----

!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!h = tensor<2x8x2x2xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x2xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.pruned = {s = array<i64: 1, 0>}} {
  func.func @forward(%x: !h, %d: !ids) -> !h {
    %w = weft.integers [8, 8] : tensor<2xi32>
    // expected-error@unknown {{the pruned heads of s: expected increasing numbers below its 2 heads, found 0}}
    %a, %lse = weft.attend %x, %x, %x windows %w documents %d {scale = 0.5 : f64} : (!h, !h, !h, tensor<2xi32>, !ids) -> (!h, !l) loc("in s")
    return %a : !h
  }
}

// -----

!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!h = tensor<2x8x2x2xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x2xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.frozen = {s = {heads = array<i64: 1>, windows = array<i32: 1>, trained = false}}, weft.pruned = {s = array<i64: 1>}} {
  func.func @forward(%x: !h, %d: !ids) -> !h {
    %w = weft.integers [8, 8] : tensor<2xi32>
    // expected-error@unknown {{head 1 of s is to be frozen and pruned: expected one of the two}}
    %a, %lse = weft.attend %x, %x, %x windows %w documents %d {scale = 0.5 : f64} : (!h, !h, !h, tensor<2xi32>, !ids) -> (!h, !l) loc("in s")
    return %a : !h
  }
}

// -----

!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!h = tensor<2x8x2x2xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x2xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.frozen = {s = {heads = array<i64: 1>, windows = array<i32: 1>, trained = false, length = 4 : i64}}} {
  func.func @forward(%x: !h, %d: !ids) -> !h {
    %w = weft.integers [8, 8] : tensor<2xi32>
    // expected-error@unknown {{the patterns of s were fitted for 4 positions, this program has 8: use at most 4}}
    %a, %lse = weft.attend %x, %x, %x windows %w documents %d {scale = 0.5 : f64} : (!h, !h, !h, tensor<2xi32>, !ids) -> (!h, !l) loc("in s")
    return %a : !h
  }
}

// -----

// expected-error@below {{first_places = array<i32: 40> for 's': expected a multiple of 64 for each of its 1 heads}}
module attributes {weft.frozen = {s = {first_places = array<i32: 40>, heads = array<i64: 0>, trained = false, windows = array<i32: 8>}}} {
  func.func @forward() { return }
}
