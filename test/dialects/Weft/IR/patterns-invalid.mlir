// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each part breaks the constraint that it is named after, and nothing else.

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_c1(%v : tensor<2x3x2x4xf32, #weft.axes<row, pos, kv, head>>, %a : !p, %r : !p, %w : !w, %d : !d) {
  // expected-error@+2 {{expects v of axes batch, keys, heads..., channel}}
  // expected-error@+1 {{failed to infer returned types}}
  %o, %l = weft.mix %v, %a, %r windows %w documents %d : (tensor<2x3x2x4xf32, #weft.axes<row, pos, kv, head>>, !p, !p, !w, !d) -> (!o, !l)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_c2(%v : !v, %a : !p, %r : tensor<2x4xf32, #weft.axes<frozen, place>>, %w : !w, %d : !d) {
  // expected-error@+2 {{expects a and r of one type}}
  // expected-error@+1 {{failed to infer returned types}}
  %o, %l = weft.mix %v, %a, %r windows %w documents %d : (!v, !p, tensor<2x4xf32, #weft.axes<frozen, place>>, !w, !d) -> (!o, !l)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_c3(%v : !v, %a : tensor<2x2xf32, #weft.axes<frozen, place>>, %r : tensor<2x2xf32, #weft.axes<frozen, place>>, %w : !w, %d : !d) {
  // expected-error@+1 {{expects a pattern of at least 3 places, but it has 2}}
  %o, %l = weft.mix %v, %a, %r windows %w documents %d : (!v, tensor<2x2xf32, #weft.axes<frozen, place>>, tensor<2x2xf32, #weft.axes<frozen, place>>, !w, !d) -> (!o, !l)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_c4(%v : !v, %a : !p, %r : !p, %w : tensor<3xi32>, %d : !d) {
  // expected-error@+1 {{expects one number for each of 2 heads}}
  %o, %l = weft.mix %v, %a, %r windows %w documents %d : (!v, !p, !p, tensor<3xi32>, !d) -> (!o, !l)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_c5(%v : !v, %a : !p, %r : !p, %w : !w, %d : tensor<3x2xi32, #weft.axes<pos, batch>>) {
  // expected-error@+2 {{expects document starts over batch and pos}}
  // expected-error@+1 {{failed to infer returned types}}
  %o, %l = weft.mix %v, %a, %r windows %w documents %d : (!v, !p, !p, !w, tensor<3x2xi32, #weft.axes<pos, batch>>) -> (!o, !l)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_c6(%v : tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>, %a : !p, %r : !p, %w : !w, %d : !d) {
  // expected-error@+1 {{expects as many heads of values as of patterns, or `kv_of`}}
  %o, %l = weft.mix %v, %a, %r windows %w documents %d : (tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>, !p, !p, !w, !d) -> (!o, !l)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_c7(%v : !v, %a : !p, %r : !p, %w : !w, %d : !d, %i : tensor<i32>) {
  // expected-error@+1 {{expects one query a row beside `offset`}}
  %o, %l = weft.mix %v, %a, %r windows %w documents %d offset %i : (!v, !p, !p, !w, !d, tensor<i32>) -> (!o, !l)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_grad_value_c1(%a : !p, %w : !w, %d : !d, %l : !o, %g : !o) {
  // expected-error@+1 {{expects `lse` of type}}
  %dv = weft.mix_grad_value %a, %a windows %w documents %d, %l, %g : (!p, !p, !w, !d, !o, !o) -> !v
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_grad_value_c2(%a : !p, %w : !w, %d : !d, %l : !l, %g : !o) {
  // expected-error@+1 {{expects values and results of one mix}}
  %dv = weft.mix_grad_value %a, %a windows %w documents %d, %l, %g : (!p, !p, !w, !d, !l, !o) -> tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_grad_value_c3(%a : !p, %w : tensor<1xi32>, %d : !d, %l : !l, %g : !o) {
  // expected-error@+1 {{expects one number for each of 2 heads}}
  %dv = weft.mix_grad_value %a, %a windows %w documents %d, %l, %g : (!p, !p, tensor<1xi32>, !d, !l, !o) -> !v
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_grad_pattern_c1(%v : !v, %a : !p, %w : !w, %d : !d, %o : !o, %l : !l, %g : !v) {
  // expected-error@+1 {{expects `dout` of type}}
  %da, %dr = weft.mix_grad_pattern %v, %a, %a windows %w documents %d, %o, %l, %g : (!v, !p, !p, !w, !d, !o, !l, !v) -> (!p, !p)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_grad_pattern_c2(%v : !v, %a : !p, %w : !w, %d : !d, %o : !o, %l : !o, %g : !o) {
  // expected-error@+1 {{expects `lse` of type}}
  %da, %dr = weft.mix_grad_pattern %v, %a, %a windows %w documents %d, %o, %l, %g : (!v, !p, !p, !w, !d, !o, !o, !o) -> (!p, !p)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_grad_pattern_c3(%v : !v, %a : !p, %w : !w, %d : !d, %o : !o, %l : !l, %g : !o) {
  // expected-error@+1 {{expects `da` of type}}
  %da, %dr = weft.mix_grad_pattern %v, %a, %a windows %w documents %d, %o, %l, %g : (!v, !p, !p, !w, !d, !o, !l, !o) -> (tensor<2x4xf32, #weft.axes<frozen, place>>, !p)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!l = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!p = tensor<2x3xf32, #weft.axes<frozen, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>

func.func @mix_grad_pattern_c4(%v : !v, %a : !p, %w : tensor<1xi32>, %d : !d, %o : !o, %l : !l, %g : !o) {
  // expected-error@+1 {{expects one number for each of 2 heads}}
  %da, %dr = weft.mix_grad_pattern %v, %a, %a windows %w documents %d, %o, %l, %g : (!v, !p, !p, tensor<1xi32>, !d, !o, !l, !o) -> (!p, !p)
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_c1(%v : tensor<2x3x2x4xf32, #weft.axes<row, pos, kv, head>>, %p : !s, %d : !d) {
  // expected-error@+2 {{expects v of axes batch, keys, heads..., channel}}
  // expected-error@+1 {{failed to infer returned types}}
  %o = weft.mix_dense %v, %p documents %d : (tensor<2x3x2x4xf32, #weft.axes<row, pos, kv, head>>, !s, !d) -> !o
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_c2(%v : !v, %p : tensor<2x3x4xf32, #weft.axes<frozen, row, place>>, %d : !d) {
  // expected-error@+2 {{expects p of axes heads, places, places}}
  // expected-error@+1 {{failed to infer returned types}}
  %o = weft.mix_dense %v, %p documents %d : (!v, tensor<2x3x4xf32, #weft.axes<frozen, row, place>>, !d) -> !o
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_c3(%v : !v, %p : tensor<2x2x2xf32, #weft.axes<frozen, row, place>>, %d : !d) {
  // expected-error@+1 {{expects a pattern of at least 3 places, but it has 2}}
  %o = weft.mix_dense %v, %p documents %d : (!v, tensor<2x2x2xf32, #weft.axes<frozen, row, place>>, !d) -> !o
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_c4(%v : !v, %p : !s, %d : tensor<3x2xi32, #weft.axes<pos, batch>>) {
  // expected-error@+2 {{expects document starts over batch and pos}}
  // expected-error@+1 {{failed to infer returned types}}
  %o = weft.mix_dense %v, %p documents %d : (!v, !s, tensor<3x2xi32, #weft.axes<pos, batch>>) -> !o
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_c5(%v : tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>, %p : !s, %d : !d) {
  // expected-error@+1 {{expects as many heads of values as of patterns, or one number of `kv_of` a head}}
  %o = weft.mix_dense %v, %p documents %d : (tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>, !s, !d) -> !o
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_c6(%v : !v, %p : !s, %d : !d, %i : tensor<i32>) {
  // expected-error@+1 {{expects one query a row beside `offset`}}
  %o = weft.mix_dense %v, %p documents %d offset %i : (!v, !s, !d, tensor<i32>) -> !o
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_grad_value_c1(%p : tensor<2x3x4xf32, #weft.axes<frozen, row, place>>, %d : !d, %g : !o) {
  // expected-error@+1 {{expects p of axes heads, places, places}}
  %dv = weft.mix_dense_grad_value %p documents %d, %g : (tensor<2x3x4xf32, #weft.axes<frozen, row, place>>, !d, !o) -> !v
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_grad_value_c2(%p : tensor<2x2x2xf32, #weft.axes<frozen, row, place>>, %d : !d, %g : !o) {
  // expected-error@+1 {{expects values and results of one mix of}}
  %dv = weft.mix_dense_grad_value %p documents %d, %g : (tensor<2x2x2xf32, #weft.axes<frozen, row, place>>, !d, !o) -> !v
  return
}

// -----

!v = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!o = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!s = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>

func.func @mix_dense_grad_value_c3(%p : !s, %d : !d, %g : !o, %kv : tensor<1xi32>) {
  // expected-error@+1 {{expects as many heads of values as of patterns, or one number of `kv_of` a head}}
  %dv = weft.mix_dense_grad_value %p documents %d, %g kv_of %kv : (!s, !d, !o, tensor<1xi32>) -> !v
  return
}

// -----

!x = tensor<4x2x3xf32, #weft.axes<heads, head, dim>>
!y = tensor<1x2x3xf32, #weft.axes<live, head, dim>>

func.func @take_c1(%x : !x) {
  // expected-error@+2 {{side by side in}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.take %x ["heads", "dim"] as "live" at [0] : (!x) -> !y
  return
}

// -----

!x = tensor<4x2x3xf32, #weft.axes<heads, head, dim>>
!y = tensor<1x2x3xf32, #weft.axes<live, head, dim>>

func.func @take_c2(%x : !x) {
  // expected-error@+2 {{expects indices below 4, but got 4}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.take %x ["heads"] as "live" at [4] : (!x) -> !y
  return
}

// -----

!x = tensor<4x2x3xf32, #weft.axes<heads, head, dim>>
!y = tensor<1x2x3xf32, #weft.axes<live, head, dim>>

func.func @take_c3(%x : !x) {
  // expected-error@+2 {{expects one index at least}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.take %x ["heads"] as "live" at [] : (!x) -> !y
  return
}

// -----

!x = tensor<4x2x3xf32, #weft.axes<heads, head, dim>>
!y = tensor<1x2x3xf32, #weft.axes<live, head, dim>>

func.func @take_c4(%x : !x) {
  // expected-error@+2 {{expects no other axis called "dim"}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = weft.take %x ["heads"] as "dim" at [0] : (!x) -> !y
  return
}

// -----

!x = tensor<4x2xf32, #weft.axes<heads, head>>
!y = tensor<2x2xf32, #weft.axes<live, head>>

func.func @put_c1(%y : !y) {
  // expected-error@+1 {{expects `y` of type}}
  %x = weft.put %y from "live" to ["heads"] at [1] : (!y) -> !x
  return
}

// -----

// expected-error@+1 {{expects the shape of}}
weft.state parameter @state_c1 <constant, 0.0 : f64> slices <of [4, 2] axes 0 + 1 kept [1]> : tensor<2x2xf32, #weft.axes<live, head>>

// -----

// expected-error@+1 {{expects axes of a tensor of 2}}
weft.state parameter @slices_c1 <constant, 0.0 : f64> slices <of [4, 2] axes 1 + 2 kept [1]> : tensor<1x2xf32, #weft.axes<live, head>>

// -----

// expected-error@+1 {{expects places below 4 that increase, but got 1}}
weft.state parameter @slices_c2 <constant, 0.0 : f64> slices <of [4, 2] axes 0 + 1 kept [2, 1]> : tensor<2x2xf32, #weft.axes<live, head>>

// -----

func.func @mix_table_c1(%a : tensor<2x3xf32, #weft.axes<heads, place>>, %r : tensor<2x4xf32, #weft.axes<heads, place>>, %w : tensor<2xi32>) {
  // expected-error@+1 {{expects a and r of one type [heads, places]}}
  %x:5 = weft.mix_table %a, %r windows %w : (tensor<2x3xf32, #weft.axes<heads, place>>, tensor<2x4xf32, #weft.axes<heads, place>>, tensor<2xi32>) -> (tensor<2x4544xf32, #weft.axes<heads, cell>>, tensor<2x4544xf32, #weft.axes<heads, cell>>, tensor<2x3xf32, #weft.axes<heads, place>>, tensor<2x3xf32, #weft.axes<heads, place>>, tensor<2x3xf32, #weft.axes<heads, place>>)
  return
}

// -----

!p = tensor<2x3xf32, #weft.axes<heads, place>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
func.func @mix_table_c2(%a : !p, %w : tensor<2xi32>) {
  // expected-error@+1 {{expects `a result by place` of type}}
  %x:5 = weft.mix_table %a, %a windows %w : (!p, !p, tensor<2xi32>) -> (!t, !t, !p, !t, !p)
  return
}

// -----

!p = tensor<2x3xf32, #weft.axes<heads, place>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
func.func @mix_table_c3(%a : !p, %w : tensor<3xi32>) {
  // expected-error@+1 {{expects one number for each of 2 heads}}
  %x:5 = weft.mix_table %a, %a windows %w : (!p, !p, tensor<3xi32>) -> (!t, !t, !p, !p, !p)
  return
}

// -----

!p = tensor<2x65xf32, #weft.axes<heads, place>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
func.func @mix_table_c4(%a : !p, %w : tensor<2xi32>) {
  // expected-error@+1 {{expects tables of 2 heads x 5056 numbers}}
  %x:5 = weft.mix_table %a, %a windows %w : (!p, !p, tensor<2xi32>) -> (!t, !t, !p, !p, !p)
  return
}

// -----

!x = tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>
!y = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
func.func @mix_scale_c1(%x : !x, %p : !p, %d : tensor<2x4xi32, #weft.axes<batch, pos>>, %k : tensor<2xi32>) {
  // expected-error@+1 {{expects y of the rows of}}
  %s = weft.mix_scale %x, %p documents %d kv_of %k : (!x, !p, tensor<2x4xi32, #weft.axes<batch, pos>>, tensor<2xi32>) -> !y
  return
}

// -----

!x = tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>
!y = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
func.func @mix_scale_c2(%x : !x, %p : tensor<3xf32, #weft.axes<place>>, %d : !d, %k : tensor<2xi32>) {
  // expected-error@+1 {{the heads of}}
  %s = weft.mix_scale %x, %p documents %d kv_of %k : (!x, tensor<3xf32, #weft.axes<place>>, !d, tensor<2xi32>) -> !y
  return
}

// -----

!x = tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>
!y = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
func.func @mix_scale_c3(%x : !x, %p : !p, %d : !d) {
  // expected-error@+1 {{expects as many heads in x as in y}}
  %s = weft.mix_scale %x, %p documents %d : (!x, !p, !d) -> !y
  return
}

// -----

!x = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>
func.func @mix_product_c1(%x : !x, %t : !t, %p : !p, %w : !w, %d : tensor<2x4xi32, #weft.axes<batch, pos>>) {
  // expected-error@+1 {{expects x of batch, pos, heads, channel}}
  %y = weft.mix_product %x, %t, %p windows %w documents %d : (!x, !t, !p, !w, tensor<2x4xi32, #weft.axes<batch, pos>>) -> !x
  return
}

// -----

!x = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>
func.func @mix_product_c2(%x : !x, %t : tensor<2x64xf32, #weft.axes<heads, cell>>, %p : !p, %w : !w, %d : !d) {
  // expected-error@+1 {{expects a table of 2 heads and 3 places}}
  %y = weft.mix_product %x, %t, %p windows %w documents %d : (!x, tensor<2x64xf32, #weft.axes<heads, cell>>, !p, !w, !d) -> !x
  return
}

// -----

!x = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>
func.func @mix_product_c3(%x : !x, %t : !t, %p : tensor<2x2xf32, #weft.axes<heads, place>>, %w : !w, %d : !d) {
  // expected-error@+1 {{expects a scale for 2 heads and 3 places}}
  %y = weft.mix_product %x, %t, %p windows %w documents %d : (!x, !t, tensor<2x2xf32, #weft.axes<heads, place>>, !w, !d) -> !x
  return
}

// -----

!x = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>
func.func @mix_product_c4(%x : !x, %t : !t, %p : !p, %w : tensor<1xi32>, %d : !d) {
  // expected-error@+1 {{expects one number for each of 2 heads}}
  %y = weft.mix_product %x, %t, %p windows %w documents %d : (!x, !t, !p, tensor<1xi32>, !d) -> !x
  return
}

// -----

!x = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>
func.func @mix_product_c5(%x : !x, %t : !t, %p : !p, %w : !w, %d : !d, %k : !w) {
  // expected-error@+1 {{with other heads through `back` and `kv_of` alone}}
  %y = weft.mix_product %x, %t, %p windows %w documents %d kv_of %k : (!x, !t, !p, !w, !d, !w) -> tensor<2x3x1x4xf32, #weft.axes<batch, pos, kv, head>>
  return
}

// -----

!x = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!t = tensor<2x4544xf32, #weft.axes<heads, cell>>
!p = tensor<2x3xf32, #weft.axes<heads, place>>
!d = tensor<2x3xi32, #weft.axes<batch, pos>>
!w = tensor<2xi32>
func.func @mix_product_c6(%x : !x, %t : !t, %p : !p, %w : !w, %d : !d) {
  // expected-error@+1 {{expects lse and row_lse together}}
  %y = weft.mix_product back %x, %t, %p windows %w documents %d lse %p : (!x, !t, !p, !w, !d, !p) -> !x
  return
}
