// RUN: weft-opt %s | weft-opt | FileCheck %s
// RUN: weft-opt %s --mlir-print-op-generic | weft-opt | FileCheck %s

// What is printed is read again and means the same: every op, with and without
// each of its optional parts. A mutation of a format or of a hand-written parser
// (layer, fused, kernel, model) loses a part and with it a CHECK.

!x = tensor<2x4x6xf32, #weft.axes<batch, pos, dim>>
!row = tensor<2x4xf32, #weft.axes<batch, pos>>
!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!h = tensor<2x4x5xf32, #weft.axes<batch, pos, hidden>>
!w = tensor<6x5xf32, #weft.axes<dim, hidden>>
!gain = tensor<6xf32, #weft.axes<dim>>
!parts = tensor<2x6xf32, #weft.axes<chunk, dim>>
!table = tensor<7x6xf32, #weft.axes<vocab, dim>>
!logits = tensor<2x4x7xf32, #weft.axes<batch, pos, vocab>>
!q = tensor<2x4x3x2xf32, #weft.axes<batch, pos, heads, head>>
!lse = tensor<2x4x3xf32, #weft.axes<batch, pos, heads>>
!cache = tensor<2x9x3x2xf32, #weft.axes<batch, cache, heads, head>>
!v = tensor<8xf32>
!s = tensor<f32>
!i = tensor<i32>

// CHECK: weft.state parameter @w <normal, 2.000000e-02 : f64> offset 64 {tag} : tensor<8xf32>
weft.state parameter @w <normal, 0.02 : f64> offset 64 {tag} : !v
// CHECK: weft.state gradient @"grad/w" <constant, 0.000000e+00 : f64> : tensor<8xf32>
weft.state gradient @"grad/w" <constant, 0.0 : f64> : !v
// CHECK: weft.state moment @"adamw.m/w" <uniform, -1.000000e+00 : f64, 1.000000e+00 : f64>
weft.state moment @"adamw.m/w" <uniform, -1.0 : f64, 1.0 : f64> : !v
// CHECK: weft.state table @"table/rope" <rope_table, 1.000000e+04 : f64>
weft.state table @"table/rope" <rope_table, 10000.0 : f64> : tensor<9x1x2xf32>
// CHECK: weft.state cache @"cache/0.k" <truncated, 1.000000e+00 : f64>
weft.state cache @"cache/0.k" <truncated, 1.0 : f64> : !v
// CHECK: weft.state parameter @o <orthogonal, 1.000000e+00 : f64>
weft.state parameter @o <orthogonal, 1.0 : f64> : !v

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x : !x, %gain : !gain, %noise : !i) {
  // CHECK: weft.constant {value = 5.000000e-01 : f64} : tensor<f32>
  %half = weft.constant {value = 0.5 : f64} : !s
  // CHECK: weft.integers [1, -2, 3] : tensor<3xi32>
  %w = weft.integers [1, -2, 3] : tensor<3xi32>
  // CHECK: %[[Y:.*]] = weft.unary gelu_tanh %{{.*}} {tag} :
  %y = weft.unary gelu_tanh %x {tag} : (!x) -> !x
  // CHECK: weft.unary_grad gelu_tanh %{{.*}}, %[[Y]] :
  %dy = weft.unary_grad gelu_tanh %x, %y : (!x, !x) -> !x
  // CHECK: weft.binary pow %[[Y]], %{{.*}} :
  %z = weft.binary pow %y, %gain : (!x, !gain) -> !x
  // CHECK: %[[SUM:.*]] = weft.sum_to %{{.*}} : {{.*}} -> tensor<6xf32, #weft.axes<dim>>
  %sum = weft.sum_to %x : (!x) -> !gain
  // CHECK: weft.sum_to %{{.*}} init %[[SUM]] :
  %sum2 = weft.sum_to %x init %sum : (!x, !gain) -> !gain
  // CHECK: weft.partial_sum %{{.*}} over ["batch", "pos"] :
  %parts = weft.partial_sum %x over ["batch", "pos"] : (!x) -> !parts
  // CHECK: weft.dropout %{{.*}} "block.0" {rate = 1.000000e-01 : f64}
  %d = weft.dropout %x "block.0" {rate = 0.1 : f64} : (!x) -> !x
  // CHECK: weft.dropout %{{.*}} noise %{{.*}} "block.1" {rate = 1.000000e-01 : f64}
  %d2 = weft.dropout %x noise %noise "block.1" {rate = 0.1 : f64} : (!x, !i) -> !x
  return
}

// CHECK-LABEL: func.func @rows
func.func @rows(%x : !x, %dy : !x, %p : !ids, %t : tensor<9x3x2xf32>) {
  // CHECK: weft.layer_norm %{{.*}} {eps = 1.000000e-05 : f64}
  %a = weft.layer_norm %x {eps = 1.0e-5 : f64} : (!x) -> !x
  // CHECK: weft.layer_norm_grad %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64}
  %b = weft.layer_norm_grad %x, %dy {eps = 1.0e-5 : f64} : (!x, !x) -> !x
  // CHECK: weft.rms_norm %{{.*}} {eps = 1.000000e-05 : f64}
  %c = weft.rms_norm %x {eps = 1.0e-5 : f64} : (!x) -> !x
  // CHECK: weft.rms_norm_grad %{{.*}}, %{{.*}} {eps = 1.000000e-05 : f64}
  %d = weft.rms_norm_grad %x, %dy {eps = 1.0e-5 : f64} : (!x, !x) -> !x
  // CHECK: weft.softmax %
  %e = weft.softmax %x : (!x) -> !x
  // CHECK: weft.softmax_grad %{{.*}}, %
  %f = weft.softmax_grad %e, %dy : (!x, !x) -> !x
  // CHECK: weft.rope %{{.*}}, %{{.*}} {base = 1.000000e+04 : f64}
  %g = weft.rope %x, %p {base = 10000.0 : f64} : (!x, !ids) -> !x
  // CHECK: weft.rope %{{.*}}, %{{.*}} table %{{.*}} inverse {base = 1.000000e+04 : f64}
  %h = weft.rope %x, %p table %t inverse {base = 10000.0 : f64} : (!x, !ids, tensor<9x3x2xf32>) -> !x
  return
}

// CHECK-LABEL: func.func @products
func.func @products(%x : !x, %w : !w, %table : !table, %ids : !ids, %o : !i) {
  // CHECK: %[[H:.*]] = weft.contract %{{.*}}, %{{.*}} : {{.*}} -> tensor<2x4x5xf32, #weft.axes<batch, pos, hidden>>
  %h = weft.contract %x, %w : (!x, !w) -> !h
  // CHECK: weft.contract %{{.*}}, %{{.*}} init %[[H]] :
  %h2 = weft.contract %x, %w init %h : (!x, !w, !h) -> !h
  // CHECK: %[[E:.*]] = weft.gather %
  %e = weft.gather %table, %ids : (!table, !ids) -> !x
  // CHECK: weft.gather_grad %{{.*}}, %[[E]] :
  %g = weft.gather_grad %ids, %e : (!ids, !x) -> !table
  // CHECK: weft.gather_grad %{{.*}}, %[[E]] init %
  %g2 = weft.gather_grad %ids, %e init %table : (!ids, !x, !table) -> !table
  // CHECK: weft.position %{{[^ ]*}} :
  %p = weft.position %ids : (!ids) -> !ids
  // CHECK: weft.position %{{.*}} offset %
  %p2 = weft.position %ids offset %o : (!ids, !i) -> !ids
  // CHECK: weft.document %
  %doc = weft.document %ids : (!ids) -> !ids
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q : !q, %ids : !ids, %o : !i, %cache : !cache) {
  %w = weft.integers [1, 2, 3] : tensor<3xi32>
  // CHECK: weft.attend %{{.*}}, %{{.*}}, %{{.*}} window <"full"> {scale = #weft.formula<"head ** -0.5">} :
  %a, %la = weft.attend %q, %q, %q window <"full"> {scale = #weft.formula<"head ** -0.5">} : (!q, !q, !q) -> (!q, !lse)
  // CHECK: weft.attend %{{.*}} windows %{{.*}} documents %{{.*}} {scale = 5.000000e-01 : f64} :
  %b, %lb = weft.attend %q, %q, %q windows %w documents %ids {scale = 0.5 : f64} : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse)
  // CHECK: weft.attend %{{.*}} windows %[[W:.*]] kv_of %[[W]] order [2, 0, 1] {scale
  %bt, %lbt = weft.attend %q, %q, %q windows %w kv_of %w order [2, 0, 1] {scale = 0.5 : f64} : (!q, !q, !q, tensor<3xi32>, tensor<3xi32>) -> (!q, !lse)
  // CHECK: weft.attend %{{.*}} windows %{{.*}} documents %{{.*}} {entropies, scale = 5.000000e-01 : f64} : {{.*}} -> ({{.*}}, {{.*}}, {{.*}})
  %be, %lbe, %eb = weft.attend %q, %q, %q windows %w documents %ids {entropies, scale = 0.5 : f64} : (!q, !q, !q, tensor<3xi32>, !ids) -> (!q, !lse, !lse)
  // CHECK: weft.head_statistics %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} windows %{{.*}} documents %[[D:.*]] targets %[[D]] :
  %st = weft.head_statistics %q, %q, %q, %b, %eb windows %w documents %ids targets %ids : (!q, !q, !q, !q, !lse, tensor<3xi32>, !ids, !ids) -> tensor<3x12xf32>
  %slots = weft.integers [0, 3] : tensor<2xi32>
  %reach = weft.integers [2, 2, 1, 1] : tensor<4xi32>
  %table = weft.constant {value = 0.0 : f64} : tensor<3x4xf32>
  // CHECK: weft.pattern_statistics %{{.*}}, %{{.*}}, %{{.*}} windows %{{.*}} documents %{{.*}} reach %{{.*}} pattern %{{.*}}, %{{.*}}, %{{.*}} kv_of %{{.*}} {scale = 5.000000e-01 : f64} :
  %ps:3 = weft.pattern_statistics %q, %q, %lb windows %w documents %slots reach %reach pattern %table, %table, %table kv_of %w {scale = 0.5 : f64}
    : (!q, !q, !lse, tensor<3xi32>, tensor<2xi32>, tensor<4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3xi32>)
    -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x8xf32>)
  // CHECK: %[[K:.*]] = weft.cache_update %{{.*}}, %{{.*}}, %
  %k = weft.cache_update %cache, %q, %o : (!cache, !q, !i) -> !cache
  // CHECK: weft.attend %{{.*}}, %[[K]], %[[K]] windows %{{.*}} offset %{{.*}} {scale
  %c, %lc = weft.attend %q, %k, %k windows %w offset %o {scale = 0.5 : f64} : (!q, !cache, !cache, tensor<3xi32>, !i) -> (!q, !lse)
  // CHECK: %{{.*}}, %[[DELTA:.*]] = weft.attend_grad_query %{{.*}}, %{{.*}}, %{{.*}} windows %{{.*}} documents %{{.*}}, %{{.*}}, %{{.*}}, %
  %dq, %delta = weft.attend_grad_query %q, %q, %q windows %w documents %ids, %b, %lb, %q {scale = 0.5 : f64}
    : (!q, !q, !q, tensor<3xi32>, !ids, !q, !lse, !q) -> (!q, !lse)
  // CHECK: weft.attend_grad_key_value %{{.*}}, %{{.*}}, %{{.*}} windows %{{.*}} documents %{{.*}}, %{{.*}}, %[[DELTA]], %
  %dk, %dv = weft.attend_grad_key_value %q, %q, %q windows %w documents %ids, %lb, %delta, %q {scale = 0.5 : f64}
    : (!q, !q, !q, tensor<3xi32>, !ids, !lse, !lse, !q) -> (!q, !q)
  return
}

// CHECK-LABEL: func.func @loss
func.func @loss(%l : !logits, %t : !ids, %w : !row, %x : !x, %e : !table) {
  // CHECK: weft.cross_entropy %{{.*}}, %{{.*}} {smoothing = 1.000000e-01 : f64, z = 0.000000e+00 : f64}
  %a = weft.cross_entropy %l, %t {z = 0.0 : f64, smoothing = 0.1 : f64} : (!logits, !ids) -> !s
  // CHECK: weft.cross_entropy %{{.*}}, %{{.*}} weight %
  %b = weft.cross_entropy %l, %t weight %w {z = 0.0 : f64, smoothing = 0.1 : f64} : (!logits, !ids, !row) -> !s
  // CHECK: weft.cross_entropy_grad %{{.*}}, %{{.*}} weight %
  %c, %r = weft.cross_entropy_grad %l, %t weight %w {z = 0.0 : f64, smoothing = 0.1 : f64} : (!logits, !ids, !row) -> (!logits, !row)
  // CHECK: weft.loss_head %{{.*}}, %{{.*}}, %{{.*}} weight %
  %d = weft.loss_head %x, %e, %t weight %w {z = 0.0 : f64, smoothing = 0.1 : f64} : (!x, !table, !ids, !row) -> !s
  // CHECK: weft.loss_head_grad %{{.*}}, %{{.*}}, %{{.*}} weight %{{.*}} init %
  %f, %dx, %dt = weft.loss_head_grad %x, %e, %t weight %w init %e {z = 0.0 : f64, smoothing = 0.1 : f64}
    : (!x, !table, !ids, !row, !table) -> (!s, !x, !table)
  // CHECK: weft.loss_head_grad %{{.*}}, %{{.*}}, %{{[^ ]*}} init %
  %g, %dx2, %dt2 = weft.loss_head_grad %x, %e, %t init %e {z = 0.0 : f64, smoothing = 0.1 : f64}
    : (!x, !table, !ids, !table) -> (!s, !x, !table)
  return
}

// CHECK-LABEL: func.func @optimiser
func.func @optimiser(%f : !s, %hyper : tensor<3xf32>) {
  // CHECK: %[[P:.*]] = weft.get @w : tensor<8xf32>
  %p = weft.get @w : !v
  // CHECK: %[[G:.*]] = weft.get_flat [@"grad/w", @w] : tensor<16xf32>
  %g = weft.get_flat [@"grad/w", @w] : tensor<16xf32>
  // CHECK: %[[N:.*]] = weft.norm %[[G]], %
  %n = weft.norm %g, %f : (tensor<16xf32>, !s) -> !s
  // CHECK: %[[C:.*]] = weft.clip_scale %[[N]], %{{.*}} 1.000000e+00 :
  %c = weft.clip_scale %n, %f 1.0 : (!s, !s) -> !s
  // CHECK: %[[NEW:.*]], %{{.*}}, %{{.*}} = weft.adamw %[[P]], %[[P]], %[[P]], %[[P]] hyper %{{.*}} scale %[[C]] betas 9.000000e-01, 0.94999999999999996 eps 1.000000e-08 decay 1.000000e-01 :
  %a, %m, %v = weft.adamw %p, %p, %p, %p hyper %hyper scale %c betas 0.9, 0.95 eps 1.0e-8 decay 0.1
    : (!v, !v, !v, !v, tensor<3xf32>, !s) -> (!v, !v, !v)
  // CHECK: weft.set @w, %[[NEW]] : tensor<8xf32>
  weft.set @w, %a : !v
  // CHECK: weft.set_flat [@w, @"grad/w"], %[[G]] : tensor<16xf32>
  weft.set_flat [@w, @"grad/w"], %g : tensor<16xf32>
  return
}

// CHECK: weft.model @m {dim = "8", "two words" = "dim / 2", act = "gelu"} {
weft.model @m {dim = "8", "two words" = "dim / 2", act = "gelu"} {
  // CHECK: %[[X:.*]] = weft.input "x" : tensor<?xf32, #weft.axes<dim>>
  %x = weft.input "x" : tensor<?xf32, #weft.axes<dim>>
  // CHECK: %[[L:.*]] = weft.layer "block" [i < <"depth - 1">] (%[[IN:.*]] = %[[X]]) : tensor<?xf32, #weft.axes<dim>> {
  %l = weft.layer "block" [i < <"depth - 1">] (%in = %x) : tensor<?xf32, #weft.axes<dim>> {
    // CHECK: weft.let "half" = <"dim / 2">
    weft.let "half" = <"dim / 2">
    // CHECK: weft.param "w" <normal, #weft.formula<"0.02 / sqrt(dim)">> :
    %w = weft.param "w" <normal, #weft.formula<"0.02 / sqrt(dim)">> : tensor<?xf32, #weft.axes<dim>>
    // CHECK: %[[B:.*]] = weft.branch "ffn" {
    %b = weft.branch "ffn" {
      // CHECK: weft.yield %[[IN]] :
      weft.yield %in : tensor<?xf32, #weft.axes<dim>>
    } : tensor<?xf32, #weft.axes<dim>>
    // CHECK: %[[I:.*]] = weft.if <"i is 0"> {
    %i = weft.if <"i is 0"> {
      weft.yield %w : tensor<?xf32, #weft.axes<dim>>
    // CHECK: } else {
    } else {
      weft.yield %b : tensor<?xf32, #weft.axes<dim>>
    } : tensor<?xf32, #weft.axes<dim>>
    // CHECK: weft.yield %[[I]]
    weft.yield %i : tensor<?xf32, #weft.axes<dim>>
  }
  // CHECK: weft.layer "empty" [<"2">] () : () {
  weft.layer "empty" [<"2">] () : () {
  }
  // CHECK: weft.output "y" %[[L]] :
  weft.output "y" %l : tensor<?xf32, #weft.axes<dim>>
  // CHECK: %[[S:.*]] = weft.sum_to %[[L]]
  %s = weft.sum_to %l : (tensor<?xf32, #weft.axes<dim>>) -> tensor<f32>
  // CHECK: weft.loss %[[S]] : tensor<f32>
  weft.loss %s : tensor<f32>
}

// CHECK: weft.kernel @k rows ["batch", "pos"] chunks 2 (%[[A:.*]]: tensor<2x4x6xf32, #weft.axes<batch, pos, dim>>) -> (tensor<2x4x6xf32, #weft.axes<batch, pos, dim>>) attributes {weft.hash = "01"} {
weft.kernel @k rows ["batch", "pos"] chunks 2 (%x : !x) -> (!x) attributes {weft.hash = "01"} {
  // CHECK: %[[Y:.*]] = weft.unary relu %[[A]]
  %y = weft.unary relu %x : (!x) -> !x
  // CHECK: weft.yield %[[Y]]
  weft.yield %y : !x
}

// CHECK-LABEL: func.func @launches
func.func @launches(%x : !x) -> !x {
  // CHECK: %[[F:.*]]:2 = weft.fused rows ["batch", "pos"] chunks 2 (%[[IN:.*]] = %{{.*}}) : ({{.*}}) -> ({{.*}}) {
  %f:2 = weft.fused rows ["batch", "pos"] chunks 2 (%in = %x) : (!x) -> (!x, !x) {
    // CHECK: weft.yield %[[IN]], %[[IN]]
    weft.yield %in, %in : !x, !x
  // CHECK: } {tag}
  } {tag}
  // CHECK: weft.launch @k(%[[F]]#1) {tag} :
  %l = weft.launch @k(%f#1) {tag} : (!x) -> !x
  return %l : !x
}

!fv = tensor<2x3x2x4xf32, #weft.axes<batch, pos, kv, head>>
!fo = tensor<2x3x2x4xf32, #weft.axes<batch, pos, frozen, head>>
!fl = tensor<2x3x2xf32, #weft.axes<batch, pos, frozen>>
!fp = tensor<2x3xf32, #weft.axes<frozen, place>>
!ft = tensor<2x4544xf32, #weft.axes<frozen, cell>>
!fd = tensor<2x3xi32, #weft.axes<batch, pos>>
!fs = tensor<2x3x3xf32, #weft.axes<frozen, row, place>>

// CHECK: weft.state parameter @sliced <constant, 0.000000e+00 : f64> slices <of[4, 3, 2] axes 0 + 2 kept[1, 7]> : tensor<2x2xf32, #weft.axes<live, head>>
weft.state parameter @sliced <constant, 0.0 : f64> slices <of [4, 3, 2] axes 0 + 2 kept [1, 7]> : tensor<2x2xf32, #weft.axes<live, head>>

// CHECK-LABEL: @patterns
func.func @patterns(%v : !fv, %p : !fp, %s : !fs, %w : tensor<2xi32>, %d : !fd) {
  // CHECK: %[[D:.*]] = weft.mix_dense %{{.*}}, %{{.*}} documents %{{.*}} kv_of %{{.*}} :
  %m = weft.mix_dense %v, %s documents %d kv_of %w : (!fv, !fs, !fd, tensor<2xi32>) -> !fo
  // CHECK: weft.mix_dense_grad_value %{{.*}} documents %{{.*}}, %[[D]] :
  %dm = weft.mix_dense_grad_value %s documents %d, %m : (!fs, !fd, !fo) -> !fv
  // CHECK: %[[O:.*]], %[[L:.*]] = weft.mix %{{.*}}, %{{.*}}, %{{.*}} windows %{{.*}} documents %{{.*}} kv_of %{{.*}} :
  %o, %l = weft.mix %v, %p, %p windows %w documents %d kv_of %w : (!fv, !fp, !fp, tensor<2xi32>, !fd, tensor<2xi32>) -> (!fo, !fl)
  // CHECK: weft.mix_grad_value %{{.*}}, %{{.*}} windows %{{.*}} documents %{{.*}}, %[[L]], %[[O]] :
  %dv = weft.mix_grad_value %p, %p windows %w documents %d, %l, %o : (!fp, !fp, tensor<2xi32>, !fd, !fl, !fo) -> !fv
  // CHECK: weft.mix_grad_pattern %{{.*}}, %{{.*}}, %{{.*}} windows %{{.*}} documents %{{.*}}, %[[O]], %[[L]], %[[O]] kv_of
  %da, %dr = weft.mix_grad_pattern %v, %p, %p windows %w documents %d, %o, %l, %o kv_of %w : (!fv, !fp, !fp, tensor<2xi32>, !fd, !fo, !fl, !fo, tensor<2xi32>) -> (!fp, !fp)
  // CHECK: %[[XA:.*]], %[[XB:.*]], %[[XW:.*]], %[[XZ:.*]], %[[XL:.*]] = weft.mix_table %{{.*}}, %{{.*}} windows %{{.*}} :
  %x:5 = weft.mix_table %p, %p windows %w : (!fp, !fp, tensor<2xi32>) -> (!ft, !ft, !fp, !fp, !fp)
  // CHECK: %[[S:.*]] = weft.mix_scale %{{.*}}, %[[XW]] documents %{{.*}} kv_of %{{.*}} :
  %sv = weft.mix_scale %v, %x#2 documents %d kv_of %w : (!fv, !fp, !fd, tensor<2xi32>) -> !fo
  // CHECK: weft.mix_product %[[S]], %[[XA]], %[[XZ]] windows %{{.*}} documents %{{.*}} lse %[[XL]] :
  %y, %ly = weft.mix_product %sv, %x#0, %x#3 windows %w documents %d lse %x#4 : (!fo, !ft, !fp, tensor<2xi32>, !fd, !fp) -> (!fo, !fl)
  // CHECK: weft.mix_product back %[[S]], %[[XB]], %[[XW]] windows %{{.*}} documents %{{.*}} kv_of %{{.*}} :
  %dy = weft.mix_product back %sv, %x#1, %x#2 windows %w documents %d kv_of %w : (!fo, !ft, !fp, tensor<2xi32>, !fd, tensor<2xi32>) -> !fv
  // CHECK: %[[T:.*]] = weft.take %{{.*}} ["kv", "head"] as "live" at [7, 0, 7] : {{.*}} -> tensor<2x3x3xf32, #weft.axes<batch, pos, live>>
  %t = weft.take %v ["kv", "head"] as "live" at [7, 0, 7] : (!fv) -> tensor<2x3x3xf32, #weft.axes<batch, pos, live>>
  // CHECK: weft.put %[[T]] from "live" to ["kv", "head"] at [7, 0, 7] :
  %u = weft.put %t from "live" to ["kv", "head"] at [7, 0, 7] : (tensor<2x3x3xf32, #weft.axes<batch, pos, live>>) -> !fv
  // CHECK: weft.take %{{.*}} [] as "" at [1] : (tensor<2xi32>) -> tensor<1xi32>
  %i = weft.take %w [] as "" at [1] : (tensor<2xi32>) -> tensor<1xi32>
  return
}

// CHECK: weft.program @p inputs ["x"] [{{.*}}] results ["y"] [{{.*}}] arena 256 {
weft.program @p inputs ["x"] [!x] results ["y"] [!x] arena 256 {
  // CHECK: %[[X:.*]] = weft.buffer input at 0 :
  %x = weft.buffer input at 0 : !x
  // CHECK: %[[Y:.*]] = weft.buffer result at 0 :
  %y = weft.buffer result at 0 : !x
  // CHECK: %[[A:.*]] = weft.buffer arena :
  %a = weft.buffer arena : !x
  // CHECK: %[[S:.*]] = weft.buffer state at 64 :
  %s = weft.buffer state at 64 : !x
  // CHECK: weft.fill %[[A]] :
  weft.fill %a : !x
  // CHECK: weft.call @k ins(%[[X]] : {{.*}}) outs(%[[A]] : {{.*}}) grid 2
  weft.call @k ins(%x : !x) outs(%a : !x) grid 2
  // CHECK: weft.call @k ins(%[[S]] : {{.*}}) outs(%[[S]] :
  weft.call @k ins(%s : !x) outs(%s : !x) grid 1
  // CHECK: weft.copy %[[A]] to %[[Y]] :
  weft.copy %a to %y : !x, !x
  // CHECK: weft.view %[[A]] from 6 : {{.*}} -> tensor<6xf32, #weft.axes<dim>>
  %v = weft.view %a from 6 : (!x) -> !gain
}
