// RUN: weft-opt %s --weft-schedule="logits-bytes=1792" | FileCheck %s

!x = tensor<2x75x3xf32, #weft.axes<batch, pos, dim>>
!table = tensor<7x3xf32, #weft.axes<vocab, dim>>
!ids = tensor<2x75xi32, #weft.axes<batch, pos>>
!weight = tensor<2x75xf32, #weft.axes<batch, pos>>

// 150 tokens of 28 bytes of logits, 64 of which fit: chunks of 64, 64 and 22 in
// one buffer of 64 rows. The full chunks share their kernels, the last has its
// own. The sum over dtable's chunks is in place from the second on, over zeros.
// Mutations caught: whole logits; the rest left out; the starts of parts counted
// in tokens instead of elements; dtable overwritten by each chunk.
// CHECK: weft.program @micro
// CHECK: %[[ROWS:.*]] = weft.buffer arena : tensor<150xf32, #weft.axes<token>>
// CHECK: %[[LOGITS:.*]] = weft.buffer arena : tensor<64x7xf32, #weft.axes<token, vocab>>
// CHECK-NOT: x7xf32, #weft.axes<batch, pos, vocab>
// CHECK: weft.fill %[[DTABLE:.*]] : tensor<7x3xf32
// CHECK: %[[X0:.*]] = weft.view %[[X:.*]] from 0 : {{.*}} -> tensor<64x3xf32, #weft.axes<token, dim>>
// CHECK: %[[T0:.*]] = weft.view %[[T:.*]] from 0 : {{.*}} -> tensor<64xi32, #weft.axes<token>>
// CHECK: %[[R0:.*]] = weft.view %[[ROWS]] from 0
// CHECK: weft.call @[[PRODUCT:loss_head_logits_.*]] ins(%[[X0]], %[[TABLE:.*]] : {{.*}}) outs(%[[LOGITS]] :
// CHECK: %[[W0:.*]] = weft.view %{{.*}} from 0
// CHECK: weft.call @[[LOSS:loss_rows_.*]] ins(%[[LOGITS]], %[[T0]], %[[W0]] : {{.*}}) outs(%[[LOGITS]], %[[R0]] :
// CHECK: weft.call @[[DX:loss_head_dx_.*]] ins(%[[LOGITS]], %[[TABLE]] : {{.*}}) outs(%{{.*}} :
// CHECK: weft.call @[[DT:loss_head_dtable_.*]] ins(%[[LOGITS]], %{{.*}}, %[[DTABLE]] : {{.*}}) outs(%[[DTABLE]] :
// CHECK: weft.view %[[X]] from 192 :
// CHECK: weft.view %[[T]] from 64 :
// CHECK: weft.view %[[ROWS]] from 64 :
// CHECK: weft.call @[[PRODUCT]]
// CHECK: weft.call @[[LOSS]]
// CHECK: weft.call @[[DX]]
// CHECK: weft.call @[[DT]]
// CHECK: weft.view %[[X]] from 384 : {{.*}} -> tensor<22x3xf32
// CHECK-NOT: weft.call @[[PRODUCT]]
// CHECK: weft.call @loss_head_dtable_{{.*}} outs(%[[DTABLE]] :
// CHECK: weft.call @loss_sum_{{.*}} ins(%[[ROWS]] : {{.*}}) outs(
weft.state parameter @embed <normal, 1.0 : f64> offset 0 : !table
weft.kernel @head rows [] chunks 1 (%x : !x, %t : !table, %ids : !ids, %weight : !weight) -> (tensor<f32>, !x, !table) {
  %l, %dx, %dt = weft.loss_head_grad %x, %t, %ids weight %weight {z = 0.0 : f64, smoothing = 0.0 : f64}
    : (!x, !table, !ids, !weight) -> (tensor<f32>, !x, !table)
  weft.yield %l, %dx, %dt : tensor<f32>, !x, !table
}
func.func @micro(%x : !x {weft.name = "x"}, %ids : !ids {weft.name = "targets"}, %weight : !weight {weft.name = "weight"})
    -> (tensor<f32> {weft.name = "loss_sum"}, !x {weft.name = "dx"}, !table {weft.name = "dtable"}) {
  %t = weft.get @embed : !table
  %l, %dx, %dt = weft.launch @head(%x, %t, %ids, %weight) : (!x, !table, !ids, !weight) -> (tensor<f32>, !x, !table)
  return %l, %dx, %dt : tensor<f32>, !x, !table
}
