// RUN: weft-opt %s --form-programs="programs=micro,update,eval,prefill,decode cache-length=8" --verify-diagnostics | FileCheck %s

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!act = tensor<2x4x6xf32, #weft.axes<batch, pos, dim>>
!q = tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x4x3xf32, #weft.axes<batch, pos, heads>>
!w = tensor<6x3x2xf32, #weft.axes<dim, heads, head>>
!table = tensor<7x6xf32, #weft.axes<vocab, dim>>
!logits = tensor<2x4x7xf32, #weft.axes<batch, pos, vocab>>

module attributes {weft.clip = 0.5 : f64, weft.groups = [
    {beta1 = 0.75 : f64, beta2 = 0.875 : f64, eps = 1.0e-8 : f64, decay = 0.1 : f64, params = ["block.0.wq", "embed"]},
    {beta1 = 0.8 : f64, beta2 = 0.98 : f64, eps = 1.0e-9 : f64, decay = 0.0 : f64, params = ["scale"]}]} {
  weft.state parameter @embed <normal, 1.0 : f64> : !table
  weft.state parameter @block.0.wq <normal, 1.0 : f64> : !w
  weft.state parameter @scale <constant, 1.0 : f64> : tensor<f32>
  // expected-remark@+1 {{parameter 'idle' is not trained: the loss does not depend on it}}
  weft.state parameter @idle <constant, 1.0 : f64> : tensor<f32>
  weft.state table @"table/rope" <rope_table, 1.0e4 : f64> : tensor<4x1x2xf32>

// Entries stand in the order of parameters, role by role; tables grow to the caches.
// CHECK: weft.state table @"table/rope" {{.*}} : tensor<8x1x2xf32>
// CHECK-NEXT: weft.state gradient @"grad/embed" <constant, 0.000000e+00 : f64> : tensor<7x6xf32, #weft.axes<vocab, dim>>
// CHECK-NEXT: weft.state gradient @"grad/block.0.wq"
// CHECK-NEXT: weft.state gradient @"grad/scale"
// CHECK-NOT: idle
// CHECK: weft.state moment @"adamw.m/embed"
// CHECK: weft.state moment @"adamw.m/scale"
// CHECK: weft.state moment @"adamw.v/embed"
// CHECK: weft.state cache @"cache/block.0.k" {{.*}} : tensor<1x8x3x2xf32, #weft.axes<batch, cache, heads, head>>
// CHECK: weft.state cache @"cache/block.0.v"
// CHECK-NOT: func.func @forward

// The model has dropout: training has noise.
// CHECK: func.func @micro(%{{.*}} {weft.name = "tokens"}, %{{.*}} {weft.name = "targets"}, %{{.*}} {weft.name = "doc_start"}, %[[NOISE:.*]]: tensor<i32> {weft.name = "noise"}) -> (tensor<f32> {weft.name = "loss_sum"})
// CHECK: weft.dropout %{{.*}} noise %[[NOISE]] "drop"
// CHECK: weft.cross_entropy

// CHECK: func.func @update(%[[COUNT:.*]]: tensor<f32> {weft.name = "inverse_count"}, %[[H0:.*]]: tensor<3xf32> {weft.name = "hyper.0"}, %[[H1:.*]]: tensor<3xf32> {weft.name = "hyper.1"}) -> (tensor<f32> {weft.name = "grad_norm"})
// CHECK: %[[G:.*]] = weft.get_flat [@"grad/embed", @"grad/block.0.wq", @"grad/scale"] : tensor<79xf32>
// CHECK: %[[NORM:.*]] = weft.norm %[[G]], %[[COUNT]]
// CHECK: %[[S:.*]] = weft.clip_scale %[[NORM]], %[[COUNT]] 5.000000e-01
// CHECK: %[[P0:.*]] = weft.get_flat [@embed, @block.0.wq] : tensor<78xf32>
// CHECK: weft.adamw %[[P0]], %{{.*}}, %{{.*}}, %{{.*}} hyper %[[H0]] scale %[[S]] betas 7.500000e-01, 8.750000e-01 eps 1.000000e-08 decay 1.000000e-01
// CHECK: weft.set_flat [@embed, @block.0.wq]
// CHECK: weft.adamw %{{.*}} hyper %[[H1]] {{.*}} eps 1.000000e-09
// CHECK: %[[Z:.*]] = weft.constant {value = 0.000000e+00 : f64} : tensor<79xf32>
// CHECK: weft.set_flat [@"grad/embed", @"grad/block.0.wq", @"grad/scale"], %[[Z]]
// CHECK: return %[[NORM]]

// CHECK: func.func @eval({{.*}}"doc_start"}) -> (tensor<f32> {weft.name = "loss_sum"})
// CHECK-NOT: weft.dropout
// CHECK: func.func @prefill(%{{.*}} {weft.name = "tokens"}, %{{.*}} {weft.name = "doc_start"}) -> (tensor<2x4x7xf32, {{.*}} {weft.name = "logits"})
// CHECK-NOT: weft.dropout
// CHECK-NOT: weft.cross_entropy

// CHECK: func.func @decode(%{{.*}}: tensor<1x1xi32, #weft.axes<batch, pos>> {weft.name = "tokens"}, %[[D:.*]]: tensor<1x1xi32, {{.*}} {weft.name = "doc_start"}, %[[O:.*]]: tensor<i32> {weft.name = "offset"}) -> (tensor<1x1x7xf32, #weft.axes<batch, pos, vocab>> {weft.name = "logits"})
// CHECK: weft.position %[[D]] offset %[[O]]
// CHECK: weft.get @"table/rope" : tensor<8x1x2xf32>
// CHECK: %[[K0:.*]] = weft.get @"cache/block.0.k"
// CHECK: %[[K:.*]] = weft.cache_update %[[K0]], %{{.*}}, %[[O]]
// CHECK: %[[V:.*]] = weft.cache_update %{{.*}}, %{{.*}}, %[[O]]
// CHECK: weft.attend %{{.*}}, %[[K]], %[[V]] windows %{{.*}} documents %[[D]] offset %[[O]]
// CHECK: weft.set @"cache/block.0.k", %[[K]]
// CHECK: weft.set @"cache/block.0.v", %[[V]]
  func.func @forward(%tokens : !ids {weft.name = "tokens"}, %targets : !ids {weft.name = "targets"},
                     %doc : !ids {weft.name = "doc_start"})
      -> (tensor<f32> {weft.name = "loss"}, !logits {weft.name = "logits"}) {
    %embed = weft.get @embed : !table
    %scale = weft.get @scale : tensor<f32>
    %idle = weft.get @idle : tensor<f32>
    %wq = weft.get @block.0.wq : !w
    %p = weft.position %doc : (!ids) -> !ids
    %rope = weft.get @"table/rope" : tensor<4x1x2xf32>
    %e = weft.gather %embed, %tokens : (!table, !ids) -> !act
    %x = weft.binary mul %e, %scale : (!act, tensor<f32>) -> !act
    %q = weft.contract %x, %wq : (!act, !w) -> !q
    %k = weft.rope %q, %p table %rope {base = 1.0e4 : f64} : (!q, !ids, tensor<4x1x2xf32>) -> !q
    %windows = weft.integers [2, 2, 2147483647] : tensor<3xi32>
    %a, %lse = weft.attend %k, %k, %q windows %windows documents %doc {scale = 0.7 : f64}
      : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse)
    %y = weft.contract %a, %wq : (!q, !w) -> !act
    %d = weft.dropout %y "drop" {rate = 0.1 : f64} : (!act) -> !act
    %logits = weft.contract %d, %embed : (!act, !table) -> !logits
    %loss = weft.cross_entropy %logits, %targets {z = 0.0 : f64, smoothing = 0.0 : f64} : (!logits, !ids) -> tensor<f32>
    return %loss, %logits : tensor<f32>, !logits
  }
}
