// RUN: weft-opt %s --split-input-file --weft-drop-ffn | FileCheck %s
// RUN: weft-opt %s --split-input-file --weft-drop-ffn --weft-unroll-layers="batch=1 positions=2" | FileCheck %s --check-prefix=OUT

// Everywhere: the branch, its parameter and its sum are gone, the depth is the
// new one. Mutations caught: the branch left behind, the depth left at 2 (three
// states of wo, with a spread of 1 / sqrt(2 * 3)), another branch taken with it.
// CHECK-LABEL: weft.model @everywhere
// CHECK-SAME: depth = "3"
// CHECK: weft.branch "attn"
// CHECK-NOT: weft.branch "ffn"
// CHECK-NOT: weft.param "up"
// CHECK-NOT: weft.constant
// CHECK-NOT: weft.drop
// OUT-LABEL: module
// OUT: weft.state parameter @block.0.attn.wo <normal, 0.40824829046386307 : f64>
// OUT: weft.state parameter @block.1.attn.wo
// OUT: weft.state parameter @block.2.attn.wo
// OUT-NOT: up
!act = tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<?xf32, #weft.axes<dim>>
module attributes {weft.drop = [{layer = "block", branch = "ffn", setting = "depth", depth = 3 : i64}]} {
  weft.model @everywhere {dim = "4", depth = "2"} {
    %x = weft.input "x" : !act
    %y = weft.layer "block" [<"depth">] (%in = %x) : !act {
      %a = weft.branch "attn" {
        %wo = weft.param "wo" <normal, #weft.formula<"1 / sqrt(2 * depth)">> : !gain
        %v = weft.binary mul %in, %wo : (!act, !gain) -> !act
        weft.yield %v : !act
      } : !act
      %x1 = weft.binary add %in, %a : (!act, !act) -> !act
      %f = weft.branch "ffn" {
        %up = weft.param "up" <constant, 0.0 : f64> : !gain
        %v = weft.binary mul %x1, %up : (!act, !gain) -> !act
        weft.yield %v : !act
      } : !act
      %x2 = weft.binary add %x1, %f : (!act, !act) -> !act
      weft.yield %x2 : !act
    }
    weft.output "y" %y : !act
  }
}

// -----

// Chosen layers: a test of the index, which the layer did not have. Layers 0 and
// 2 lose it, layer 1 keeps it. Mutation caught: the sides of the test exchanged.
// CHECK-LABEL: weft.model @chosen
// CHECK-SAME: depth = "3"
// CHECK: weft.layer "block" [layer_index < <"depth">]
// CHECK: weft.if <"layer_index is 0 or layer_index is 2">
// CHECK: weft.constant {value = 0.000000e+00 : f64}
// CHECK: else
// CHECK: weft.branch "ffn"
// OUT-LABEL: module
// OUT-NOT: @block.0.ffn.up
// OUT: weft.state parameter @block.1.ffn.up
// OUT-NOT: @block.2.ffn.up
!act = tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<?xf32, #weft.axes<dim>>
module attributes {weft.drop = [{layer = "block", branch = "ffn", indices = array<i64: 0, 2>}]} {
  weft.model @chosen {dim = "4", depth = "3"} {
    %x = weft.input "x" : !act
    %y = weft.layer "block" [<"depth">] (%in = %x) : !act {
      %f = weft.branch "ffn" {
        %up = weft.param "up" <constant, 0.0 : f64> : !gain
        %v = weft.binary mul %in, %up : (!act, !gain) -> !act
        weft.yield %v : !act
      } : !act
      %x2 = weft.binary add %in, %f : (!act, !act) -> !act
      weft.yield %x2 : !act
    }
    weft.output "y" %y : !act
  }
}

// -----

// A branch behind an `if` of the layer, whose value is used other than in a sum:
// it is zero there.
// OUT-LABEL: module
// CHECK-LABEL: weft.model @scaled
// CHECK: weft.if <"i < 1">
// CHECK-NEXT: %[[ZERO:.*]] = weft.constant {value = 0.000000e+00 : f64}
// CHECK-NEXT: weft.binary mul %{{.*}}, %[[ZERO]]
!act = tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
module attributes {weft.drop = [{layer = "block", branch = "ffn"}]} {
  weft.model @scaled {dim = "4"} {
    %x = weft.input "x" : !act
    %y = weft.layer "block" [i < <"2">] (%in = %x) : !act {
      %r = weft.if <"i < 1"> {
        %f = weft.branch "ffn" {
          weft.yield %in : !act
        } : !act
        %s = weft.binary mul %in, %f : (!act, !act) -> !act
        weft.yield %s : !act
      } else {
        weft.yield %in : !act
      } : !act
      weft.yield %r : !act
    }
    weft.output "y" %y : !act
  }
}
