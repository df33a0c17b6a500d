// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each function breaks the constraint that it is named after, and nothing else.

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!two = tensor<2xi32>

// Positions first would be read as rows.
func.func @attend_c1(%q : tensor<3x2x2x4xf32, #weft.axes<pos, batch, heads, head>>, %k : !q, %v : !q, %w : !two) {
  // expected-error@+2 {{expects q, k, v of axes batch, pos, heads..., channel}}
  // expected-error@+1 {{failed to infer returned types}}
  %o, %l = weft.attend %q, %k, %v windows %w {scale = 0.5 : f64}
    : (tensor<3x2x2x4xf32, #weft.axes<pos, batch, heads, head>>, !q, !q, !two) -> (!q, !lse)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!two = tensor<2xi32>

func.func @attend_c2(%q : !q, %k : tensor<2x3x6x4xf32, #weft.axes<batch, pos, groups, head>>, %v : tensor<2x3x6x4xf32, #weft.axes<batch, pos, groups, head>>, %w : !two) {
  // expected-error@+1 {{expects the axes of k in q}}
  %o, %l = weft.attend %q, %k, %v windows %w {scale = 0.5 : f64}
    : (!q, tensor<2x3x6x4xf32, #weft.axes<batch, pos, groups, head>>, tensor<2x3x6x4xf32, #weft.axes<batch, pos, groups, head>>, !two) -> (!q, !lse)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!kcache = tensor<2x6x2x4xf32, #weft.axes<batch, cache, heads, head>>
!two = tensor<2xi32>

func.func @attend_c3(%q : !q, %k : !q, %v : !kcache, %w : !two) {
  // expected-error@+1 {{expects v to have the axes of k but for its channel}}
  %o, %l = weft.attend %q, %k, %v windows %w {scale = 0.5 : f64}
    : (!q, !q, !kcache, !two) -> (!q, !lse)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!three = tensor<3xi32>

func.func @attend_c4(%q : !q, %k : !q, %v : !q, %w : !three) {
  // expected-error@+1 {{expects one window for each of 2 heads}}
  %o, %l = weft.attend %q, %k, %v windows %w {scale = 0.5 : f64}
    : (!q, !q, !q, !three) -> (!q, !lse)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>

func.func @attend_c4_none(%q : !q, %k : !q, %v : !q) {
  // expected-error@+1 {{expects `windows`, or the formula `window` while the model is rolled}}
  %o, %l = weft.attend %q, %k, %v {scale = 0.5 : f64}
    : (!q, !q, !q) -> (!q, !lse)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!two = tensor<2xi32>

// Starts of other rows than the queries.
func.func @attend_c5(%q : !q, %k : !q, %v : !q, %w : !two, %d : tensor<2x6xi32, #weft.axes<batch, cache>>) {
  // expected-error@+1 {{expects document starts over the first two axes of}}
  %o, %l = weft.attend %q, %k, %v windows %w documents %d {scale = 0.5 : f64}
    : (!q, !q, !q, !two, tensor<2x6xi32, #weft.axes<batch, cache>>) -> (!q, !lse)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!two = tensor<2xi32>

func.func @attend_c6(%q : !q, %k : !q, %v : !q, %w : !two, %d : !two) {
  // expected-error@+1 {{expects `offset` to be a single number}}
  %o, %l = weft.attend %q, %k, %v windows %w offset %d {scale = 0.5 : f64}
    : (!q, !q, !q, !two, !two) -> (!q, !lse)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!kcache = tensor<2x6x2x4xf32, #weft.axes<batch, cache, heads, head>>
!two = tensor<2xi32>

func.func @attend_grad_query_c1(%q : !q, %k : !q, %v : !q, %w : !two, %d : !ids, %o : !q, %l : !lse, %do : !kcache) {
  // expected-error@+1 {{expects `dout` of type}}
  %dq, %delta = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !two, !ids, !q, !lse, !kcache) -> (!q, !lse)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!kcache = tensor<2x6x2x4xf32, #weft.axes<batch, cache, heads, head>>
!two = tensor<2xi32>

func.func @attend_grad_query_c2(%q : !q, %k : !q, %v : !q, %w : !two, %d : !ids, %o : !q, %l : !lse, %do : !q) {
  // expected-error@+1 {{expects `dq` of type}}
  %dq, %delta = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !two, !ids, !q, !lse, !q) -> (!kcache, !lse)
  return
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!two = tensor<2xi32>

func.func @attend_grad_query_c3(%q : !q, %k : !q, %v : !q, %w : !two, %d : !ids, %o : !q, %l : !lse, %do : !q) {
  // expected-error@+1 {{expects `delta` of type}}
  %dq, %delta = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !two, !ids, !q, !lse, !q) -> (!q, !row)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!three = tensor<3xi32>

func.func @attend_grad_query_c4(%q : !q, %k : !q, %v : !q, %w : !three, %d : !ids, %o : !q, %l : !lse, %do : !q) {
  // expected-error@+1 {{expects one window for each of 2 heads}}
  %dq, %delta = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !three, !ids, !q, !lse, !q) -> (!q, !lse)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!kcache = tensor<2x6x2x4xf32, #weft.axes<batch, cache, heads, head>>
!two = tensor<2xi32>

func.func @attend_grad_key_value_c1(%q : !q, %k : !q, %v : !q, %w : !two, %d : !ids, %l : !lse, %delta : !lse, %do : !q) {
  // expected-error@+1 {{expects `dk` of type}}
  %dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %delta, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !two, !ids, !lse, !lse, !q) -> (!kcache, !q)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!kcache = tensor<2x6x2x4xf32, #weft.axes<batch, cache, heads, head>>
!two = tensor<2xi32>

func.func @attend_grad_key_value_c2(%q : !q, %k : !q, %v : !q, %w : !two, %d : !ids, %l : !lse, %delta : !lse, %do : !q) {
  // expected-error@+1 {{expects `dv` of type}}
  %dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %delta, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !two, !ids, !lse, !lse, !q) -> (!q, !kcache)
  return
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!two = tensor<2xi32>

func.func @attend_grad_key_value_c3(%q : !q, %k : !q, %v : !q, %w : !two, %d : !ids, %l : !lse, %delta : !row, %do : !q) {
  // expected-error@+1 {{expects `delta` of type}}
  %dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %delta, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !two, !ids, !lse, !row, !q) -> (!q, !q)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!three = tensor<3xi32>

func.func @attend_grad_key_value_c4(%q : !q, %k : !q, %v : !q, %w : !three, %d : !ids, %l : !lse, %delta : !lse, %do : !q) {
  // expected-error@+1 {{expects one window for each of 2 heads}}
  %dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %delta, %do {scale = 0.5 : f64}
    : (!q, !q, !q, !three, !ids, !lse, !lse, !q) -> (!q, !q)
  return
}

// -----

!hid = tensor<2x3x5xf32, #weft.axes<batch, pos, hidden>>
!kcache = tensor<2x6x2x4xf32, #weft.axes<batch, cache, heads, head>>
!i = tensor<i32>

func.func @cache_update_c1(%c : !kcache, %x : !hid, %o : !i) {
  // expected-error@+1 {{expects a value with the axes of the cache but for the second}}
  %n = weft.cache_update %c, %x, %o : (!kcache, !hid, !i) -> !kcache
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kcache = tensor<2x6x2x4xf32, #weft.axes<batch, cache, heads, head>>
!i = tensor<i32>

func.func @cache_update_c2(%c : !kcache, %x : !q, %o : !i) {
  // expected-error@+1 {{expects `result` of type}}
  %n = weft.cache_update %c, %x, %o : (!kcache, !q, !i) -> !q
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @attend_c7(%q : !q, %k : !kv, %v : !kv, %w : !two, %d : !ids, %t : !three) {
  // expected-error@+1 {{expects one key-value head for each of 2 heads}}
  %o, %l = weft.attend %q, %k, %v windows %w kv_of %t {scale = 0.5 : f64}
    : (!q, !kv, !kv, !two, !three) -> (!q, !lse)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @attend_c8(%q : !q, %k : !kv, %v : !kv, %w : !two, %d : !ids, %t : !two) {
  // expected-error@+1 {{expects an order that names each of 2 heads once}}
  %o, %l = weft.attend %q, %k, %v windows %w kv_of %t order [1, 1] {scale = 0.5 : f64}
    : (!q, !kv, !kv, !two, !two) -> (!q, !lse)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @attend_grad_query_c5(%q : !q, %k : !kv, %v : !kv, %w : !two, %d : !ids, %o : !q, %l : !lse, %do : !q, %t : !three) {
  // expected-error@+1 {{expects one key-value head for each of 2 heads}}
  %dq, %e = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %do kv_of %t {scale = 0.5 : f64}
    : (!q, !kv, !kv, !two, !ids, !q, !lse, !q, !three) -> (!q, !lse)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @attend_grad_query_c6(%q : !q, %k : !kv, %v : !kv, %w : !two, %d : !ids, %o : !q, %l : !lse, %do : !q, %t : !two) {
  // expected-error@+1 {{expects an order that names each of 2 heads once}}
  %dq, %e = weft.attend_grad_query %q, %k, %v windows %w documents %d, %o, %l, %do kv_of %t order [0] {scale = 0.5 : f64}
    : (!q, !kv, !kv, !two, !ids, !q, !lse, !q, !two) -> (!q, !lse)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @attend_grad_key_value_c5(%q : !q, %k : !kv, %v : !kv, %w : !two, %d : !ids, %l : !lse, %e : !lse, %do : !q, %t : !three) {
  // expected-error@+1 {{expects one key-value head for each of 2 heads}}
  %dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %e, %do kv_of %t {scale = 0.5 : f64}
    : (!q, !kv, !kv, !two, !ids, !lse, !lse, !q, !three) -> (!kv, !kv)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @attend_grad_key_value_c6(%q : !q, %k : !kv, %v : !kv, %w : !two, %d : !ids, %l : !lse, %e : !lse, %do : !q, %t : !two) {
  // expected-error@+1 {{expects an order that names each of 3 heads once}}
  %dk, %dv = weft.attend_grad_key_value %q, %k, %v windows %w documents %d, %l, %e, %do kv_of %t order [0, 1] {scale = 0.5 : f64}
    : (!q, !kv, !kv, !two, !ids, !lse, !lse, !q, !two) -> (!kv, !kv)
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @head_statistics_c1(%q : !q, %k : !kv, %v : !kv, %o : !kv, %l : !lse, %w : !two, %d : !ids, %t : !two) {
  // expected-error@+1 {{expects `out without its channel` of type}}
  %r = weft.head_statistics %q, %k, %v, %o, %l windows %w documents %d kv_of %t
    : (!q, !kv, !kv, !kv, !lse, !two, !ids, !two) -> !s
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @head_statistics_c2(%q : !q, %k : !kv, %v : !kv, %o : !q, %l : !row, %w : !two, %d : !ids, %t : !two) {
  // expected-error@+1 {{expects `entropy` of type}}
  %r = weft.head_statistics %q, %k, %v, %o, %l windows %w documents %d kv_of %t
    : (!q, !kv, !kv, !q, !row, !two, !ids, !two) -> !s
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @head_statistics_c3(%q : !q, %k : !kv, %v : !kv, %o : !q, %l : !lse, %w : !three, %d : !ids, %t : !two) {
  // expected-error@+1 {{expects one window for each of 2 heads}}
  %r = weft.head_statistics %q, %k, %v, %o, %l windows %w documents %d kv_of %t
    : (!q, !kv, !kv, !q, !lse, !three, !ids, !two) -> !s
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @head_statistics_c4(%q : !q, %k : !kv, %v : !kv, %o : !q, %l : !lse, %w : !two, %d : !ids, %t : !three) {
  // expected-error@+1 {{expects one key-value head for each of 2 heads}}
  %r = weft.head_statistics %q, %k, %v, %o, %l windows %w documents %d kv_of %t
    : (!q, !kv, !kv, !q, !lse, !two, !ids, !three) -> !s
  return
}

// -----

!ids = tensor<2x3xi32, #weft.axes<batch, pos>>
!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!kv = tensor<2x3x3x4xf32, #weft.axes<batch, pos, kv, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!s = tensor<2x12xf32>

func.func @head_statistics_c5(%q : !q, %k : !kv, %v : !kv, %o : !q, %l : !lse, %w : !two, %d : !ids, %t : !two) {
  // expected-error@+1 {{expects a result of 2 heads x 12 sums}}
  %r = weft.head_statistics %q, %k, %v, %o, %l windows %w documents %d kv_of %t
    : (!q, !kv, !kv, !q, !lse, !two, !ids, !two) -> !lse
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!late = tensor<2x4x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!four = tensor<4xi32>
!t = tensor<2x3xf32>
!s = tensor<2x8xf32>

func.func @pattern_statistics_c1(%q : !q, %k : !late, %l : !lse, %w : !two, %d : !four, %n : !three, %a : !t, %r : !t, %z : !t) {
  // expected-error@+1 {{expects q of axes batch, pos}}
  %s:3 = weft.pattern_statistics %q, %k, %l windows %w documents %d reach %n pattern %a, %r, %z {scale = 0.5 : f64}
    : (!q, !late, !lse, !two, !four, !three, !t, !t, !t) -> (!t, !t, !s)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!late = tensor<2x4x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!four = tensor<4xi32>
!t = tensor<2x3xf32>
!s = tensor<2x8xf32>

func.func @pattern_statistics_c2(%q : !q, %k : !q, %l : !row, %w : !two, %d : !four, %n : !three, %a : !t, %r : !t, %z : !t) {
  // expected-error@+1 {{expects `lse` of type}}
  %s:3 = weft.pattern_statistics %q, %k, %l windows %w documents %d reach %n pattern %a, %r, %z {scale = 0.5 : f64}
    : (!q, !q, !row, !two, !four, !three, !t, !t, !t) -> (!t, !t, !s)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!late = tensor<2x4x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!four = tensor<4xi32>
!t = tensor<2x3xf32>
!s = tensor<2x8xf32>

func.func @pattern_statistics_c3(%q : !q, %k : !q, %l : !lse, %w : !three, %d : !four, %n : !three, %a : !t, %r : !t, %z : !t) {
  // expected-error@+1 {{expects one window for each of 2 heads}}
  %s:3 = weft.pattern_statistics %q, %k, %l windows %w documents %d reach %n pattern %a, %r, %z {scale = 0.5 : f64}
    : (!q, !q, !lse, !three, !four, !three, !t, !t, !t) -> (!t, !t, !s)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!late = tensor<2x4x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!four = tensor<4xi32>
!t = tensor<2x3xf32>
!s = tensor<2x8xf32>

func.func @pattern_statistics_c4(%q : !q, %k : !q, %l : !lse, %w : !two, %d : !four, %n : !two, %a : !t, %r : !t, %z : !t) {
  // expected-error@+1 {{expects `reach` of 3 places and at most 6 documents}}
  %s:3 = weft.pattern_statistics %q, %k, %l windows %w documents %d reach %n pattern %a, %r, %z {scale = 0.5 : f64}
    : (!q, !q, !lse, !two, !four, !two, !t, !t, !t) -> (!t, !t, !s)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!late = tensor<2x4x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!four = tensor<4xi32>
!t = tensor<2x3xf32>
!s = tensor<2x8xf32>

func.func @pattern_statistics_c5(%q : !q, %k : !q, %l : !lse, %w : !two, %d : !four, %n : !three, %a : !t, %r : !t, %z : !s) {
  // expected-error@+1 {{expects a, r, z, columns and diagonals of 2 heads x 3 places}}
  %s:3 = weft.pattern_statistics %q, %k, %l windows %w documents %d reach %n pattern %a, %r, %z {scale = 0.5 : f64}
    : (!q, !q, !lse, !two, !four, !three, !t, !t, !s) -> (!t, !t, !s)
  return
}

// -----

!q = tensor<2x3x2x4xf32, #weft.axes<batch, pos, heads, head>>
!late = tensor<2x4x2x4xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x3x2xf32, #weft.axes<batch, pos, heads>>
!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!two = tensor<2xi32>
!three = tensor<3xi32>
!four = tensor<4xi32>
!t = tensor<2x3xf32>
!s = tensor<2x8xf32>

func.func @pattern_statistics_c6(%q : !q, %k : !q, %l : !lse, %w : !two, %d : !four, %n : !three, %a : !t, %r : !t, %z : !t) {
  // expected-error@+1 {{expects a result of 2 heads x 8 sums}}
  %s:3 = weft.pattern_statistics %q, %k, %l windows %w documents %d reach %n pattern %a, %r, %z {scale = 0.5 : f64}
    : (!q, !q, !lse, !two, !four, !three, !t, !t, !t) -> (!t, !t, !t)
  return
}
