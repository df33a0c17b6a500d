// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each function breaks the constraint that it is named after, and nothing else.

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!w = tensor<4x5xf32, #weft.axes<dim, hidden>>

func.func @contract_c1(%x : !act, %w : !w) {
  // expected-error@+1 {{expects each axis of the result in an operand}}
  %y = weft.contract %x, %w : (!act, !w) -> tensor<2x3x9xf32, #weft.axes<batch, pos, vocab>>
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!w = tensor<4x5xf32, #weft.axes<dim, hidden>>

// An axis that only one side has is not summed by accident.
func.func @contract_c2(%x : !act, %w : !w) {
  // expected-error@+1 {{in the result, or of equal size in}}
  %y = weft.contract %x, %w : (!act, !w) -> !row
  return
}

// -----

!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>
!other = tensor<2x3x8xf32, #weft.axes<batch, pos, dim>>
!w = tensor<4x5xf32, #weft.axes<dim, hidden>>

func.func @contract_c3(%x : !other, %w : !w) {
  // expected-error@+1 {{in the result, or of equal size in}}
  %y = weft.contract %x, %w : (!other, !w) -> !hid
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>
!w = tensor<4x5xf32, #weft.axes<dim, hidden>>

func.func @contract_c4(%x : !act, %w : !w, %old : !act) {
  // expected-error@+1 {{expects `init` of type}}
  %y = weft.contract %x, %w init %old : (!act, !w, !act) -> !hid
  return
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!s = tensor<f32>

func.func @gather_c1(%t : !s, %i : !ids) {
  // expected-error@+2 {{expects a table with an axis to look up}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.gather %t, %i : (!s, !ids) -> !row
  return
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>

// A row that has an axis of the index would stand there twice.
func.func @gather_c2(%t : tensor<7x3xf32, #weft.axes<vocab, pos>>, %i : !ids) {
  // expected-error@+2 {{expects other axes in the rows of}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.gather %t, %i : (tensor<7x3xf32, #weft.axes<vocab, pos>>, !ids) -> !row
  return
}

// -----

!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>

func.func @gather_grad_c1(%i : !ids, %dy : !hid) {
  // expected-error@+1 {{expects `dy` over the axes of}}
  %t = weft.gather_grad %i, %dy : (!ids, !hid) -> !table
  return
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<4xf32, #weft.axes<dim>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!table = tensor<7x4xf32, #weft.axes<vocab, dim>>

func.func @gather_grad_c2(%i : !ids, %dy : !act, %old : !gain) {
  // expected-error@+1 {{expects `init` of type}}
  %t = weft.gather_grad %i, %dy init %old : (!ids, !act, !gain) -> !table
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!two = tensor<2xi32>

func.func @position_c1(%d : !ids, %o : !two) {
  // expected-error@+2 {{expects `offset` to be a single number}}
  // expected-error@+1 {{failed to infer returned types}}
  %p = weft.position %d offset %o : (!ids, !two) -> !ids
  return
}
