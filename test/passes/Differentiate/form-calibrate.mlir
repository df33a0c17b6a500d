// RUN: weft-opt %s --form-programs="programs=calibrate,calibrate_branch,calibrate_gradient,calibrate_statistics" --differentiate | FileCheck %s

// Queries come times the scale, so that scores are their products with the keys;
// outputs are summed times the gradients of the loss. Mutations caught: q as it enters the
// product; dropout left in; a gradient of another value than the attend's output.

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!act = tensor<2x4x6xf32, #weft.axes<batch, pos, dim>>
!q = tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x4x3xf32, #weft.axes<batch, pos, heads>>
!w = tensor<6x3x2xf32, #weft.axes<dim, heads, head>>
!table = tensor<7x6xf32, #weft.axes<vocab, dim>>
!logits = tensor<2x4x7xf32, #weft.axes<batch, pos, vocab>>

// CHECK-LABEL: func.func @calibrate(
// CHECK-NOT: targets
// CHECK-SAME: -> (tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>> {weft.name = "block.1.attn.q"}, tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>> {weft.name = "block.1.attn.k"}, {{.*}} {weft.name = "block.1.attn.v"})
// CHECK-NOT: dropout
// CHECK: %[[Q:.*]] = weft.contract
// CHECK: %[[SCALE:.*]] = weft.constant {value = 5.000000e-01 : f64}
// CHECK: %[[SCALED:.*]] = weft.binary mul %[[Q]], %[[SCALE]]
// CHECK: return %[[SCALED]], %[[Q]], %[[Q]]

// The branch goes up to the stream once with its own output, once with the given one.
// CHECK-LABEL: func.func @calibrate_branch(
// CHECK-SAME: %[[MIXED:[a-z0-9]*]]: tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>> {weft.name = "block.1.attn.mixed"})
// CHECK: %[[X:.*]] = weft.gather
// CHECK: %[[OWN:.*]], %{{.*}} = weft.attend
// CHECK: %[[A:.*]] = weft.contract %[[OWN]]
// CHECK: %[[B:.*]] = weft.contract %[[MIXED]]
// CHECK: %[[S:.*]] = weft.binary add %[[X]], %[[A]]
// CHECK: %[[R:.*]] = weft.binary add %[[X]], %[[B]]
// CHECK: return %[[OWN]], %[[S]], %[[R]]

// CHECK-LABEL: func.func @calibrate_gradient(
// CHECK-SAME: {weft.name = "loss_sum"}, tensor<3x2xf32, #weft.axes<heads, head>> {weft.name = "block.1.attn.gate"})
// CHECK-NOT: dropout
// CHECK: %[[OUT:.*]], %{{.*}} = weft.attend
// CHECK: weft.attend_grad_query {{.*}}, %[[OUT]], %{{.*}}, %[[DOUT:.*]] {scale
// CHECK: weft.set @"grad/wq"
// CHECK: %[[GATES:.*]] = weft.binary mul %[[OUT]], %[[DOUT]]
// CHECK: %[[GATE:.*]] = weft.sum_to %[[GATES]]
// CHECK: return %{{.*}}, %[[GATE]]

// Statistics are taken of what enters the product, with its scale and log-sums.
// CHECK-LABEL: func.func @calibrate_statistics(
// CHECK-SAME: %[[SLOTS:[a-z0-9]*]]: tensor<8xi32> {weft.name = "documents"}, %[[REACH:[a-z0-9]*]]: tensor<4xi32> {weft.name = "reach"}, %[[A:[a-z0-9]*]]: tensor<3x4xf32, #weft.axes<live_head, place>> {weft.name = "block.1.attn.a"}, %[[R:[a-z0-9]*]]: {{.*}} {weft.name = "block.1.attn.r"}, %[[Z:[a-z0-9]*]]: {{.*}} {weft.name = "block.1.attn.z"})
// CHECK-NOT: targets
// CHECK: %[[W:.*]] = weft.integers [1, 2, 3]
// CHECK: %{{.*}}, %[[LSE:.*]] = weft.attend %[[Q:.*]], %[[Q]], %[[Q]] windows
// CHECK: %[[C:.*]], %[[D:.*]], %[[S:.*]] = weft.pattern_statistics %[[Q]], %[[Q]], %[[LSE]] windows %[[W]] documents %[[SLOTS]] reach %[[REACH]] pattern %[[A]], %[[R]], %[[Z]] {scale = 5.000000e-01 : f64}
// CHECK: return %[[C]], %[[D]], %[[S]]

weft.state parameter @embed <normal, 1.0 : f64> : !table
weft.state parameter @wq <normal, 1.0 : f64> : !w

func.func @forward(%tokens : !ids {weft.name = "tokens"}, %targets : !ids {weft.name = "targets"}, %doc : !ids {weft.name = "doc_start"})
    -> (tensor<f32> {weft.name = "loss"}) {
  %e = weft.get @embed : !table
  %wq = weft.get @wq : !w
  %x = weft.gather %e, %tokens : (!table, !ids) -> !act
  %q = weft.contract %x, %wq : (!act, !w) -> !q
  %three = weft.integers [1, 2, 3] : tensor<3xi32>
  %a, %la = weft.attend %q, %q, %q windows %three documents %doc {scale = 0.5 : f64} : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse) loc("in block.1.attn")
  %o = weft.contract %a, %wq : (!q, !w) -> !act loc("in block.1.attn")
  %y = weft.binary add %x, %o : (!act, !act) -> !act
  %logits = weft.contract %y, %e : (!act, !table) -> !logits
  %loss = weft.cross_entropy %logits, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f32>
  return %loss : tensor<f32>
}
