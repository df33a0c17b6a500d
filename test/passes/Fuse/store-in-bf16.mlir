// RUN: weft-opt %s --split-input-file --weft-store-in-bf16 | FileCheck %s

!act = tensor<2x8x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x8x6xf32, #weft.axes<batch, pos, hidden>>
!w = tensor<4x6xf32, #weft.axes<dim, hidden>>

weft.state parameter @w <normal, 1.0 : f64> : !w
weft.state gradient @"grad/w" <constant, 0.0 : f64> : !w

weft.kernel @norm_0 rows ["batch", "pos"] chunks 2 (%x: !act) -> (!act) attributes {weft.hash = "0"} {
  %0 = weft.rms_norm %x {eps = 0.5 : f64} : (!act) -> !act
  weft.yield %0 : !act
}
weft.kernel @up_1 rows [] chunks 1 (%x: !act, %w: !w) -> (!hid) attributes {weft.hash = "1"} {
  %0 = weft.contract %x, %w : (!act, !w) -> !hid
  weft.yield %0 : !hid
}
weft.kernel @dw_2 rows [] chunks 1 (%x: !act, %dy: !hid, %old: !w) -> (!w) attributes {weft.hash = "2"} {
  %0 = weft.contract %x, %dy init %old : (!act, !hid, !w) -> !w
  weft.yield %0 : !w
}

// What goes from kernel to kernel is bf16; what is returned is not; the weight is
// rounded once for both its readers; a product into a gradient adds in 32 bits.
// Mutations caught: results of the program rounded, gradients rounded, a rounding
// for each reader, converts inside the body.
// CHECK-DAG: weft.kernel @[[ROUND:convert_[0-9a-f]+]] rows [] chunks {{[0-9]+}} (%{{.*}}: tensor<4x6xf32, {{.*}}) -> (tensor<4x6xbf16
// CHECK-DAG: weft.kernel @[[NORM:norm_[0-9a-f]+]] {{.*}} (%{{.*}}: tensor<2x8x4xf32, {{.*}}) -> (tensor<2x8x4xbf16
// CHECK-DAG: weft.kernel @[[UP:up_[0-9a-f]+]] {{.*}} (%{{.*}}: tensor<2x8x4xbf16, {{.*}}: tensor<4x6xbf16, {{.*}}) -> (tensor<2x8x6xbf16
// CHECK-DAG: weft.kernel @[[LAST:up_[0-9a-f]+]] {{.*}} (%{{.*}}: tensor<2x8x4xbf16, {{.*}}: tensor<4x6xbf16, {{.*}}) -> (tensor<2x8x6xf32
// CHECK-DAG: weft.kernel @[[DW:dw_[0-9a-f]+]] {{.*}}: tensor<4x6xf32, {{.*}}) -> (tensor<4x6xf32
// CHECK: func.func @program
// CHECK: %[[H:.*]] = weft.launch @[[NORM]](%arg0) : (tensor<2x8x4xf32, {{.*}}) -> tensor<2x8x4xbf16
// CHECK: %[[W:.*]] = weft.launch @[[ROUND]]
// CHECK: %[[Y:.*]] = weft.launch @[[UP]](%[[H]], %[[W]])
// CHECK-NOT: @[[ROUND]]
// CHECK: %[[Z:.*]] = weft.launch @{{.*}}(%[[H]], %[[W]]) : {{.*}} -> tensor<2x8x6xf32
// CHECK: %[[G:.*]] = weft.launch @[[DW]](%[[H]], %[[Y]], %{{.*}}) : {{.*}} -> tensor<4x6xf32
// CHECK: weft.set @"grad/w", %[[G]] : tensor<4x6xf32
// CHECK: return %[[Z]]
func.func @program(%x : !act) -> !hid {
  %w = weft.get @w : !w
  %old = weft.get @"grad/w" : !w
  %h = weft.launch @norm_0(%x) : (!act) -> !act
  %y = weft.launch @up_1(%h, %w) : (!act, !w) -> !hid
  %z = weft.launch @up_1(%h, %w) : (!act, !w) -> !hid
  %g = weft.launch @dw_2(%h, %y, %old) : (!act, !hid, !w) -> !w
  weft.set @"grad/w", %g : !w
  return %z : !hid
}

// -----

!q = tensor<1x4x2x8xf32, #weft.axes<batch, pos, heads, head>>
!s = tensor<1x4x2xf32, #weft.axes<batch, pos, heads>>
!d = tensor<1x4xi32, #weft.axes<batch, pos>>
!cache = tensor<1x16x2x8xf32, #weft.axes<batch, cache, heads, head>>

weft.state cache @"cache/k" <constant, 0.0 : f64> : !cache

weft.kernel @update_0 rows [] chunks 1 (%c: !cache, %k: !q, %at: tensor<i32>) -> (!cache) attributes {weft.hash = "0"} {
  %0 = weft.cache_update %c, %k, %at : (!cache, !q, tensor<i32>) -> !cache
  weft.yield %0 : !cache
}
weft.kernel @attend_1 rows [] chunks 1 (%q: !q, %k: !q, %w: tensor<2xi32>, %d: !d) -> (!q, !s) attributes {weft.hash = "1"} {
  %o, %l = weft.attend %q, %k, %k windows %w documents %d {scale = 1.0 : f64} : (!q, !q, !q, tensor<2xi32>, !d) -> (!q, !s)
  weft.yield %o, %l : !q, !s
}
weft.kernel @sum_2 rows ["batch", "pos"] chunks 1 (%o: !q, %l: !s) -> (!q) attributes {weft.hash = "2"} {
  %0 = weft.binary mul %o, %l : (!q, !s) -> !q
  weft.yield %0 : !q
}

// Log-sums stay in 32 bits, caches are bf16. Mutations caught: lse rounded, the
// cache's entry left as it was.
// CHECK: weft.state cache @"cache/k" {{.*}} : tensor<1x16x2x8xbf16
// CHECK: func.func @decode
// CHECK: weft.get @"cache/k" : tensor<1x16x2x8xbf16
// CHECK: weft.launch @update_{{.*}} -> tensor<1x16x2x8xbf16
// CHECK: weft.launch @attend_{{.*}} : (tensor<1x4x2x8xbf16, {{.*}}, tensor<1x4x2x8xbf16, {{.*}}) -> (tensor<1x4x2x8xbf16, {{.*}}, tensor<1x4x2xf32
func.func @decode(%q : !q, %w : tensor<2xi32>, %d : !d, %at : tensor<i32>) -> !q {
  %c = weft.get @"cache/k" : !cache
  %n = weft.launch @update_0(%c, %q, %at) : (!cache, !q, tensor<i32>) -> !cache
  weft.set @"cache/k", %n : !cache
  %o, %l = weft.launch @attend_1(%q, %q, %w, %d) : (!q, !q, tensor<2xi32>, !d) -> (!q, !s)
  %r = weft.launch @sum_2(%o, %l) : (!q, !s) -> !q
  return %r : !q
}
