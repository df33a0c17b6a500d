// RUN: weft-opt %s --split-input-file --weft-recompute | FileCheck %s
// RUN: weft-opt %s --split-input-file --weft-recompute=policy=tight | FileCheck %s --check-prefix=TIGHT
// RUN: weft-opt %s --split-input-file --weft-recompute=policy=fast | FileCheck %s --check-prefix=FAST
// RUN: weft-opt %s --split-input-file --weft-recompute="policy=tight enough=256" | FileCheck %s --check-prefix=ENOUGH
// RUN: not weft-opt %s --split-input-file --weft-recompute=policy=all 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: weft-recompute: policy: expected fast, lean or tight, found 'all'

!x = tensor<2x4x8xf32, #weft.axes<batch, pos, dim>>
!d = tensor<8xf32, #weft.axes<dim>>
!w = tensor<8x8xf32, #weft.axes<dim, dim2>>
!y = tensor<2x4x8xf32, #weft.axes<batch, pos, dim2>>
!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!row = tensor<2x4xf32, #weft.axes<batch, pos>>

// A residual, its norm and the norm with a gain come from one region. The product
// before the residual can't be made again, so the residual is saved and the other
// two are cut from it, each before its first reader after the loss; the second
// reader of one finds it there. The region no longer makes what only they read.
// Mutations caught: a cut from the region's operands (%p would live on); a copy for
// each reader; copies right behind the loss.
// CHECK-LABEL: func.func @micro
// CHECK: %[[P:.*]] = weft.launch @product
// CHECK: %[[R:.*]]:2 = weft.launch @region_{{.*}}(%arg0, %[[P]], %arg2)
// CHECK: %[[G:.*]]:2 = weft.launch @loss(
// CHECK-NEXT: weft.launch @other
// CHECK-NEXT: %[[H:.*]] = weft.launch @{{.*}}(%arg2, %[[R]]#0) {weft.again}
// CHECK-NEXT: %[[A:.*]] = weft.launch @reads(%[[H]]
// CHECK-NEXT: %[[N:.*]] = weft.launch @{{.*}}(%[[R]]#0) {weft.again}
// CHECK-NEXT: weft.launch @reads(%[[N]], %[[A]])
// CHECK-NEXT: weft.launch @reads(%[[H]]
// CHECK-NEXT: weft.launch @reads(%[[R]]#0
//
// `tight` makes the product again too, and from it the residual, once: both norms are
// cut from that. Mutations caught: chains that read the first product; a product for
// each value that is cut.
// TIGHT-LABEL: func.func @micro
// TIGHT: weft.launch @other
// TIGHT-NEXT: %[[P:.*]] = weft.launch @product(%arg1, %arg3) {weft.again}
// TIGHT-NEXT: %[[R:.*]] = weft.launch @{{.*}}(%arg0, %[[P]]) {weft.again}
// TIGHT-NEXT: %[[H:.*]] = weft.launch @{{.*}}(%arg2, %[[R]]) {weft.again}
// TIGHT-NEXT: %[[A:.*]] = weft.launch @reads(%[[H]]
// TIGHT-NEXT: %[[N:.*]] = weft.launch @{{.*}}(%[[R]]) {weft.again}
// TIGHT-NEXT: weft.launch @reads(%[[N]], %[[A]])
// TIGHT-NEXT: weft.launch @reads(%[[H]]
// TIGHT-NEXT: weft.launch @reads(%[[R]]
//
// FAST-LABEL: func.func @micro
// FAST-NOT: weft.again
// FAST: return
weft.kernel @product rows [] chunks 1 (%a : !y, %w : !w) -> (!x) attributes {weft.hash = "product"} {
  %p = weft.contract %a, %w : (!y, !w) -> !x
  weft.yield %p : !x
}
weft.kernel @region rows ["batch", "pos"] chunks 1 (%x : !x, %p : !x, %g : !d) -> (!x, !x, !x) attributes {weft.hash = "region"} {
  %r = weft.binary add %x, %p : (!x, !x) -> !x
  %n = weft.rms_norm %r {eps = 0.5 : f64} : (!x) -> !x
  %h = weft.binary mul %n, %g : (!x, !d) -> !x
  weft.yield %r, %n, %h : !x, !x, !x
}
weft.kernel @loss rows [] chunks 1 (%x : !x, %t : !ids) -> (!x, !row) attributes {weft.hash = "loss"} {
  %dl, %l = weft.cross_entropy_grad %x, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!x, !ids) -> (!x, !row)
  weft.yield %dl, %l : !x, !row
}
weft.kernel @other rows [] chunks 1 (%a : !x) -> (!x) attributes {weft.hash = "other"} {
  %r = weft.unary exp %a : (!x) -> !x
  weft.yield %r : !x
}
weft.kernel @reads rows [] chunks 1 (%a : !x, %b : !x) -> (!x) attributes {weft.hash = "reads"} {
  %r = weft.binary mul %a, %b : (!x, !x) -> !x
  weft.yield %r : !x
}
func.func @micro(%x : !x, %z : !y, %g : !d, %w : !w, %t : !ids) -> (!row, !x, !x, !x, !x) {
  %p = weft.launch @product(%z, %w) : (!y, !w) -> !x
  %r:3 = weft.launch @region(%x, %p, %g) : (!x, !x, !d) -> (!x, !x, !x)
  %l:2 = weft.launch @loss(%r#2, %t) : (!x, !ids) -> (!x, !row)
  %o = weft.launch @other(%l#0) : (!x) -> !x
  %a = weft.launch @reads(%r#2, %o) : (!x, !x) -> !x
  %b = weft.launch @reads(%r#1, %a) : (!x, !x) -> !x
  %c = weft.launch @reads(%r#2, %b) : (!x, !x) -> !x
  %d = weft.launch @reads(%r#0, %c) : (!x, !x) -> !x
  return %l#1, %a, %b, %c, %d : !row, !x, !x, !x, !x
}

// -----

!wide = tensor<2x4x8xf32, #weft.axes<batch, pos, dim>>
!narrow = tensor<2x4x6xf32, #weft.axes<batch, pos, out>>
!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!row = tensor<2x4xf32, #weft.axes<batch, pos>>
!d = tensor<8xf32, #weft.axes<dim>>

// Prices. A sum over 6 numbers moves 7 bytes for each byte that it frees, one over 8
// moves 9: that one is saved. What follows from state alone is saved too where no
// program changes it: it is made once a load. What the loss alone reads is nobody's.
// Mutations caught: bytes read that don't count; weights that are rounded again each run.
// CHECK-LABEL: func.func @micro
// CHECK: %[[E:.*]] = weft.launch @eight
// CHECK: %[[O:.*]] = weft.launch @ofstate
// CHECK: weft.launch @loss(
// CHECK-NEXT: weft.launch @rows(%[[E]],
// CHECK-NEXT: %[[A:.*]] = weft.launch @six(%arg1) {weft.again}
// CHECK-NEXT: weft.launch @rows(%[[A]],
// CHECK-NEXT: weft.launch @other(%[[O]])
weft.state parameter @g <constant, 1.0 : f64> : !d
weft.kernel @six rows ["batch", "pos"] chunks 1 (%a : !narrow) -> (!row) attributes {weft.hash = "six"} {
  %s = weft.sum_to %a : (!narrow) -> !row
  weft.yield %s : !row
}
weft.kernel @eight rows ["batch", "pos"] chunks 1 (%a : !wide) -> (!row) attributes {weft.hash = "eight"} {
  %s = weft.sum_to %a : (!wide) -> !row
  weft.yield %s : !row
}
weft.kernel @ofstate rows [] chunks 1 (%a : !d) -> (!d) attributes {weft.hash = "ofstate"} {
  %r = weft.unary exp %a : (!d) -> !d
  weft.yield %r : !d
}
weft.kernel @loss rows [] chunks 1 (%x : !wide, %t : !ids) -> (!wide, !row) attributes {weft.hash = "loss"} {
  %dl, %l = weft.cross_entropy_grad %x, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!wide, !ids) -> (!wide, !row)
  weft.yield %dl, %l : !wide, !row
}
weft.kernel @rows rows [] chunks 1 (%a : !row, %b : !row) -> (!row) attributes {weft.hash = "rows"} {
  %r = weft.binary mul %a, %b : (!row, !row) -> !row
  weft.yield %r : !row
}
weft.kernel @other rows [] chunks 1 (%a : !d) -> (!d) attributes {weft.hash = "other"} {
  %r = weft.unary tanh %a : (!d) -> !d
  weft.yield %r : !d
}
func.func @micro(%x : !wide, %z : !narrow, %t : !ids) -> (!row, !row, !d) {
  %s = weft.launch @six(%z) : (!narrow) -> !row
  %e = weft.launch @eight(%x) : (!wide) -> !row
  %w = weft.get @g : !d
  %o = weft.launch @ofstate(%w) : (!d) -> !d
  %l:2 = weft.launch @loss(%x, %t) : (!wide, !ids) -> (!wide, !row)
  %a = weft.launch @rows(%e, %l#1) : (!row, !row) -> !row
  %b = weft.launch @rows(%s, %a) : (!row, !row) -> !row
  %c = weft.launch @other(%o) : (!d) -> !d
  return %a, %b, %c : !row, !row, !d
}

// -----

!x = tensor<2x4x8xf32, #weft.axes<batch, pos, dim>>
!w = tensor<8x8xf32, #weft.axes<dim, dim2>>
!y = tensor<2x4x8xf32, #weft.axes<batch, pos, dim2>>
!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!row = tensor<2x4xf32, #weft.axes<batch, pos>>

// Where 256 bytes are enough, the first product (of 256 bytes) is made again, the second is not.
// TIGHT-LABEL: func.func @observe
// TIGHT: weft.launch @loss
// TIGHT-NEXT: weft.launch @product(%arg1, %arg2) {weft.again}
// TIGHT-NEXT: weft.launch @reads
// TIGHT-NEXT: weft.launch @product(%arg0, %arg2) {weft.again}
// ENOUGH-LABEL: func.func @observe
// ENOUGH: %[[SECOND:.*]] = weft.launch @product(%arg1, %arg2)
// ENOUGH: weft.launch @loss
// ENOUGH-NEXT: %[[R:.*]] = weft.launch @reads(%[[SECOND]],
// ENOUGH-NEXT: %[[FIRST:.*]] = weft.launch @product(%arg0, %arg2) {weft.again}
// ENOUGH-NEXT: weft.launch @reads(%[[FIRST]], %[[R]])
weft.kernel @product rows [] chunks 1 (%a : !y, %w : !w) -> (!x) attributes {weft.hash = "product"} {
  %p = weft.contract %a, %w : (!y, !w) -> !x
  weft.yield %p : !x
}
weft.kernel @loss rows [] chunks 1 (%x : !x, %t : !ids) -> (!x, !row) attributes {weft.hash = "loss"} {
  %dl, %l = weft.cross_entropy_grad %x, %t {z = 0.0 : f64, smoothing = 0.0 : f64} : (!x, !ids) -> (!x, !row)
  weft.yield %dl, %l : !x, !row
}
weft.kernel @reads rows [] chunks 1 (%a : !x, %b : !x) -> (!x) attributes {weft.hash = "reads"} {
  %r = weft.binary mul %a, %b : (!x, !x) -> !x
  weft.yield %r : !x
}
func.func @observe(%a : !y, %b : !y, %w : !w, %t : !ids) -> (!row, !x, !x) {
  %p = weft.launch @product(%a, %w) : (!y, !w) -> !x
  %q = weft.launch @product(%b, %w) : (!y, !w) -> !x
  %h = weft.launch @reads(%p, %q) : (!x, !x) -> !x
  %l:2 = weft.launch @loss(%h, %t) : (!x, !ids) -> (!x, !row)
  %r = weft.launch @reads(%q, %l#0) : (!x, !x) -> !x
  %s = weft.launch @reads(%p, %r) : (!x, !x) -> !x
  return %l#1, %r, %s : !row, !x, !x
}
