// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each function breaks the constraint that it is named after, and nothing else.

!s = tensor<f32>

func.func @layer_norm_c1(%x : !s) {
  // expected-error@+2 {{expects `x` to have an axis to work on}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.layer_norm %x {eps = 1.0e-6 : f64} : (!s) -> !s
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>

func.func @layer_norm_grad_c1(%x : !act, %dy : !hid) {
  // expected-error@+2 {{expects `dy` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.layer_norm_grad %x, %dy {eps = 1.0e-6 : f64} : (!act, !hid) -> !act
  return
}

// -----

!s = tensor<f32>

func.func @rms_norm_c1(%x : !s) {
  // expected-error@+2 {{expects `x` to have an axis to work on}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.rms_norm %x {eps = 1.0e-6 : f64} : (!s) -> !s
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>

func.func @rms_norm_grad_c1(%x : !act, %dy : !hid) {
  // expected-error@+2 {{expects `dy` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.rms_norm_grad %x, %dy {eps = 1.0e-6 : f64} : (!act, !hid) -> !act
  return
}

// -----

!s = tensor<f32>

func.func @softmax_c1(%x : !s) {
  // expected-error@+2 {{expects `x` to have an axis to work on}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.softmax %x : (!s) -> !s
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>

func.func @softmax_grad_c1(%x : !act, %dy : !hid) {
  // expected-error@+2 {{expects `dy` of type}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.softmax_grad %x, %dy : (!act, !hid) -> !act
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!odd = tensor<2x3x5xf32, #weft.axes<batch, pos, dim>>

func.func @rope_c1(%x : !odd, %p : !ids) {
  // expected-error@+2 {{expects an even number of channels to pair, but got 5}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.rope %x, %p {base = 10000.0 : f64} : (!odd, !ids) -> !odd
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

func.func @rope_c2(%x : !act, %p : tensor<9xi32, #weft.axes<vocab>>) {
  // expected-error@+2 {{expects positions over axes of}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.rope %x, %p {base = 10000.0 : f64} : (!act, tensor<9xi32, #weft.axes<vocab>>) -> !act
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>

// A table for eight channels, read for four.
func.func @rope_c3(%x : !act, %p : !ids, %t : tensor<9x4x2xf32>) {
  // expected-error@+2 {{expects a table of [positions, half of 4, 2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.rope %x, %p table %t {base = 10000.0 : f64} : (!act, !ids, tensor<9x4x2xf32>) -> !act
  return
}
