// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each function breaks the constraint that it is named after, and nothing else.

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!s = tensor<f32>

func.func @cross_entropy_c1(%x : !s, %t : !ids) {
  // expected-error@+2 {{expects logits with the targets' axes and one more}}
  // expected-error@+1 {{failed to infer returned types}}
  %l = weft.cross_entropy %x, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!s, !ids) -> !s
  return
}

// -----

!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>
!s = tensor<f32>

func.func @cross_entropy_c2(%x : !logits, %t : !ids, %w : !gain) {
  // expected-error@+2 {{expects `weight` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %l = weft.cross_entropy %x, %t weight %w {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids, !gain) -> !s
  return
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>
!s = tensor<f32>

func.func @cross_entropy_grad_c1(%x : !s, %t : !ids) {
  // expected-error@+2 {{expects logits with the targets' axes and one more}}
  // expected-error@+1 {{failed to infer returned types}}
  %g, %r = weft.cross_entropy_grad %x, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!s, !ids) -> (!logits, !row)
  return
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!logits = tensor<2x3x7xf32, #weft.axes<batch, pos, vocab>>

func.func @cross_entropy_grad_c2(%x : !logits, %t : !ids, %w : !gain) {
  // expected-error@+2 {{expects `weight` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %g, %r = weft.cross_entropy_grad %x, %t weight %w {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids, !gain) -> (!logits, !row)
  return
}

// -----

!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!s = tensor<f32>

func.func @loss_head_c1(%x : !gain, %e : !table, %t : !ids) {
  // expected-error@+2 {{expects x with the targets' axes and one more}}
  // expected-error@+1 {{failed to infer returned types}}
  %l = weft.loss_head %x, %e, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!gain, !table, !ids) -> !s
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!s = tensor<f32>

func.func @loss_head_c2(%x : !act, %e : tensor<7x5xf32, #weft.axes<vocab, hidden>>, %t : !ids) {
  // expected-error@+2 {{expects a table of two axes, one of them the last of}}
  // expected-error@+1 {{failed to infer returned types}}
  %l = weft.loss_head %x, %e, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!act, tensor<7x5xf32, #weft.axes<vocab, hidden>>, !ids) -> !s
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!s = tensor<f32>

func.func @loss_head_c3(%x : !act, %e : !table, %t : !ids, %w : !gain) {
  // expected-error@+2 {{expects `weight` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %l = weft.loss_head %x, %e, %t weight %w {z = 0.0 : f64, smoothing = 0.0 : f64} : (!act, !table, !ids, !gain) -> !s
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!s = tensor<f32>

func.func @loss_head_grad_c1(%x : !gain, %e : !table, %t : !ids) {
  // expected-error@+2 {{expects x with the targets' axes and one more}}
  // expected-error@+1 {{failed to infer returned types}}
  %l, %dx, %dt = weft.loss_head_grad %x, %e, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!gain, !table, !ids) -> (!s, !act, !table)
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!s = tensor<f32>

func.func @loss_head_grad_c2(%x : !act, %e : tensor<7x5xf32, #weft.axes<vocab, hidden>>, %t : !ids) {
  // expected-error@+2 {{expects a table of two axes, one of them the last of}}
  // expected-error@+1 {{failed to infer returned types}}
  %l, %dx, %dt = weft.loss_head_grad %x, %e, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!act, tensor<7x5xf32, #weft.axes<vocab, hidden>>, !ids) -> (!s, !act, !table)
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!s = tensor<f32>

func.func @loss_head_grad_c3(%x : !act, %e : !table, %t : !ids, %w : !gain) {
  // expected-error@+2 {{expects `weight` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %l, %dx, %dt = weft.loss_head_grad %x, %e, %t weight %w {z = 0.0 : f64, smoothing = 0.0 : f64} : (!act, !table, !ids, !gain) -> (!s, !act, !table)
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>
!s = tensor<f32>

func.func @loss_head_grad_c4(%x : !act, %e : !table, %t : !ids, %o : !gain) {
  // expected-error@+2 {{expects `init` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %l, %dx, %dt = weft.loss_head_grad %x, %e, %t init %o {z = 0.0 : f64, smoothing = 0.0 : f64} : (!act, !table, !ids, !gain) -> (!s, !act, !table)
  return
}

// -----

!v = tensor<8xf32>
!s = tensor<f32>

func.func @norm_c1(%x : !v, %f : !v) {
  // expected-error@+1 {{expects `factor` to be a single number}}
  %n = weft.norm %x, %f : (!v, !v) -> !s
  return
}

// -----

!s = tensor<f32>

func.func @clip_scale_c1(%n : !s, %f : tensor<f64>) {
  // expected-error@+1 {{expects `factor` of type}}
  %c = weft.clip_scale %n, %f 1.0 : (!s, tensor<f64>) -> !s
  return
}

// -----

!gain = tensor<4xf32, #weft.axes<dim>>
!v = tensor<8xf32>
!s = tensor<f32>

func.func @adamw_c1(%p : !v, %m : !gain, %h : tensor<3xf32>, %s : !s) {
  // expected-error@+1 {{expects `m` of type}}
  %a, %b, %c = weft.adamw %p, %m, %p, %p hyper %h scale %s betas 0.9, 0.95 eps 1.0e-8 decay 0.1
    : (!v, !gain, !v, !v, tensor<3xf32>, !s) -> (!v, !v, !v)
  return
}

// -----

!v = tensor<8xf32>
!s = tensor<f32>

func.func @adamw_c2(%p : !v, %m : !v, %h : tensor<2xf32>, %s : !s) {
  // expected-error@+1 {{expects `hyper` to hold rate and two corrections}}
  %a, %b, %c = weft.adamw %p, %m, %p, %p hyper %h scale %s betas 0.9, 0.95 eps 1.0e-8 decay 0.1
    : (!v, !v, !v, !v, tensor<2xf32>, !s) -> (!v, !v, !v)
  return
}

// -----

!v = tensor<8xf32>

func.func @adamw_c3(%p : !v, %m : !v, %h : tensor<3xf32>, %s : tensor<3xf32>) {
  // expected-error@+1 {{expects `scale` to be a single number}}
  %a, %b, %c = weft.adamw %p, %m, %p, %p hyper %h scale %s betas 0.9, 0.95 eps 1.0e-8 decay 0.1
    : (!v, !v, !v, !v, tensor<3xf32>, tensor<3xf32>) -> (!v, !v, !v)
  return
}
