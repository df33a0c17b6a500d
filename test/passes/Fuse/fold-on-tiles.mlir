// RUN: env WEFT_CUDA_PRODUCTS=generated weft-opt %s --weft-fold-activations | FileCheck %s
// RUN: env WEFT_CUDA_PRODUCTS=generated weft-opt %s --weft-fold-activations=keeps=false | FileCheck %s --check-prefix=AGAIN
// RUN: env WEFT_CUDA_PRODUCTS=generated weft-opt %s --weft-fold-activations=chip=sm_80 | FileCheck %s --check-prefix=OLD
// RUN: env WEFT_CUDA_PRODUCTS=library weft-opt %s --weft-fold-activations | FileCheck %s --check-prefix=OLD

// Products of 528 tiles, the least that is folded on tiles, and of 440.
!x = tensor<11264x576xbf16, #weft.axes<pos, dim>>
!xf = tensor<11264x576xf32, #weft.axes<pos, dim>>
!h = tensor<11264x1536xbf16, #weft.axes<pos, hidden>>
!hf = tensor<11264x1536xf32, #weft.axes<pos, hidden>>
!w = tensor<576x1536xbf16, #weft.axes<dim, hidden>>
!wf = tensor<576x1536xf32, #weft.axes<dim, hidden>>
!n = tensor<11264x1280xbf16, #weft.axes<pos, narrow>>
!nf = tensor<11264x1280xf32, #weft.axes<pos, narrow>>
!v = tensor<576x1280xbf16, #weft.axes<dim, narrow>>
!vf = tensor<576x1280xf32, #weft.axes<dim, narrow>>

weft.kernel @up_0 rows [] chunks 1 (%x: !x, %w: !w) -> (!h) attributes {weft.hash = "0"} {
  %0 = weft.convert %x : (!x) -> !xf
  %1 = weft.convert %w : (!w) -> !wf
  %2 = weft.contract %0, %1 : (!xf, !wf) -> !hf
  %3 = weft.convert %2 : (!hf) -> !h
  weft.yield %3 : !h
}
weft.kernel @narrow_1 rows [] chunks 1 (%x: !x, %w: !v) -> (!n) attributes {weft.hash = "1"} {
  %0 = weft.convert %x : (!x) -> !xf
  %1 = weft.convert %w : (!v) -> !vf
  %2 = weft.contract %0, %1 : (!xf, !vf) -> !nf
  %3 = weft.convert %2 : (!nf) -> !n
  weft.yield %3 : !n
}
weft.kernel @silu_2 rows ["pos"] chunks 2 (%x: !h) -> (!h) attributes {weft.hash = "2"} {
  %0 = weft.convert %x : (!h) -> !hf
  %1 = weft.unary silu %0 : (!hf) -> !hf
  %2 = weft.convert %1 : (!hf) -> !h
  weft.yield %2 : !h
}
// The product is the second argument.
weft.kernel @gate_3 rows ["pos"] chunks 2 (%g: !h, %u: !h) -> (!h) attributes {weft.hash = "3"} {
  %0 = weft.convert %g : (!h) -> !hf
  %1 = weft.convert %u : (!h) -> !hf
  %2 = weft.unary silu %0 : (!hf) -> !hf
  %3 = weft.binary mul %2, %1 : (!hf, !hf) -> !hf
  %4 = weft.convert %3 : (!hf) -> !h
  weft.yield %4 : !h
}
weft.kernel @silu_4 rows ["pos"] chunks 2 (%x: !n) -> (!n) attributes {weft.hash = "4"} {
  %0 = weft.convert %x : (!n) -> !nf
  %1 = weft.unary silu %0 : (!nf) -> !nf
  %2 = weft.convert %1 : (!nf) -> !n
  weft.yield %2 : !n
}
weft.kernel @norm_5 rows ["pos"] chunks 2 (%x: !h) -> (!h) attributes {weft.hash = "5"} {
  %0 = weft.convert %x : (!h) -> !hf
  %1 = weft.softmax %0 : (!hf) -> !hf
  %2 = weft.convert %1 : (!hf) -> !h
  weft.yield %2 : !h
}

// A product that is kept is the first result. Mutations caught: the results exchanged;
// the product read before the follower as it was stored.
// CHECK: weft.kernel @[[KEPT:up_silu_[0-9a-f]+]] rows [] chunks 1
// CHECK-SAME: weft.on_tiles
// CHECK: %[[C:.*]] = weft.contract
// CHECK: %[[S:.*]] = weft.unary silu %[[C]]
// CHECK: %[[Y:.*]] = weft.convert %[[S]]
// CHECK: %[[K:.*]] = weft.convert %[[C]]
// CHECK: weft.yield %[[K]], %[[Y]]
// CHECK: weft.kernel @[[ALONE:up_silu_[0-9a-f]+]]
// CHECK: %[[C:.*]] = weft.contract
// CHECK: %[[S:.*]] = weft.unary silu %[[C]]
// CHECK: %[[Y:.*]] = weft.convert %[[S]]
// CHECK: weft.yield %[[Y]]

// CHECK-LABEL: func.func @kept
// CHECK-NEXT: %[[B:.*]]:2 = weft.launch @[[KEPT]](%arg0, %arg1)
// CHECK-NEXT: return %[[B]]#1, %[[B]]#0
// AGAIN-LABEL: func.func @kept
// AGAIN: weft.launch @up_0
// AGAIN: weft.launch @silu_2
// OLD-LABEL: func.func @kept
// OLD: weft.launch @up_0
// OLD: weft.launch @silu_2
func.func @kept(%x : !x, %w : !w) -> (!h, !h) {
  %y = weft.launch @up_0(%x, %w) : (!x, !w) -> !h
  %s = weft.launch @silu_2(%y) : (!h) -> !h
  return %s, %y : !h, !h
}

// Nothing else reads the product: it is not written, and folded where activations are made
// again too.
// CHECK-LABEL: func.func @alone
// CHECK-NEXT: %[[G:.*]] = weft.launch @[[ALONE]](%arg0, %arg1)
// CHECK-NEXT: return %[[G]]
// AGAIN-LABEL: func.func @alone
// AGAIN-NEXT: weft.launch @up_silu_
// OLD-LABEL: func.func @alone
// OLD: weft.launch @up_0
// OLD: weft.launch @silu_2
func.func @alone(%x : !x, %w : !w) -> !h {
  %u = weft.launch @up_0(%x, %w) : (!x, !w) -> !h
  %y = weft.launch @silu_2(%u) : (!h) -> !h
  return %y : !h
}

// Left: a small product, a sum of a row, an operand twice, a function of another tensor too.
// CHECK-LABEL: func.func @others
// CHECK: weft.launch @narrow_1
// CHECK: weft.launch @silu_4
// CHECK: weft.launch @up_0
// CHECK: weft.launch @norm_5
// CHECK: weft.launch @up_0
// CHECK: weft.launch @gate_3
// CHECK: weft.launch @up_0
// CHECK: weft.launch @gate_3
func.func @others(%x : !x, %w : !w, %v : !v, %g : !h) -> (!n, !h, !h, !h, !h) {
  %n = weft.launch @narrow_1(%x, %v) : (!x, !v) -> !n
  %s = weft.launch @silu_4(%n) : (!n) -> !n
  %u = weft.launch @up_0(%x, %w) : (!x, !w) -> !h
  %m = weft.launch @norm_5(%u) : (!h) -> !h
  %t = weft.launch @up_0(%x, %w) : (!x, !w) -> !h
  %y = weft.launch @gate_3(%t, %t) : (!h, !h) -> !h
  %v2 = weft.launch @up_0(%x, %w) : (!x, !w) -> !h
  %y2 = weft.launch @gate_3(%g, %v2) : (!h, !h) -> !h
  return %s, %m, %y, %y2, %v2 : !n, !h, !h, !h, !h
}
