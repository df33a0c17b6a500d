// RUN: weft-opt %s --form-programs="programs=prefill last-position=true" | FileCheck %s

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!act = tensor<2x4x6xf32, #weft.axes<batch, pos, dim>>
!q = tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x4x3xf32, #weft.axes<batch, pos, heads>>
!w = tensor<6x3x2xf32, #weft.axes<dim, heads, head>>
!table = tensor<7x6xf32, #weft.axes<vocab, dim>>
!logits = tensor<2x4x7xf32, #weft.axes<batch, pos, vocab>>

module {
  weft.state parameter @embed <normal, 1.0 : f64> : !table
  weft.state parameter @wq <normal, 1.0 : f64> : !w
  weft.state table @"table/rope" <rope_table, 1.0e4 : f64> : tensor<4x1x2xf32>

// Keys and values need every position; the last query, what is added to its row and the
// logits need one. An op that is needed whole stays whole: the sum of `first` feeds keys.
// CHECK: func.func @prefill({{.*}}) -> (tensor<2x1x7xf32, #weft.axes<batch, pos, vocab>> {weft.name = "logits"})
// CHECK: %[[E:.*]] = weft.gather {{.*}} -> tensor<2x4x6xf32
// CHECK: %[[K:.*]] = weft.contract %[[E]], {{.*}} -> tensor<2x4x3x2xf32
// CHECK: %[[X:.*]] = weft.take %[[E]] ["pos"] as "pos" at [3]
// CHECK: weft.contract %[[X]], {{.*}} -> tensor<2x1x3x2xf32
// CHECK: weft.rope {{.*}} -> tensor<2x1x3x2xf32
// CHECK: %[[LAST:.*]] = weft.integers [3]
// CHECK: weft.attend {{.*}} offset %[[LAST]]{{.*}} -> (tensor<2x1x3x2xf32
// CHECK: weft.contract {{.*}} -> tensor<2x1x6xf32
// CHECK: weft.binary add {{.*}} -> tensor<2x1x6xf32
// CHECK: weft.rms_norm {{.*}} -> tensor<2x1x6xf32
// CHECK: %[[L:.*]] = weft.contract {{.*}} -> tensor<2x1x7xf32
// CHECK: return %[[L]]
  func.func @forward(%tokens : !ids {weft.name = "tokens"}, %doc : !ids {weft.name = "doc_start"}) -> (!logits {weft.name = "logits"}) {
    %embed = weft.get @embed : !table
    %wq = weft.get @wq : !w
    %p = weft.position %doc : (!ids) -> !ids
    %rope = weft.get @"table/rope" : tensor<4x1x2xf32>
    %e = weft.gather %embed, %tokens : (!table, !ids) -> !act
    %k = weft.contract %e, %wq : (!act, !w) -> !q
    %q0 = weft.contract %e, %wq : (!act, !w) -> !q
    %q = weft.rope %q0, %p table %rope {base = 1.0e4 : f64} : (!q, !ids, tensor<4x1x2xf32>) -> !q
    %windows = weft.integers [2, 2, 2147483647] : tensor<3xi32>
    %a, %lse = weft.attend %q, %k, %k windows %windows documents %doc {scale = 0.7 : f64}
      : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse)
    %y = weft.contract %a, %wq : (!q, !w) -> !act
    %x = weft.binary add %e, %y : (!act, !act) -> !act
    %n = weft.rms_norm %x {eps = 1.0e-6 : f64} : (!act) -> !act
    %logits = weft.contract %n, %embed : (!act, !table) -> !logits
    return %logits : !logits
  }
}
