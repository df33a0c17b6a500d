// RUN: weft-opt %s --weft-schedule="chip=sm_90a" | FileCheck %s

!x = tensor<2x3x8xbf16, #weft.axes<batch, pos, dim>>
!xf = tensor<2x3x8xf32, #weft.axes<batch, pos, dim>>
!table = tensor<7x8xbf16, #weft.axes<vocab, dim>>
!tf = tensor<7x8xf32, #weft.axes<vocab, dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>

// Rows of 7 classes in bf16 take 64 columns on a GPU: the table gets 57 rows of
// zeros, the loss is told how many columns count, and dtable is summed with the
// padding and copied without it. Mutations caught: the zeros over the table's rows,
// the padding's part of the sum copied, all 64 columns taken for classes.
// CHECK: weft.cross_entropy_grad {{.*}}weft.classes = 7 : i64
// CHECK: weft.program @micro
// CHECK: %[[LOGITS:.*]] = weft.buffer arena : tensor<6x64xbf16, #weft.axes<token, vocab>>
// CHECK: %[[WHOLE:.*]] = weft.buffer arena : tensor<64x8xbf16, #weft.axes<vocab, dim>>
// CHECK: %[[TOP:.*]] = weft.view %[[WHOLE]] from 0 : {{.*}} -> tensor<7x8xbf16
// CHECK: weft.copy %{{.*}} to %[[TOP]]
// CHECK: %[[REST:.*]] = weft.view %[[WHOLE]] from 56 : {{.*}} -> tensor<57x8xbf16
// CHECK: weft.fill %[[REST]]
// CHECK: %[[SUM:.*]] = weft.buffer arena : tensor<64x8xf32, #weft.axes<vocab, dim>>
// CHECK: weft.fill %[[SUM]]
// CHECK: weft.call @loss_head_logits_{{.*}} ins(%{{.*}}, %[[WHOLE]] : {{.*}}) outs(%[[LOGITS]] :
// CHECK: weft.call @loss_head_dx_{{.*}} ins(%[[LOGITS]], %[[WHOLE]] :
// CHECK: weft.call @loss_head_dtable_{{.*}} outs(%[[SUM]] :
// CHECK: %[[PART:.*]] = weft.view %[[SUM]] from 0 : {{.*}} -> tensor<7x8xf32
// CHECK: weft.copy %[[PART]] to
weft.kernel @head rows [] chunks 1 (%x : !x, %t : !table, %ids : !ids) -> (tensor<f32>, !x, !tf) {
  %0 = weft.convert %x : (!x) -> !xf
  %1 = weft.convert %t : (!table) -> !tf
  %l, %dx, %dt = weft.loss_head_grad %0, %1, %ids {z = 0.0 : f64, smoothing = 0.0 : f64}
    : (!xf, !tf, !ids) -> (tensor<f32>, !xf, !tf)
  %2 = weft.convert %dx : (!xf) -> !x
  weft.yield %l, %2, %dt : tensor<f32>, !x, !tf
}
func.func @micro(%x : !x {weft.name = "x"}, %t : !table {weft.name = "table"}, %ids : !ids {weft.name = "targets"})
    -> (tensor<f32> {weft.name = "loss_sum"}, !x {weft.name = "dx"}, !tf {weft.name = "dtable"}) {
  %l, %dx, %dt = weft.launch @head(%x, %t, %ids) : (!x, !table, !ids) -> (tensor<f32>, !x, !tf)
  return %l, %dx, %dt : tensor<f32>, !x, !tf
}
