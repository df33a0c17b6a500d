// RUN: weft-opt %s --weft-bucket-heads | FileCheck %s

// Widest first, heads of one class by number; a window past the last key is as
// wide as all keys. Mutation caught: a sort that is not stable, windows that are
// not cut at the keys.

!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!q = tensor<2x8x2x2x4xf32, #weft.axes<batch, pos, kv, group, head>>
!k = tensor<2x8x2x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x8x2x2xf32, #weft.axes<batch, pos, kv, group>>
!w = tensor<4xi32>

weft.state control @"control/windows/attn" <constant, 2147483647.0 : f64> : !w

// CHECK-LABEL: func.func @mixed
func.func @mixed(%q : !q, %k : !k, %d : !ids, %do : !q) -> !k {
  %w = weft.integers [2, 3, 100, 8] : !w
  // CHECK: weft.attend {{.*}} order [2, 3, 1, 0] {scale
  %o, %l = weft.attend %q, %k, %k windows %w documents %d {scale = 0.5 : f64} : (!q, !k, !k, !w, !ids) -> (!q, !lse)
  // CHECK: weft.attend_grad_query {{.*}} order [2, 3, 1, 0] {scale
  %dq, %e = weft.attend_grad_query %q, %k, %k windows %w documents %d, %o, %l, %do {scale = 0.5 : f64}
    : (!q, !k, !k, !w, !ids, !q, !lse, !q) -> (!q, !lse)
  // Five keys against sixteen: the second key-value head first.
  // CHECK: weft.attend_grad_key_value {{.*}} order [1, 0] {scale
  %dk, %dv = weft.attend_grad_key_value %q, %k, %k windows %w documents %d, %l, %e, %do {scale = 0.5 : f64}
    : (!q, !k, !k, !w, !ids, !lse, !lse, !q) -> (!k, !k)
  return %dk : !k
}

// Nothing to gain: equal, already in order, or not known.
// CHECK-LABEL: func.func @as_it_is
// CHECK-NOT: order
func.func @as_it_is(%q : !q, %k : !k, %d : !ids) -> (!q, !q, !q) {
  %equal = weft.integers [4, 4, 4, 4] : !w
  %ordered = weft.integers [2147483647, 8, 3, 3] : !w
  %state = weft.get @"control/windows/attn" : !w
  %o, %l = weft.attend %q, %k, %k windows %equal documents %d {scale = 0.5 : f64} : (!q, !k, !k, !w, !ids) -> (!q, !lse)
  %o2, %l2 = weft.attend %q, %k, %k windows %ordered documents %d {scale = 0.5 : f64} : (!q, !k, !k, !w, !ids) -> (!q, !lse)
  %o3, %l3 = weft.attend %q, %k, %k windows %state documents %d {scale = 0.5 : f64} : (!q, !k, !k, !w, !ids) -> (!q, !lse)
  return %o, %o2, %o3 : !q, !q, !q
}
