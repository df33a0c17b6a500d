// RUN: weft-opt %s --form-programs="programs=micro,observe" --differentiate --form-observe | FileCheck %s

// The attend whose windows are state is observed, its sums are added before the backward pass
// begins; the one with constants is not. Mutation caught: statistics in @micro too, rows
// of padding counted, one attend of another observed, entropies of that one, sums added at the end.

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!act = tensor<2x4x6xf32, #weft.axes<batch, pos, dim>>
!q = tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x4x3xf32, #weft.axes<batch, pos, heads>>
!w = tensor<6x3x2xf32, #weft.axes<dim, heads, head>>
!table = tensor<7x6xf32, #weft.axes<vocab, dim>>
!logits = tensor<2x4x7xf32, #weft.axes<batch, pos, vocab>>

// CHECK: weft.state control @"control/windows/block.1.attn"
// CHECK: weft.state control @"control/statistics/block.1.attn" <constant, 0.000000e+00 : f64> : tensor<3x12xf32, #weft.axes<head_number, statistic>>
// CHECK-LABEL: func.func @micro
// CHECK-NOT: statistic
// CHECK: func.func @observe(%{{.*}} {weft.name = "tokens"}, %[[T:.*]]: tensor<2x4xi32, #weft.axes<batch, pos>> {weft.name = "targets"}, %[[D:.*]]: tensor<2x4xi32, #weft.axes<batch, pos>> {weft.name = "doc_start"}) -> (tensor<f32> {weft.name = "loss_sum"})
// CHECK: weft.attend
// CHECK-NOT: entropies
// CHECK: %[[W:.*]] = weft.get @"control/windows/block.1.attn"
// CHECK: %[[O:[^,]*]], %{{[^,]*}}, %[[E:[^,]*]] = weft.attend %{{.*}} windows %[[W]] documents %[[D]] {entropies, scale = 5.000000e-01 : f64}
// CHECK-NEXT: %[[S:.*]] = weft.head_statistics %{{.*}}, %{{.*}}, %{{.*}}, %[[O]], %[[E]] windows %[[W]] documents %[[D]] targets %[[T]] :
// CHECK-NEXT: %[[OLD:.*]] = weft.get @"control/statistics/block.1.attn"
// CHECK-NEXT: %[[NEW:.*]] = weft.binary add %[[OLD]], %[[S]]
// CHECK-NEXT: weft.set @"control/statistics/block.1.attn", %[[NEW]]
// CHECK-NOT: head_statistics
// CHECK: weft.set @"grad/wq"
// CHECK-NOT: head_statistics

weft.state parameter @embed <normal, 1.0 : f64> : !table
weft.state parameter @wq <normal, 1.0 : f64> : !w
weft.state control @"control/windows/block.1.attn" <constant, 2147483647.0 : f64> : tensor<3xi32>

func.func @forward(%tokens : !ids {weft.name = "tokens"}, %targets : !ids {weft.name = "targets"}, %doc : !ids {weft.name = "doc_start"})
    -> (tensor<f32> {weft.name = "loss"}) {
  %e = weft.get @embed : !table
  %wq = weft.get @wq : !w
  %x = weft.gather %e, %tokens : (!table, !ids) -> !act
  %q = weft.contract %x, %wq : (!act, !w) -> !q
  %three = weft.integers [1, 2, 3] : tensor<3xi32>
  %a, %la = weft.attend %q, %q, %q windows %three documents %doc {scale = 0.5 : f64} : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse)
  %windows = weft.get @"control/windows/block.1.attn" : tensor<3xi32>
  %b, %lb = weft.attend %q, %a, %q windows %windows documents %doc {scale = 0.5 : f64} : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse)
  %y = weft.contract %b, %wq : (!q, !w) -> !act
  %logits = weft.contract %y, %e : (!act, !table) -> !logits
  %loss = weft.cross_entropy %logits, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f32>
  return %loss : tensor<f32>
}
