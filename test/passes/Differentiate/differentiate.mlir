// RUN: weft-opt %s --differentiate --split-input-file --verify-diagnostics | FileCheck %s

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>

// Tied table: both gradients are summed, the loss comes from its gradient's op,
// the frozen gain gets nothing.
// CHECK-LABEL: @micro
// CHECK-DAG: %[[OE:.*]] = weft.get @"grad/embed"
// CHECK-DAG: %[[OG:.*]] = weft.get @"grad/gain"
// CHECK: %[[N:.*]] = weft.rms_norm %[[X:.*]] {eps
// CHECK: %[[Y:.*]] = weft.binary mul %[[N]], %[[GAIN:.*]] :
// CHECK: %[[LOSS:.*]], %[[DX:.*]], %[[DT:.*]] = weft.loss_head_grad
// CHECK-NOT: weft.loss_head %
// CHECK: %[[DN:.*]] = weft.binary mul %[[DZ:.*]], %[[GAIN]] :
// CHECK: %[[FULL:.*]] = weft.binary mul %[[DZ]], %[[N]]
// CHECK: %[[DGAIN:.*]] = weft.sum_to %[[FULL]]
// CHECK: %[[DE:.*]] = weft.rms_norm_grad %[[X]], %[[DN]]
// CHECK: %[[DT2:.*]] = weft.gather_grad %arg0, %[[DE]]
// CHECK: %[[SUM:.*]] = weft.binary add %[[DT]], %[[DT2]]
// CHECK: %[[NE:.*]] = weft.binary add %[[OE]], %[[SUM]]
// CHECK: weft.set @"grad/embed", %[[NE]]
// CHECK: %[[NG:.*]] = weft.binary add %[[OG]], %[[DGAIN]]
// CHECK: weft.set @"grad/gain", %[[NG]]
// CHECK-NOT: weft.set
// CHECK: return %[[LOSS]]
module {
  weft.state parameter @embed <normal, 1.0 : f64> : !table
  weft.state parameter @gain <constant, 1.0 : f64> : !gain
  weft.state parameter @frozen <constant, 1.0 : f64> : !gain
  weft.state gradient @"grad/embed" <constant, 0.0 : f64> : !table
  weft.state gradient @"grad/gain" <constant, 0.0 : f64> : !gain
  func.func @micro(%tokens : !ids, %targets : !ids) -> (tensor<f32> {weft.name = "loss_sum"}) {
    %embed = weft.get @embed : !table
    %gain = weft.get @gain : !gain
    %frozen = weft.get @frozen : !gain
    %x = weft.gather %embed, %tokens : (!table, !ids) -> !act
    %n = weft.rms_norm %x {eps = 1.0e-6 : f64} : (!act) -> !act
    %y = weft.binary mul %n, %gain : (!act, !gain) -> !act
    %z = weft.binary add %y, %frozen : (!act, !gain) -> !act
    %loss = weft.loss_head %z, %embed, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!act, !table, !ids) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!w = tensor<4x7xf32, #weft.axes<dim, vocab>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>

// Whole logits, half the loss: the factor scales the gradient, and the loss is
// the sum of the rows' in the place of the old one.
// CHECK-LABEL: @micro
// CHECK: %[[DL:.*]], %[[ROWS:.*]] = weft.cross_entropy_grad
// CHECK: %[[CE:.*]] = weft.sum_to %[[ROWS]]
// CHECK: %[[LOSS:.*]] = weft.binary mul %[[CE]], %[[HALF:.*]] :
// CHECK: %[[UP:.*]] = weft.binary mul %{{.*}}, %[[HALF]]
// CHECK: %[[SCALED:.*]] = weft.binary mul %[[DL]], %[[UP]]
// CHECK: weft.contract %arg0, %[[SCALED]] : {{.*}} -> tensor<4x7xf32, #weft.axes<dim, vocab>>
// CHECK-NOT: weft.contract
// CHECK: return %[[LOSS]]
module {
  weft.state parameter @w <normal, 1.0 : f64> : !w
  weft.state gradient @"grad/w" <constant, 0.0 : f64> : !w
  func.func @micro(%x : !act, %targets : !ids) -> (tensor<f32> {weft.name = "loss_sum"}) {
    %half = weft.constant {value = 0.5 : f64} : tensor<f32>
    %w = weft.get @w : !w
    %logits = weft.contract %x, %w : (!act, !w) -> !logits
    %ce = weft.cross_entropy %logits, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f32>
    %loss = weft.binary mul %ce, %half : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

!q = tensor<1x2x3x2xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<1x2x3xf32, #weft.axes<batch, pos, heads>>
!ids = tensor<1x2xi32, #weft.axes<batch, pos>>

module {
  weft.state parameter @w <normal, 1.0 : f64> : !q
  weft.state gradient @"grad/w" <constant, 0.0 : f64> : !q
  func.func @micro(%doc : !ids) -> (tensor<f32> {weft.name = "loss_sum"}) {
    %w = weft.get @w : !q
    %windows = weft.integers [1, 2, 2] : tensor<3xi32>
    // expected-error@+2 {{the loss depends on the log-sums of weft.attend}}
    // expected-error@+1 {{weft.attend built no gradient}}
    %a, %lse = weft.attend %w, %w, %w windows %windows documents %doc {scale = 0.7 : f64}
      : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse)
    %loss = weft.sum_to %lse : (!lse) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module {
  weft.state parameter @w <normal, 1.0 : f64> : tensor<8xf32>
  weft.state gradient @"grad/w" <constant, 0.0 : f64> : tensor<8xf32>
  func.func @micro(%factor : tensor<f32>) -> (tensor<f32> {weft.name = "loss_sum"}) {
    %w = weft.get @w : tensor<8xf32>
    // expected-error@+1 {{weft.norm has no gradient, but the loss depends on a parameter through it}}
    %loss = weft.norm %w, %factor : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
