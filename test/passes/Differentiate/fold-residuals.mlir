// RUN: weft-opt %s --fold-accumulations=residuals | FileCheck %s

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>
!w = tensor<4x5xf32, #weft.axes<dim, hidden>>

// A product starts from the stream that it is added to.
// Mutation caught: the option not asked.
// CHECK-LABEL: @branch
// CHECK: %[[X:.*]] = weft.contract %arg1, %arg2 init %arg0
// CHECK-NOT: weft.binary
// CHECK: return %[[X]]
func.func @branch(%x : !act, %h : !hid, %w : !w) -> !act {
  %b = weft.contract %h, %w : (!hid, !w) -> !act
  %y = weft.binary add %x, %b : (!act, !act) -> !act
  return %y : !act
}

// What is made after the product can't be its start.
// Mutation caught: order not looked at.
// CHECK-LABEL: @later
// CHECK: %[[B:.*]] = weft.contract %arg1, %arg2 :
// CHECK: %[[N:.*]] = weft.rms_norm %[[B]]
// CHECK: weft.binary add %[[N]], %arg0
func.func @later(%x : !act, %h : !hid, %w : !w) -> (!act, !act) {
  %b = weft.contract %h, %w : (!hid, !w) -> !act
  %n = weft.rms_norm %b {eps = 0.5 : f64} : (!act) -> !act
  %y = weft.binary add %n, %x : (!act, !act) -> !act
  return %y, %b : !act, !act
}
