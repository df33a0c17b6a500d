// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each function breaks the constraint that it is named after, and nothing else.

!three = tensor<3xi32>

func.func @integers_c1() {
  // expected-error@+1 {{expects a vector of 2 integers, but its type is 'tensor<3xi32>'}}
  %w = weft.integers [1, 2] : !three
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>

func.func @unary_grad_c1(%x : !act, %dy : !hid) {
  // expected-error@+2 {{expects `dy` of type 'tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>', but got 'tensor<2x3x5xf32}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.unary_grad relu %x, %dy : (!act, !hid) -> !act
  return
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!gain = tensor<4xf32, #weft.axes<dim>>

// Neither side holds the axes of the other: what would be repeated?
func.func @binary_c1(%x : !gain, %y : !row) {
  // expected-error@+2 {{expects one side to hold all axes of the other}}
  // expected-error@+1 {{failed to infer returned types}}
  %z = weft.binary add %x, %y : (!gain, !row) -> !row
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!other = tensor<2x3x8xf32, #weft.axes<batch, pos, dim>>

// One name, two sizes: nothing is broadcast by size.
func.func @binary_c2(%x : !act, %y : !other) {
  // expected-error@+2 {{expects one side to hold all axes of the other}}
  // expected-error@+1 {{failed to infer returned types}}
  %z = weft.binary add %x, %y : (!act, !other) -> !act
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>

func.func @binary_c3(%x : !act, %y : !gain) {
  // expected-error@+2 {{op inferred type(s)}}
  // expected-error@+1 {{failed to infer returned types}}
  %z = weft.binary add %x, %y : (!act, !gain) -> !gain
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!act64 = tensor<2x3x4xf64, #weft.axes<batch, pos, dim>>

func.func @binary_c4(%x : !act, %y : !act64) {
  // expected-error@+2 {{expects both sides of one element type}}
  // expected-error@+1 {{failed to infer returned types}}
  %z = weft.binary add %x, %y : (!act, !act64) -> !act
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hgain = tensor<5xf32, #weft.axes<hidden>>

func.func @sum_to_c1(%x : !act) {
  // expected-error@+1 {{expects a result made of axes of}}
  %z = weft.sum_to %x : (!act) -> !hgain
  return
}

// -----

!other = tensor<2x3x8xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>

func.func @sum_to_c2(%x : !other) {
  // expected-error@+1 {{expects a result made of axes of}}
  %z = weft.sum_to %x : (!other) -> !gain
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!gain = tensor<4xf32, #weft.axes<dim>>

func.func @sum_to_c3(%x : !act, %old : !row) {
  // expected-error@+1 {{expects `init` of type 'tensor<4xf32, #weft.axes<dim>>', but got 'tensor<2x3xf32}}
  %z = weft.sum_to %x init %old : (!act, !row) -> !gain
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!parts = tensor<2x4xf32, #weft.axes<chunk, dim>>

// Rows that are not outermost would not be counted as one index.
func.func @partial_sum_c1(%x : !act) {
  // expected-error@+1 {{expects `x` to start with the axes}}
  %z = weft.partial_sum %x over ["pos", "batch"] : (!act) -> !parts
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

func.func @partial_sum_c2(%x : !act) {
  // expected-error@+1 {{expects a result without the axis}}
  %z = weft.partial_sum %x over ["batch", "pos"] : (!act) -> tensor<2x3xf32, #weft.axes<chunk, pos>>
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>

func.func @partial_sum_c3(%x : !act) {
  // expected-error@+1 {{expects a result whose first axis is 'chunk'}}
  %z = weft.partial_sum %x over ["batch", "pos"] : (!act) -> !gain
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

func.func @partial_sum_c4(%x : !act) {
  // expected-error@+1 {{behind 'chunk', but got}}
  %z = weft.partial_sum %x over ["batch", "pos"] : (!act) -> tensor<2x5xf32, #weft.axes<chunk, hidden>>
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!two = tensor<2xi32>

func.func @dropout_c1(%x : !act, %noise : !two) {
  // expected-error@+2 {{expects `noise` to be a single number}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.dropout %x noise %noise "block.0" {rate = 0.5 : f64} : (!act, !two) -> !act
  return
}
