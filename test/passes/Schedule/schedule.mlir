// RUN: weft-opt %s --split-input-file --weft-schedule | FileCheck %s

!x = tensor<2x4x3xf32, #weft.axes<batch, pos, dim>>
!h = tensor<2x4x5xf32, #weft.axes<batch, pos, hidden>>
!w = tensor<3x5xf32, #weft.axes<dim, hidden>>

// An accumulated gradient is a product into the state, where it lies: no copy,
// no buffer of its own. Mutation caught: results to the arena, copied at the end.
// CHECK: weft.program @micro inputs ["x", "dy"] [{{.*}}] results [] []
// CHECK: %[[X:.*]] = weft.buffer input at 0
// CHECK: %[[DY:.*]] = weft.buffer input at 1
// CHECK: %[[OLD:.*]] = weft.buffer state at 64 :
// CHECK: %[[NEW:.*]] = weft.buffer state at 64 :
// CHECK: weft.call @accumulate ins(%[[X]], %[[DY]], %[[NEW]] : {{.*}}) outs(%[[NEW]] :
// CHECK-NOT: weft.copy
// CHECK-NOT: arena
// CHECK: }
weft.state parameter @w <normal, 1.0 : f64> offset 0 : !w
weft.state gradient @"grad/w" <constant, 0.0 : f64> offset 64 : !w
weft.kernel @accumulate rows [] chunks 1 (%x : !x, %dy : !h, %old : !w) -> (!w) {
  %g = weft.contract %x, %dy init %old : (!x, !h, !w) -> !w
  weft.yield %g : !w
}
func.func @micro(%x : !x {weft.name = "x"}, %dy : !h {weft.name = "dy"}) {
  %old = weft.get @"grad/w" : !w
  %new = weft.launch @accumulate(%x, %dy, %old) : (!x, !h, !w) -> !w
  weft.set @"grad/w", %new : !w
  return
}

// -----

!v = tensor<8xf32>

// The new value is written where the old one lies only when nobody reads the old
// one later: here @keep does, so the step goes to the arena and is copied last.
// Mutation caught: readLater() that answers false.
// CHECK: weft.program @later
// CHECK: %[[OLD:.*]] = weft.buffer state at 0
// CHECK: %[[NEW:.*]] = weft.buffer arena
// CHECK: weft.call @step ins(%[[OLD]] : {{.*}}) outs(%[[NEW]] :
// CHECK: %[[R:.*]] = weft.buffer result at 0
// CHECK: weft.call @keep ins(%[[OLD]], %[[NEW]] : {{.*}}) outs(%[[R]] :
// CHECK: %[[PLACE:.*]] = weft.buffer state at 0
// CHECK: weft.copy %[[NEW]] to %[[PLACE]]
weft.state parameter @w <normal, 1.0 : f64> offset 0 : !v
weft.kernel @step rows [] chunks 1 (%x : !v) -> (!v) {
  %y = weft.unary relu %x : (!v) -> !v
  weft.yield %y : !v
}
weft.kernel @keep rows [] chunks 1 (%x : !v, %y : !v) -> (!v) {
  %z = weft.binary sub %x, %y : (!v, !v) -> !v
  weft.yield %z : !v
}
func.func @later() -> (!v {weft.name = "moved"}) {
  %old = weft.get @w : !v
  %new = weft.launch @step(%old) : (!v) -> !v
  %moved = weft.launch @keep(%old, %new) : (!v, !v) -> !v
  weft.set @w, %new : !v
  return %moved : !v
}

// Element by element, and nobody reads later: in place.
// CHECK: weft.program @now
// CHECK: %[[OLD:.*]] = weft.buffer state at 0
// CHECK: %[[NEW:.*]] = weft.buffer state at 0
// CHECK: weft.call @step ins(%[[OLD]] : {{.*}}) outs(%[[NEW]] :
// CHECK-NOT: weft.copy
// CHECK: }
func.func @now() {
  %old = weft.get @w : !v
  %new = weft.launch @step(%old) : (!v) -> !v
  weft.set @w, %new : !v
  return
}

// -----

!m = tensor<4x3xf32, #weft.axes<dim, hidden>>

// A softmax reads its whole row for each element it writes: never in place, even
// though nothing reads the old value later. Mutation caught: isElementwise()
// that answers true.
// CHECK: weft.program @rows
// CHECK: %[[OLD:.*]] = weft.buffer state at 0
// CHECK: %[[NEW:.*]] = weft.buffer arena
// CHECK: weft.call @soft ins(%[[OLD]] : {{.*}}) outs(%[[NEW]] :
// CHECK: weft.copy %[[NEW]] to
weft.state parameter @w <normal, 1.0 : f64> offset 0 : !m
weft.kernel @soft rows ["dim"] chunks 1 (%x : !m) -> (!m) {
  %y = weft.softmax %x : (!m) -> !m
  weft.yield %y : !m
}
func.func @rows() {
  %old = weft.get @w : !m
  %new = weft.launch @soft(%old) : (!m) -> !m
  weft.set @w, %new : !m
  return
}

// -----

!x = tensor<2x4x3xf32, #weft.axes<batch, pos, dim>>
!table = tensor<7x3xf32, #weft.axes<vocab, dim>>
!ids = tensor<2x4xi32, #weft.axes<batch, pos>>

// Tied gradients: the loss head and the look-up both add to one state entry, in
// place and in order. Mutation caught: only the value that `set` names finds its
// way to the state, and the first sum is made in the arena and copied.
// CHECK: weft.program @tied
// CHECK: %[[STATE:.*]] = weft.buffer state at 128 :
// CHECK: weft.call @loss_head_dtable_{{.*}} outs(%[[G0:[^ ]*]] :
// CHECK: weft.call @look_up ins(%{{.*}}, %{{.*}}, %[[G1:.*]] : {{.*}}) outs(%[[G1]] :
// CHECK-NOT: weft.copy
// CHECK: }
weft.state parameter @embed <normal, 1.0 : f64> offset 0 : !table
weft.state gradient @"grad/embed" <constant, 0.0 : f64> offset 128 : !table
weft.kernel @head rows [] chunks 1 (%x : !x, %t : !table, %ids : !ids, %old : !table) -> (tensor<f32>, !x, !table) {
  %l, %dx, %dt = weft.loss_head_grad %x, %t, %ids init %old {z = 0.0 : f64, smoothing = 0.0 : f64}
    : (!x, !table, !ids, !table) -> (tensor<f32>, !x, !table)
  weft.yield %l, %dx, %dt : tensor<f32>, !x, !table
}
weft.kernel @look_up rows [] chunks 1 (%ids : !ids, %dy : !x, %old : !table) -> (!table) {
  %g = weft.gather_grad %ids, %dy init %old : (!ids, !x, !table) -> !table
  weft.yield %g : !table
}
func.func @tied(%x : !x {weft.name = "x"}, %ids : !ids {weft.name = "targets"}) -> (tensor<f32> {weft.name = "loss_sum"}) {
  %t = weft.get @embed : !table
  %old = weft.get @"grad/embed" : !table
  %l, %dx, %sum = weft.launch @head(%x, %t, %ids, %old) : (!x, !table, !ids, !table) -> (tensor<f32>, !x, !table)
  %new = weft.launch @look_up(%ids, %dx, %sum) : (!ids, !x, !table) -> !table
  weft.set @"grad/embed", %new : !table
  return %l : tensor<f32>
}

// -----

!v = tensor<8xf32, #weft.axes<dim>>
!parts = tensor<2x8xf32, #weft.axes<chunk, dim>>

// A result that an accumulation would overwrite is read again later: the kernel
// gets a copy. Mutation caught: isLastUse() that answers true.
// CHECK: weft.program @kept
// CHECK: %[[A:.*]] = weft.buffer arena
// CHECK: weft.call @make ins({{.*}}) outs(%[[A]] :
// CHECK: %[[B:.*]] = weft.buffer arena
// CHECK: weft.copy %[[A]] to %[[B]]
// CHECK: weft.call @add ins(%{{.*}}, %[[B]] : {{.*}}) outs(%[[B]] :
// CHECK: %[[R:.*]] = weft.buffer result at 0
// CHECK: weft.call @both ins(%[[A]], %[[B]] : {{.*}}) outs(%[[R]] :
weft.kernel @make rows [] chunks 1 (%x : !v) -> (!v) {
  %y = weft.unary exp %x : (!v) -> !v
  weft.yield %y : !v
}
weft.kernel @add rows [] chunks 1 (%x : !parts, %old : !v) -> (!v) {
  %s = weft.sum_to %x init %old : (!parts, !v) -> !v
  weft.yield %s : !v
}
weft.kernel @both rows [] chunks 1 (%x : !v, %y : !v) -> (!v) {
  %z = weft.binary mul %x, %y : (!v, !v) -> !v
  weft.yield %z : !v
}
func.func @kept(%x : !v {weft.name = "x"}, %p : !parts {weft.name = "p"}) -> (!v {weft.name = "y"}) {
  %a = weft.launch @make(%x) : (!v) -> !v
  %b = weft.launch @add(%p, %a) : (!parts, !v) -> !v
  %c = weft.launch @both(%a, %b) : (!v, !v) -> !v
  return %c : !v
}

// When it is not, the sum is made where its first part lies.
// CHECK: weft.program @dying
// CHECK: %[[A:.*]] = weft.buffer arena
// CHECK: weft.call @make ins({{.*}}) outs(%[[A]] :
// CHECK-NOT: weft.copy
// CHECK: weft.call @add ins(%{{.*}}, %[[A]] : {{.*}}) outs(%[[A]] :
// CHECK: weft.call @make ins(%[[A]] :
func.func @dying(%x : !v {weft.name = "x"}, %p : !parts {weft.name = "p"}) -> (!v {weft.name = "y"}) {
  %a = weft.launch @make(%x) : (!v) -> !v
  %b = weft.launch @add(%p, %a) : (!parts, !v) -> !v
  %c = weft.launch @make(%b) : (!v) -> !v
  return %c : !v
}

// -----

!v = tensor<8xf32>

// Zero is filled in at the end: the gradients that the norm reads are still there
// when it does. A kernel that nothing calls goes.
// CHECK-NOT: weft.kernel @unused
// CHECK: weft.program @update
// CHECK: weft.call @norm
// CHECK: %[[G:.*]] = weft.buffer state at 64 : tensor<8xf32>
// CHECK-NEXT: weft.fill %[[G]]
weft.state gradient @"grad/a" <constant, 0.0 : f64> offset 64 : tensor<3xf32>
weft.state gradient @"grad/b" <constant, 0.0 : f64> offset 76 : tensor<5xf32>
weft.kernel @unused rows [] chunks 1 (%x : !v) -> (!v) {
  weft.yield %x : !v
}
weft.kernel @norm rows [] chunks 1 (%x : !v, %f : tensor<f32>) -> (tensor<f32>) {
  %n = weft.norm %x, %f : (!v, tensor<f32>) -> tensor<f32>
  weft.yield %n : tensor<f32>
}
func.func @update(%factor : tensor<f32> {weft.name = "inverse_count"}) -> (tensor<f32> {weft.name = "grad_norm"}) {
  %all = weft.get_flat [@"grad/a", @"grad/b"] : !v
  %norm = weft.launch @norm(%all, %factor) : (!v, tensor<f32>) -> tensor<f32>
  %zero = weft.constant {value = 0.0 : f64} : !v
  weft.set_flat [@"grad/a", @"grad/b"], %zero : !v
  return %norm : tensor<f32>
}
