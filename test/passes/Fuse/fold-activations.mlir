// RUN: weft-opt %s --weft-fold-activations | FileCheck %s

!x = tensor<2x8x16xbf16, #weft.axes<batch, pos, dim>>
!xf = tensor<2x8x16xf32, #weft.axes<batch, pos, dim>>
!h = tensor<2x8x32xbf16, #weft.axes<batch, pos, hidden>>
!hf = tensor<2x8x32xf32, #weft.axes<batch, pos, hidden>>
!o = tensor<2x8x12xbf16, #weft.axes<batch, pos, odd>>
!of = tensor<2x8x12xf32, #weft.axes<batch, pos, odd>>
!up = tensor<16x32xbf16, #weft.axes<dim, hidden>>
!upf = tensor<16x32xf32, #weft.axes<dim, hidden>>
!odd = tensor<16x12xbf16, #weft.axes<dim, odd>>
!oddf = tensor<16x12xf32, #weft.axes<dim, odd>>

weft.kernel @up_0 rows [] chunks 1 (%x: !x, %w: !up) -> (!h) attributes {weft.hash = "0"} {
  %0 = weft.convert %x : (!x) -> !xf
  %1 = weft.convert %w : (!up) -> !upf
  %2 = weft.contract %0, %1 : (!xf, !upf) -> !hf
  %3 = weft.convert %2 : (!hf) -> !h
  weft.yield %3 : !h
}
weft.kernel @gelu_1 rows ["batch", "pos"] chunks 2 (%x: !h) -> (!h) attributes {weft.hash = "1"} {
  %0 = weft.convert %x : (!h) -> !hf
  %1 = weft.unary gelu_tanh %0 : (!hf) -> !hf
  %2 = weft.convert %1 : (!hf) -> !h
  weft.yield %2 : !h
}
weft.kernel @silu_2 rows ["batch", "pos"] chunks 2 (%x: !h) -> (!h) attributes {weft.hash = "2"} {
  %0 = weft.convert %x : (!h) -> !hf
  %1 = weft.unary silu %0 : (!hf) -> !hf
  %2 = weft.convert %1 : (!hf) -> !h
  weft.yield %2 : !h
}
// x is the second argument.
weft.kernel @grad_3 rows ["batch", "pos"] chunks 2 (%dy: !h, %x: !h) -> (!h) attributes {weft.hash = "3"} {
  %0 = weft.convert %dy : (!h) -> !hf
  %1 = weft.convert %x : (!h) -> !hf
  %2 = weft.unary_grad gelu_tanh %1, %0 : (!hf, !hf) -> !hf
  %3 = weft.convert %2 : (!hf) -> !h
  weft.yield %3 : !h
}
weft.kernel @odd_4 rows [] chunks 1 (%x: !x, %w: !odd) -> (!o) attributes {weft.hash = "4"} {
  %0 = weft.convert %x : (!x) -> !xf
  %1 = weft.convert %w : (!odd) -> !oddf
  %2 = weft.contract %0, %1 : (!xf, !oddf) -> !of
  %3 = weft.convert %2 : (!of) -> !o
  weft.yield %3 : !o
}
weft.kernel @grad_5 rows ["batch", "pos"] chunks 2 (%dy: !o, %x: !o) -> (!o) attributes {weft.hash = "5"} {
  %0 = weft.convert %dy : (!o) -> !of
  %1 = weft.convert %x : (!o) -> !of
  %2 = weft.unary_grad gelu_tanh %1, %0 : (!of, !of) -> !of
  %3 = weft.convert %2 : (!of) -> !o
  weft.yield %3 : !o
}

// The gradient's x is the last operand, wherever it stood before, and dy the product
// before it is rounded. Mutations caught: x and dy exchanged; the rounded product read.
// CHECK: weft.kernel @up_gelu_tanh_grad_
// CHECK-SAME: (%{{.*}}: {{.*}}, %{{.*}}: {{.*}}, %[[X:.*]]: tensor<2x8x32xbf16
// CHECK: %[[XF:.*]] = weft.convert %[[X]]
// CHECK: %[[Y:.*]] = weft.contract
// CHECK-NEXT: %[[DX:.*]] = weft.unary_grad gelu_tanh %[[XF]], %[[Y]]
// CHECK-NEXT: %[[N:.*]] = weft.convert %[[DX]]
// CHECK-NEXT: weft.yield %[[N]]

// gelu_tanh itself stays a kernel of its own, kept for the backward pass or not. Mutation
// caught: the forward pair folded.
// CHECK-LABEL: func.func @forward
// CHECK: weft.launch @up_0
// CHECK: weft.launch @gelu_1
func.func @forward(%x : !x, %w : !up) -> (!h, !h) {
  %y = weft.launch @up_0(%x, %w) : (!x, !up) -> !h
  %h = weft.launch @gelu_1(%y) : (!h) -> !h
  return %h, %y : !h, !h
}

// CHECK-LABEL: func.func @backward
// CHECK-NEXT: %[[D:.*]] = weft.launch @[[GRAD:up_gelu_tanh_grad_[0-9a-f]+]](%arg0, %arg1, %arg2) : {{.*}} -> tensor<2x8x32xbf16
// CHECK-NEXT: return %[[D]]
func.func @backward(%x : !x, %w : !up, %kept : !h) -> !h {
  %d = weft.launch @up_0(%x, %w) : (!x, !up) -> !h
  %dx = weft.launch @grad_3(%d, %kept) : (!h, !h) -> !h
  return %dx : !h
}

// Left as they were: an activation that is silu; a gradient's product that is read
// twice; a gradient of rows of 24 bytes, which are not whole multiples of 16.
// CHECK-LABEL: func.func @others
// CHECK: weft.launch @up_0
// CHECK: weft.launch @silu_2
// CHECK: weft.launch @up_0
// CHECK: weft.launch @grad_3
// CHECK: weft.launch @odd_4
// CHECK: weft.launch @grad_5
func.func @others(%x : !x, %w : !up, %kept : !h, %o : !odd, %kept_odd : !o) -> (!h, !h, !h, !h, !o) {
  %y = weft.launch @up_0(%x, %w) : (!x, !up) -> !h
  %s = weft.launch @silu_2(%y) : (!h) -> !h
  %d = weft.launch @up_0(%x, %w) : (!x, !up) -> !h
  %dx = weft.launch @grad_3(%d, %kept) : (!h, !h) -> !h
  %z = weft.launch @odd_4(%x, %o) : (!x, !odd) -> !o
  %g = weft.launch @grad_5(%z, %kept_odd) : (!o, !o) -> !o
  return %y, %s, %d, %dx, %g : !h, !h, !h, !h, !o
}
