// RUN: weft-opt %s --split-input-file --verify-diagnostics --weft-unroll-layers="batch=1 positions=4"

// A size that no tensor has must be refused by name.
weft.model @m {dim = "3 - 3"} {
  // expected-error@+1 {{expects a whole size of at least 1 for the axis 'dim', but found 0}}
  %w = weft.param "w" <normal, 1.0 : f64> : tensor<?xf32, #weft.axes<dim>>
}

// -----

// An axis that no setting names.
weft.model @m {dim = "3"} {
  // expected-error@+1 {{expects a whole size of at least 1 for the axis 'hidden', but found none}}
  %w = weft.param "w" <normal, 1.0 : f64> : tensor<?xf32, #weft.axes<hidden>>
}

// -----

// Layers can't be taken away from.
weft.model @m {depth = "5"} {
  // expected-error@+1 {{expects a whole count of repeats, but got -1}}
  weft.layer "block" [<"depth - 6">] () : () {
    weft.yield
  }
}

// -----

// A formula over a name that does not exist.
weft.model @m {dim = "3"} {
  // expected-error@+1 {{can't evaluate 'width + 1'}}
  %w = weft.param "w" <normal, #weft.formula<"width + 1">> : tensor<?xf32, #weft.axes<dim>>
}

// -----

!ids = tensor<?x?xi32, #weft.axes<batch, pos>>
!q = tensor<?x?x?x?xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<?x?x?xf32, #weft.axes<batch, pos, heads>>

// A window of no key would be a softmax over nothing.
weft.model @m {heads = "2", head = "2"} {
  %doc = weft.input "doc_start" : !ids
  %q = weft.param "q" <normal, 1.0 : f64> : !q
  // expected-error@+1 {{expects a window of at least 1 key, the query's own, but got 0}}
  %a, %lse = weft.attend %q, %q, %q documents %doc window <"0"> {scale = 1.0 : f64} : (!q, !q, !q, !ids) -> (!q, !lse)
}

// -----

!ids = tensor<?x?xi32, #weft.axes<batch, pos>>
!q = tensor<?x?x?x?xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<?x?x?xf32, #weft.axes<batch, pos, heads>>

// A plan for other heads than the model has.
module attributes {weft.windows = {attn = array<i32: 1, 4, 2>}} {
  weft.model @m {heads = "2", head = "2"} {
    %doc = weft.input "doc_start" : !ids
    %q = weft.param "q" <normal, 1.0 : f64> : !q
    %b = weft.branch "attn" {
      // expected-error@+1 {{expects one window a head, 2 in attn, but the plan gives 3}}
      %a, %lse = weft.attend %q, %q, %q documents %doc window <"full"> {scale = 1.0 : f64} : (!q, !q, !q, !ids) -> (!q, !lse)
      weft.yield %a : !q
    } : !q
  }
}

// -----

!ids = tensor<?x?xi32, #weft.axes<batch, pos>>
!q = tensor<?x?x?x?xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<?x?x?xf32, #weft.axes<batch, pos, heads>>

// One head that sees nothing, by number.
module attributes {weft.windows = {attn = array<i32: 4, 0>}} {
  weft.model @m {heads = "2", head = "2"} {
    %doc = weft.input "doc_start" : !ids
    %q = weft.param "q" <normal, 1.0 : f64> : !q
    %b = weft.branch "attn" {
      // expected-error@+1 {{expects windows of at least 1 key, the query's own, but the plan gives 0 to head 1 of attn}}
      %a, %lse = weft.attend %q, %q, %q documents %doc window <"full"> {scale = 1.0 : f64} : (!q, !q, !q, !ids) -> (!q, !lse)
      weft.yield %a : !q
    } : !q
  }
}

// -----

// Half a layer is none, and the message shows the numbers.
weft.model @m {depth = "5"} {
  // expected-error@+1 {{can't evaluate 'depth / 2': depth / 2 = 5 / 2 is not whole}}
  weft.layer "block" [<"depth / 2">] () : () {
    weft.yield
  }
}
