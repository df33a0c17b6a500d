// RUN: weft-opt %s --split-input-file --weft-freeze-heads --cse | FileCheck %s

// Four heads of their own keys: 1 is frozen, 2 is pruned. wq, wk and the biases
// keep two slices, wv and wo lose the pruned one. Mutations caught: a slice of
// another head, indices of the smaller entry counted in the whole, windows of the
// wrong heads, the optimiser's groups naming what is gone.
// CHECK: weft.groups = [{{.*}} params = ["wq", "wk", "wv", "wo", "pattern/s/a"]}]
// CHECK: weft.state parameter @wq <{{.*}}> slices <of[6, 4, 2] axes 1 + 1 kept[0, 3]> : tensor<6x2x2xf32, #weft.axes<dim, live, head>>
// CHECK: weft.state parameter @bq <{{.*}}> slices <of[4, 2] axes 0 + 1 kept[0, 3]> : tensor<2x2xf32, #weft.axes<live, head>>
// CHECK: weft.state parameter @wk <{{.*}}> slices <of[6, 4, 2] axes 1 + 1 kept[0, 3]>
// CHECK: weft.state parameter @wv <{{.*}}> slices <of[6, 4, 2] axes 1 + 1 kept[0, 1, 3]> : tensor<6x3x2xf32, #weft.axes<dim, kept, head>>
// CHECK: weft.state parameter @wo <{{.*}}> slices <of[4, 2, 6] axes 0 + 1 kept[0, 1, 3]> : tensor<3x2x6xf32, #weft.axes<kept, head, dim>>
// CHECK: weft.state parameter @"pattern/s/a" <constant, 0.000000e+00 : f64> : tensor<1x8xf32, #weft.axes<frozen, place>>
// CHECK: weft.state parameter @"pattern/s/r"
// CHECK-LABEL: @forward
// CHECK-DAG: %[[WO:.*]] = weft.get @wo : tensor<3x2x6xf32
// CHECK-DAG: %[[WOL:.*]] = weft.take %[[WO]] ["kept"] as "live" at [0, 2]
// CHECK-DAG: %[[WOF:.*]] = weft.take %[[WO]] ["kept"] as "frozen" at [1]
// CHECK-DAG: %[[LIVE:.*]] = weft.integers [5, 8]
// CHECK-DAG: %[[Q:.*]] = weft.rope {{.*}} tensor<2x8x2x2xf32, #weft.axes<batch, pos, live, head>>
// CHECK-DAG: weft.contract %{{.*}} : (tensor<2x8x6xf32, #weft.axes<batch, pos, dim>>, tensor<6x2x2xf32, #weft.axes<dim, live, head>>)
// CHECK-DAG: %[[A:.*]], %{{.*}} = weft.attend %[[Q]], %{{.*}}, %{{.*}} windows %[[LIVE]] documents
// CHECK-DAG: %[[WINDOW:.*]] = weft.integers [3]
// CHECK-DAG: %[[M:.*]], %{{.*}} = weft.mix %{{.*}}, %{{.*}}, %{{.*}} windows %[[WINDOW]] documents
// CHECK: %[[O:.*]] = weft.contract %[[A]], %[[WOL]] :
// CHECK: %[[P:.*]] = weft.contract %[[M]], %[[WOF]] init %[[O]]
// CHECK: return %[[P]]
!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!x = tensor<2x8x6xf32, #weft.axes<batch, pos, dim>>
!h = tensor<2x8x4x2xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x4xf32, #weft.axes<batch, pos, heads>>
!w = tensor<6x4x2xf32, #weft.axes<dim, heads, head>>
!b = tensor<4x2xf32, #weft.axes<heads, head>>
!o = tensor<4x2x6xf32, #weft.axes<heads, head, dim>>
!t = tensor<8x1x2xf32>
module attributes {
  weft.frozen = {s = {heads = array<i64: 1>, trained = true, windows = array<i32: 3>}},
  weft.pruned = {s = array<i64: 2>},
  weft.groups = [{beta1 = 0.9, beta2 = 0.999, decay = 0.0, eps = 1.0e-8, params = ["wq", "gone", "wk", "wv", "wo", "pattern/s/a"]}]
} {
  weft.state parameter @wq <normal, 1.0 : f64> : !w
  weft.state parameter @bq <normal, 1.0 : f64> : !b
  weft.state parameter @wk <normal, 1.0 : f64> : !w
  weft.state parameter @wv <normal, 1.0 : f64> : !w
  weft.state parameter @wo <normal, 1.0 : f64> : !o
  weft.state table @t <rope_table, 10000.0 : f64> : !t
  func.func @forward(%x: !x, %d: !ids) -> (!x {weft.name = "y"}) {
    %p = weft.position %d : (!ids) -> !ids
    %t = weft.get @t : !t
    %wq = weft.get @wq : !w
    %bq = weft.get @bq : !b
    %wk = weft.get @wk : !w
    %wv = weft.get @wv : !w
    %wo = weft.get @wo : !o
    %q0 = weft.contract %x, %wq : (!x, !w) -> !h
    %q1 = weft.binary add %q0, %bq : (!h, !b) -> !h
    %q = weft.rope %q1, %p table %t {base = 1.0e4 : f64} : (!h, !ids, !t) -> !h
    %k0 = weft.contract %x, %wk : (!x, !w) -> !h
    %k = weft.rope %k0, %p table %t {base = 1.0e4 : f64} : (!h, !ids, !t) -> !h
    %v = weft.contract %x, %wv : (!x, !w) -> !h
    %windows = weft.integers [5, 6, 7, 8] : tensor<4xi32>
    %a, %lse = weft.attend %q, %k, %v windows %windows documents %d {scale = 0.5 : f64} : (!h, !h, !h, tensor<4xi32>, !ids) -> (!h, !l) loc("in s"("f":1:1))
    %y = weft.contract %a, %wo : (!h, !o) -> !x
    return %y : !x
  }
}

// -----

// Two key-value heads for four: head 0 reads what head 1 reads, 2 and 3 alone
// read value head 1. Mutations caught: keys of a group that has no live head kept,
// values that live heads read computed twice, kv_of counted in the whole model.
// CHECK: weft.state parameter @wq <{{.*}}> slices <of[6, 2, 2, 2] axes 1 + 2 kept[1]>
// CHECK: weft.state parameter @gain <{{.*}}> : tensor<2xf32, #weft.axes<head>>
// CHECK: weft.state parameter @wk <{{.*}}> slices <of[6, 2, 2] axes 1 + 1 kept[0]>
// CHECK: weft.state parameter @wv <{{.*}}> : tensor<6x2x2xf32, #weft.axes<dim, kv, head>>
// CHECK: weft.state parameter @wo <{{.*}}> : tensor<2x2x2x6xf32, #weft.axes<kv, group, head, dim>>
// CHECK: weft.state control @"pattern/s/a" {{.*}} : tensor<3x16xf32, #weft.axes<frozen, place>>
// CHECK-LABEL: @forward
// CHECK-DAG: %[[ONE:.*]] = weft.integers [0] : tensor<1xi32>
// CHECK-DAG: %[[TWO:.*]] = weft.integers [0, 0] : tensor<2xi32>
// CHECK-DAG: %[[V0:.*]] = weft.contract %{{.*}} -> tensor<2x8x1x2xf32, #weft.axes<batch, pos, live_kv, head>>
// CHECK-DAG: %[[V1:.*]] = weft.contract %{{.*}} -> tensor<2x8x1x2xf32, #weft.axes<batch, pos, frozen_kv, head>>
// CHECK-DAG: weft.attend %{{.*}} kv_of %[[ONE]]
// CHECK-DAG: weft.mix %{{.*}} kv_of %[[ONE]] : {{.*}} -> (tensor<2x8x1x2xf32, #weft.axes<batch, pos, part, head>>
// CHECK-DAG: weft.mix %[[V1]], %{{.*}} kv_of %[[TWO]] : {{.*}} -> (tensor<2x8x2x2xf32, #weft.axes<batch, pos, part, head>>
// CHECK-NOT: weft.put
// CHECK: return
!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!x = tensor<2x8x6xf32, #weft.axes<batch, pos, dim>>
!q = tensor<2x8x2x2x2xf32, #weft.axes<batch, pos, kv, group, head>>
!k = tensor<2x8x2x2xf32, #weft.axes<batch, pos, kv, head>>
!l = tensor<2x8x2x2xf32, #weft.axes<batch, pos, kv, group>>
!wq = tensor<6x2x2x2xf32, #weft.axes<dim, kv, group, head>>
!wk = tensor<6x2x2xf32, #weft.axes<dim, kv, head>>
!g = tensor<2xf32, #weft.axes<head>>
!o = tensor<2x2x2x6xf32, #weft.axes<kv, group, head, dim>>
module attributes {
  weft.frozen = {s = {heads = array<i64: 0, 2, 3>, length = 16 : i64, trained = false,
                      windows = array<i32: 2147483647, 4, 5>}}
} {
  weft.state parameter @wq <normal, 1.0 : f64> : !wq
  weft.state parameter @gain <constant, 1.0 : f64> : !g
  weft.state parameter @wk <normal, 1.0 : f64> : !wk
  weft.state parameter @wv <normal, 1.0 : f64> : !wk
  weft.state parameter @wo <normal, 1.0 : f64> : !o
  func.func @forward(%x: !x, %d: !ids) -> (!x {weft.name = "y"}) {
    %wq = weft.get @wq : !wq
    %gain = weft.get @gain : !g
    %wk = weft.get @wk : !wk
    %wv = weft.get @wv : !wk
    %wo = weft.get @wo : !o
    %q0 = weft.contract %x, %wq : (!x, !wq) -> !q
    %q1 = weft.rms_norm %q0 {eps = 1.0e-6 : f64} : (!q) -> !q
    %q = weft.binary mul %gain, %q1 : (!g, !q) -> !q
    %k = weft.contract %x, %wk : (!x, !wk) -> !k
    %v = weft.contract %x, %wv : (!x, !wk) -> !k
    %windows = weft.integers [8, 8, 8, 8] : tensor<4xi32>
    %a, %lse = weft.attend %q, %k, %v windows %windows documents %d {scale = 0.5 : f64} : (!q, !k, !k, tensor<4xi32>, !ids) -> (!q, !l) loc("in s"("f":1:1))
    %y = weft.contract %a, %wo : (!q, !o) -> !x
    return %y : !x
  }
}

// -----

// All heads are frozen: scores, their weights and the rope table are gone, the
// values' weights are used as they are. A factor on the output is put on the
// part. Mutations caught: a dead entry left, a take of all heads.
// CHECK-NOT: @wq
// CHECK-NOT: @t
// CHECK: weft.state parameter @wv <{{.*}}> : tensor<6x2x3xf32, #weft.axes<dim, heads, head>>
// CHECK: weft.state parameter @wo <{{.*}}> : tensor<2x3x6xf32, #weft.axes<heads, head, dim>>
// CHECK: weft.state control @"pattern/s/a" {{.*}} : tensor<2x8xf32, #weft.axes<heads, place>>
// CHECK-LABEL: @forward
// CHECK-NOT: weft.attend
// CHECK-NOT: weft.take
// CHECK: %[[M:.*]], %{{.*}} = weft.mix
// CHECK: %[[S:.*]] = weft.binary mul %[[M]], %arg2
// CHECK: weft.contract %[[S]],
!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!x = tensor<2x8x6xf32, #weft.axes<batch, pos, dim>>
!h = tensor<2x8x2x2xf32, #weft.axes<batch, pos, heads, channel>>
!v = tensor<2x8x2x3xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x2xf32, #weft.axes<batch, pos, heads>>
!w = tensor<6x2x2xf32, #weft.axes<dim, heads, channel>>
!wv = tensor<6x2x3xf32, #weft.axes<dim, heads, head>>
!o = tensor<2x3x6xf32, #weft.axes<heads, head, dim>>
!t = tensor<8x1x2xf32>
module attributes {
  weft.frozen = {s = {heads = array<i64: 0, 1>, trained = false, windows = array<i32: 8, 8>}}
} {
  weft.state parameter @wq <normal, 1.0 : f64> : !w
  weft.state parameter @wv <normal, 1.0 : f64> : !wv
  weft.state parameter @wo <normal, 1.0 : f64> : !o
  weft.state table @t <rope_table, 10000.0 : f64> : !t
  func.func @forward(%x: !x, %d: !ids, %scale: tensor<f32>) -> (!x {weft.name = "y"}) {
    %p = weft.position %d : (!ids) -> !ids
    %t = weft.get @t : !t
    %wq = weft.get @wq : !w
    %wv = weft.get @wv : !wv
    %wo = weft.get @wo : !o
    %q0 = weft.contract %x, %wq : (!x, !w) -> !h
    %q = weft.rope %q0, %p table %t {base = 1.0e4 : f64} : (!h, !ids, !t) -> !h
    %v = weft.contract %x, %wv : (!x, !wv) -> !v
    %windows = weft.integers [8, 8] : tensor<2xi32>
    %a, %lse = weft.attend %q, %q, %v windows %windows documents %d {scale = 0.5 : f64} : (!h, !h, !v, tensor<2xi32>, !ids) -> (!v, !l) loc("in s"("f":1:1))
    %s = weft.binary mul %a, %scale : (!v, tensor<f32>) -> !v
    %y = weft.contract %s, %wo : (!v, !o) -> !x
    return %y : !x
  }
}

// -----

// A controller keeps windows of all heads in the state; the attend reads those of
// its own. An output that is added to as a whole is put together. Mutation
// caught: windows of the first heads, whichever are left.
// CHECK: weft.state control @"control/windows/s" <{{.*}}> : tensor<2xi32>
// CHECK: %[[ALL:.*]] = weft.get @"control/windows/s" : tensor<2xi32>
// CHECK: %[[W:.*]] = weft.take %[[ALL]] [] as "" at [1] : (tensor<2xi32>) -> tensor<1xi32>
// CHECK: %[[A:.*]], %{{.*}} = weft.attend %{{.*}} windows %[[W]]
// CHECK: %[[PUT:.*]] = weft.put %[[A]] from "live" to ["heads"] at [1]
// CHECK: weft.binary add %[[PUT]], %arg0
!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!h = tensor<2x8x2x2xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x2xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.pruned = {s = array<i64: 0>}} {
  weft.state control @"control/windows/s" <constant, 8.0 : f64> : tensor<2xi32>
  func.func @forward(%x: !h, %d: !ids) -> (!h {weft.name = "y"}) {
    %windows = weft.get @"control/windows/s" : tensor<2xi32>
    %a, %lse = weft.attend %x, %x, %x windows %windows documents %d {scale = 0.5 : f64} : (!h, !h, !h, tensor<2xi32>, !ids) -> (!h, !l) loc("in s"("f":1:1))
    %y = weft.binary add %a, %x : (!h, !h) -> !h
    return %y : !h
  }
}

// -----

// Dense patterns: one square a head, of as many places as were calibrated. Mutations
// caught: tables of a compact pattern beside it, the square of another head.
// CHECK: weft.state control @"pattern/s/p" <constant, 0.000000e+00 : f64> : tensor<2x9x9xf32, #weft.axes<frozen, row, place>>
// CHECK-NOT: weft.state control
// CHECK: func.func @forward
// CHECK: %[[P:.*]] = weft.get @"pattern/s/p"
// CHECK: weft.mix_dense %{{.*}}, %[[P]] documents %{{.*}} : {{.*}} -> tensor<2x8x2x2xf32, #weft.axes<batch, pos, frozen, head>>
!ids = tensor<2x8xi32, #weft.axes<batch, pos>>
!h = tensor<2x8x3x2xf32, #weft.axes<batch, pos, heads, head>>
!l = tensor<2x8x3xf32, #weft.axes<batch, pos, heads>>
module attributes {weft.frozen = {s = {dense = true, heads = array<i64: 0, 2>, length = 9 : i64, trained = false, windows = array<i32: 3, 9>}}} {
  func.func @forward(%x: !h, %d: !ids) -> (!h {weft.name = "y"}) {
    %windows = weft.integers [8, 8, 8] : tensor<3xi32>
    %a, %lse = weft.attend %x, %x, %x windows %windows documents %d {scale = 0.5 : f64} : (!h, !h, !h, tensor<3xi32>, !ids) -> (!h, !l) loc("in s"("f":1:1))
    %y = weft.binary add %a, %x : (!h, !h) -> !h
    return %y : !h
  }
}
