// RUN: weft-opt %s --split-input-file --weft-unroll-layers="batch=2 positions=8" | FileCheck %s

// One model with every construct that unrolling removes. Mutations caught: a
// layer walked once too often, parameters in the wrong scope, the carried value
// of the last repeat lost, a formula of the index evaluated once for all layers.
// CHECK-NOT: weft.model
// CHECK: weft.state parameter @embed <normal, 2.000000e-02 : f64> : tensor<11x4xf32, #weft.axes<vocab, dim>>
// CHECK: weft.state parameter @block.0.w <normal, 2.500000e-01 : f64> : tensor<4x8xf32, #weft.axes<dim, hidden>>
// CHECK: weft.state parameter @block.0.gate.g <constant, 0.000000e+00 : f64> : tensor<4xf32, #weft.axes<dim>>
// CHECK: weft.state parameter @block.1.w <normal, 2.500000e-01 : f64> : tensor<4x12xf32, #weft.axes<dim, hidden>>
// CHECK: weft.state parameter @block.1.gate.g <constant, 1.000000e+00 : f64> : tensor<4xf32, #weft.axes<dim>>
// CHECK-NOT: weft.state
// CHECK: func.func @forward(
// CHECK-SAME: %[[TOKENS:[^:]*]]: tensor<2x8xi32, #weft.axes<batch, pos>> {weft.name = "tokens"},
// CHECK-SAME: %[[DOC:[^:]*]]: tensor<2x8xi32, #weft.axes<batch, pos>> {weft.name = "doc_start"})
// CHECK-SAME: -> (tensor<f32> {weft.name = "loss"}, tensor<2x8x4xf32, #weft.axes<batch, pos, dim>> {weft.name = "last"})
// CHECK: %[[X0:.*]] = weft.gather
// CHECK: %[[H0:.*]] = weft.contract %[[X0]], {{.*}} tensor<2x8x8xf32, #weft.axes<batch, pos, hidden>>
// CHECK: %[[Y0:.*]] = weft.contract %[[H0]],
// CHECK: %[[G0:.*]] = weft.get @block.0.gate.g
// CHECK: %[[Z0:.*]] = weft.binary mul %[[Y0]], %[[G0]]
// CHECK: %[[X1:.*]] = weft.binary add %[[X0]], %[[Z0]]
// CHECK: %[[H1:.*]] = weft.contract %[[X1]], {{.*}} tensor<2x8x12xf32, #weft.axes<batch, pos, hidden>>
// CHECK: %[[Y1:.*]] = weft.contract %[[H1]],
// CHECK: %[[G1:.*]] = weft.get @block.1.gate.g
// CHECK: %[[Z1:.*]] = weft.binary mul %[[Y1]], %[[G1]]
// CHECK: %[[X2:.*]] = weft.binary add %[[X1]], %[[Z1]]
// CHECK: %[[LAST:.*]] = weft.unary relu %[[X2]]
// CHECK: %[[LOSS:.*]] = weft.sum_to %[[LAST]]
// CHECK: return %[[LOSS]], %[[LAST]]
!ids = tensor<?x?xi32, #weft.axes<batch, pos>>
!act = tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<?x?x?xf32, #weft.axes<batch, pos, hidden>>
!w = tensor<?x?xf32, #weft.axes<dim, hidden>>
!gain = tensor<?xf32, #weft.axes<dim>>

weft.model @m {vocab = "11", dim = "4", depth = "2", std = "1.0 / dim"} {
  %doc = weft.input "doc_start" : !ids
  %tokens = weft.input "tokens" : !ids
  %embed = weft.param "embed" <normal, 0.02 : f64> : tensor<?x?xf32, #weft.axes<vocab, dim>>
  %x = weft.gather %embed, %tokens : (tensor<?x?xf32, #weft.axes<vocab, dim>>, !ids) -> !act
  %y = weft.layer "block" [i < <"depth">] (%in = %x) : !act {
    weft.let "hidden" = <"8 + 4 * i">
    %w = weft.param "w" <normal, #weft.formula<"std">> : !w
    %h = weft.contract %in, %w : (!act, !w) -> !hid
    %o = weft.contract %h, %w : (!hid, !w) -> !act
    %b = weft.branch "gate" {
      %g = weft.param "g" <constant, #weft.formula<"i">> : !gain
      %z = weft.binary mul %o, %g : (!act, !gain) -> !act
      weft.yield %z : !act
    } : !act
    %next = weft.binary add %in, %b : (!act, !act) -> !act
    weft.yield %next : !act
  }
  %chosen = weft.if <"depth is 2"> {
    %r = weft.unary relu %y : (!act) -> !act
    weft.yield %r : !act
  } else {
    weft.yield %y : !act
  } : !act
  weft.output "last" %chosen : !act
  %loss = weft.sum_to %chosen : (!act) -> tensor<f32>
  weft.loss %loss : tensor<f32>
}

// -----

// Windows: one a head, `full` is the largest number; the plan's list replaces
// those of its own path alone. Rope reads a table that equal bases share.
// Mutations caught: the plan's windows given to every layer; a table a layer; the
// last statement unrolled twice (an output returned twice).
// CHECK: weft.state parameter @q
// CHECK-NEXT: weft.state table @"table/rope.10000.1" <rope_table, 1.000000e+04 : f64> : tensor<8x1x2xf32>
// CHECK-NOT: weft.state
// CHECK: func.func @forward
// CHECK: weft.rope %{{.*}} table %{{.*}} {base = 1.000000e+04 : f64}
// CHECK: %[[W0:.*]] = weft.integers [2147483647, 2147483647, 2147483647]
// CHECK: weft.attend %[[Q0:.*]], %[[Q0]], %[[Q0]] windows %[[W0]] documents
// CHECK: weft.rope
// CHECK: %[[W1:.*]] = weft.integers [1, 4, 2]
// CHECK: %[[Y:.*]], %{{.*}} = weft.attend %[[Q1:.*]], %[[Q1]], %[[Q1]] windows %[[W1]] documents
// CHECK: return %[[Y]] : tensor
!ids = tensor<?x?xi32, #weft.axes<batch, pos>>
!q = tensor<?x?x?x?xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<?x?x?xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.windows = {block.1.attn = array<i32: 1, 4, 2>}} {
  weft.model @m {heads = "3", head = "2"} {
    %doc = weft.input "doc_start" : !ids
    %position = weft.position %doc : (!ids) -> !ids
    %q = weft.param "q" <normal, 1.0 : f64> : !q
    %y = weft.layer "block" [i < <"2">] (%in = %q) : !q {
      %b = weft.branch "attn" {
        %r = weft.rope %in, %position {base = #weft.formula<"10000">} : (!q, !ids) -> !q
        %a, %lse = weft.attend %r, %r, %r documents %doc window <"full"> {scale = 1.0 : f64} : (!q, !q, !q, !ids) -> (!q, !lse)
        weft.yield %a : !q
      } : !q
      weft.yield %b : !q
    }
    weft.output "y" %y : !q
  }
}

// -----

// Windows that a plan decides about while it runs are state, without bound at
// first; those of other branches are constants. Mutation caught: one entry for
// all layers, windows compiled in.
// CHECK: weft.state control @"control/windows/block.1.attn" <constant, 0x41DFFFFFFFC00000 : f64> : tensor<3xi32>
// CHECK-NOT: weft.state control
// CHECK: func.func @forward
// CHECK: weft.integers [2147483647, 2147483647, 2147483647]
// CHECK-NOT: weft.integers
// CHECK: %[[W1:.*]] = weft.get @"control/windows/block.1.attn" : tensor<3xi32>
// CHECK: weft.attend %{{.*}} windows %[[W1]] documents
!ids = tensor<?x?xi32, #weft.axes<batch, pos>>
!q = tensor<?x?x?x?xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<?x?x?xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.window_state = ["block.1.attn"]} {
  weft.model @m {heads = "3", head = "2"} {
    %doc = weft.input "doc_start" : !ids
    %q = weft.param "q" <normal, 1.0 : f64> : !q
    %y = weft.layer "block" [i < <"2">] (%in = %q) : !q {
      %b = weft.branch "attn" {
        %a, %lse = weft.attend %in, %in, %in documents %doc window <"full"> {scale = 1.0 : f64} : (!q, !q, !q, !ids) -> (!q, !lse)
        weft.yield %a : !q
      } : !q
      weft.yield %b : !q
    }
    weft.output "y" %y : !q
  }
}

// -----

// Dropout at rate 0 leaves nothing; at another rate its stream is its scope, so
// that layers draw apart. Mutation caught: one stream for every layer.
// CHECK: func.func @forward
// CHECK: %[[D0:.*]] = weft.dropout %{{.*}} "block.0.dropout" {rate = 5.000000e-01 : f64}
// CHECK: %[[D1:.*]] = weft.dropout %[[D0]] "block.1.dropout" {rate = 5.000000e-01 : f64}
// CHECK-NOT: weft.dropout
// CHECK: return %[[D1]]
!gain = tensor<?xf32, #weft.axes<dim>>
weft.model @m {dim = "4", drop = "0"} {
  %w = weft.param "w" <normal, 1.0 : f64> : !gain
  %y = weft.layer "block" [<"2">] (%in = %w) : !gain {
    %d = weft.dropout %in "" {rate = 0.5 : f64} : (!gain) -> !gain
    weft.yield %d : !gain
  }
  %none = weft.dropout %y "" {rate = #weft.formula<"drop">} : (!gain) -> !gain
  weft.output "y" %none : !gain
}
