// RUN: weft-opt %s --weft-fuse=recompute | FileCheck %s

!act = tensor<2x8x4xf32, #weft.axes<batch, pos, dim>>
!w = tensor<4x4xf32, #weft.axes<dim, out>>
!out = tensor<2x8x4xf32, #weft.axes<batch, pos, out>>
!dim = tensor<4xf32, #weft.axes<dim>>

// The second region reads %x anyway: it computes the norm again, and the first
// stores only what a product reads.
// Mutation caught: the norm still among the first region's results.
// CHECK-LABEL: @norm
// CHECK: %[[H:.*]] = weft.fused
// CHECK: weft.rms_norm
// CHECK: weft.yield %{{[^,]*}} :
// CHECK: weft.contract %[[H]]
// CHECK: weft.fused
// CHECK: weft.rms_norm
// CHECK: weft.rms_norm_grad
func.func @norm(%x : !act, %g : !dim, %w : !w, %w2 : !w) -> !act {
  %n = weft.rms_norm %x {eps = 0.5 : f64} : (!act) -> !act
  %h = weft.binary mul %n, %g : (!act, !dim) -> !act
  %y = weft.contract %h, %w : (!act, !w) -> !out
  %d = weft.contract %y, %w2 : (!out, !w) -> !act
  %m = weft.binary mul %d, %n : (!act, !act) -> !act
  %b = weft.rms_norm_grad %x, %m {eps = 0.5 : f64} : (!act, !act) -> !act
  return %b : !act
}
