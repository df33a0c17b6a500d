// RUN: weft-opt %s --fold-accumulations | FileCheck %s

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!w = tensor<4x5xf32, #weft.axes<dim, hidden>>

weft.state gradient @"grad/embed" <constant, 0.0 : f64> : !table

// The tied table's chain, in the order of execution.
// CHECK-LABEL: @tied
// CHECK: %[[OLD:.*]] = weft.get @"grad/embed"
// CHECK: %[[LOSS:.*]], %[[DX:.*]], %[[DT:.*]] = weft.loss_head_grad %{{.*}} init %[[OLD]]
// CHECK: %[[NEW:.*]] = weft.gather_grad %arg2, %[[DX]] init %[[DT]]
// CHECK-NOT: weft.binary
// CHECK: weft.set @"grad/embed", %[[NEW]]
func.func @tied(%x : !act, %table : !table, %ids : !ids) -> tensor<f32> {
  %loss, %dx, %dt = weft.loss_head_grad %x, %table, %ids {z = 0.0 : f64, smoothing = 0.0 : f64}
    : (!act, !table, !ids) -> (tensor<f32>, !act, !table)
  %g = weft.gather_grad %ids, %dx : (!ids, !act) -> !table
  %old = weft.get @"grad/embed" : !table
  %sum = weft.binary add %dt, %g : (!table, !table) -> !table
  %new = weft.binary add %old, %sum : (!table, !table) -> !table
  weft.set @"grad/embed", %new : !table
  return %loss : tensor<f32>
}

// Products accumulate, the residual's gradient is added once, at the end.
// CHECK-LABEL: @residual
// CHECK: %[[A:.*]] = weft.contract %arg1, %arg3 :
// CHECK: %[[B:.*]] = weft.contract %arg2, %arg3 init %[[A]]
// CHECK: %[[C:.*]] = weft.binary add %[[B]], %arg0
// CHECK: return %[[C]]
func.func @residual(%dx : !act, %da : !hid, %db : !hid, %w : !w) -> !act {
  %a = weft.contract %da, %w : (!hid, !w) -> !act
  %1 = weft.binary add %dx, %a : (!act, !act) -> !act
  %b = weft.contract %db, %w : (!hid, !w) -> !act
  %2 = weft.binary add %1, %b : (!act, !act) -> !act
  return %2 : !act
}

// A product that is used elsewhere too keeps its value.
// CHECK-LABEL: @shared
// CHECK-NOT: init
// CHECK: return
func.func @shared(%da : !hid, %db : !hid, %w : !w) -> (!act, !act) {
  %a = weft.contract %da, %w : (!hid, !w) -> !act
  %b = weft.contract %db, %w : (!hid, !w) -> !act
  %1 = weft.binary add %a, %b : (!act, !act) -> !act
  return %1, %b : !act, !act
}
