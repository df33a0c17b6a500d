// RUN: weft-opt %s --form-loss-head --split-input-file --verify-diagnostics | FileCheck %s

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>

// The product stays for the output; the loss no longer reads it.
// CHECK-LABEL: @forward
// CHECK: %[[L:.*]] = weft.contract %arg0, %arg1
// CHECK: %[[LOSS:.*]] = weft.loss_head %arg0, %arg1, %arg2 {smoothing = 1.000000e-01 : f64, z = 0.000000e+00 : f64}
// CHECK-NOT: weft.cross_entropy
// CHECK: return %{{.*}}, %[[L]]
func.func @forward(%x : !act, %table : !table, %targets : !ids {weft.name = "targets"})
    -> (tensor<f32> {weft.name = "loss"}, !logits {weft.name = "logits"}) {
  %half = weft.constant {value = 0.5 : f64} : tensor<f32>
  %logits = weft.contract %x, %table : (!act, !table) -> !logits
  %ce = weft.cross_entropy %logits, %targets {z = 0.0 : f64, smoothing = 0.1 : f64} : (!logits, !ids) -> tensor<f32>
  %loss = weft.binary mul %half, %ce : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss, %logits : tensor<f32>, !logits
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!table = tensor<4x7xf32, #weft.axes<dim, vocab>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>

// The table comes first and lies the other way; no output: no product is left.
// CHECK-LABEL: @forward
// CHECK-NEXT: weft.loss_head %arg0, %arg1, %arg2
// CHECK-NEXT: return
func.func @forward(%x : !act, %table : !table, %targets : !ids) -> (tensor<f32> {weft.name = "loss"}) {
  %logits = weft.contract %table, %x : (!table, !act) -> !logits
  %ce = weft.cross_entropy %logits, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f32>
  return %ce : tensor<f32>
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!table = tensor<4x7xf32, #weft.axes<dim, vocab>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>

// CHECK-LABEL: @forward
// CHECK: weft.cross_entropy
func.func @forward(%x : !act, %table : !table, %targets : !ids) -> (tensor<f32> {weft.name = "loss"}) {
  %logits = weft.contract %table, %x : (!table, !act) -> !logits
  %capped = weft.unary tanh %logits : (!logits) -> !logits
  // expected-remark@+1 {{no loss head, logits stay whole: the logits come from weft.unary}}
  %ce = weft.cross_entropy %capped, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f32>
  return %ce : tensor<f32>
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>

func.func @forward(%logits : !logits, %targets : !ids) -> (tensor<f32> {weft.name = "loss"}) {
  %ce = weft.cross_entropy %logits, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f32>
  // expected-error@+1 {{the loss is not linear in cross_entropy: found weft.unary}}
  %log = weft.unary log %ce : (tensor<f32>) -> tensor<f32>
  return %log : tensor<f32>
}
