// RUN: weft-opt %s --weft-fuse | FileCheck %s
// RUN: weft-opt %s --weft-fuse="row-budget=48" | FileCheck %s --check-prefix=SMALL

!act = tensor<2x8x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x8x6xf32, #weft.axes<batch, pos, hidden>>
!gain = tensor<4xf32, #weft.axes<dim>>
!w = tensor<4x6xf32, #weft.axes<dim, hidden>>
!parts = tensor<2x4xf32, #weft.axes<chunk, dim>>

// The whole of a pre-norm between two products is one region, and the normalised
// row is never stored: one result. Mutation caught: members yielded whether or
// not anyone outside reads them.
// CHECK-LABEL: @norm
// CHECK: %[[N:.*]] = weft.fused rows ["batch", "pos"] chunks 2 (%[[X:.*]] = %arg0, %[[G:.*]] = %arg1) : {{.*}} -> tensor<2x8x4xf32, #weft.axes<batch, pos, dim>> {
// CHECK-NEXT: %[[R:.*]] = weft.rms_norm %[[X]]
// CHECK-NEXT: %[[Y:.*]] = weft.binary mul %[[R]], %[[G]]
// CHECK-NEXT: weft.yield %[[Y]]
// CHECK: weft.contract %[[N]], %arg2
func.func @norm(%x : !act, %gain : !gain, %w : !w) -> !hid {
  %n = weft.rms_norm %x {eps = 1.0e-6 : f64} : (!act) -> !act
  %y = weft.binary mul %n, %gain : (!act, !gain) -> !act
  %h = weft.contract %y, %w : (!act, !w) -> !hid
  return %h : !hid
}

// A residual and the norm behind it share a region over the rows of the
// product; the residual is read later, so it is a result too.
// CHECK-LABEL: @residual
// CHECK: %[[P:.*]] = weft.contract
// CHECK: %[[F:.*]]:2 = weft.fused rows ["batch", "pos"]
// CHECK: %[[S:.*]] = weft.binary add
// CHECK: %[[N:.*]] = weft.rms_norm %[[S]]
// CHECK: weft.yield %[[S]], %[[N]]
// CHECK-NOT: weft.fused
// CHECK: return %[[F]]#0, %[[F]]#1
func.func @residual(%x : !act, %h : !hid, %w : !w) -> (!act, !act) {
  %p = weft.contract %h, %w : (!hid, !w) -> !act
  %s = weft.binary add %x, %p : (!act, !act) -> !act
  %n = weft.rms_norm %s {eps = 1.0e-6 : f64} : (!act) -> !act
  return %s, %n : !act, !act
}

// The gradient of a gain joins the region that makes its operand: the product
// dy * n is never stored. Mutation caught: partial sums as kernels of their own.
// CHECK-LABEL: @partials
// CHECK: weft.fused rows ["batch", "pos"] chunks 2
// CHECK: %[[M:.*]] = weft.binary mul
// CHECK: %[[PARTS:.*]] = weft.partial_sum %[[M]] over ["batch", "pos"]
// CHECK: weft.yield %[[PARTS]] :
// CHECK-NOT: weft.fused
// CHECK: weft.sum_to
func.func @partials(%x : !act, %dy : !act) -> !gain {
  %n = weft.rms_norm %x {eps = 1.0e-6 : f64} : (!act) -> !act
  %m = weft.binary mul %dy, %n : (!act, !act) -> !act
  %parts = weft.partial_sum %m over ["batch", "pos"] : (!act) -> !parts
  %s = weft.sum_to %parts : (!parts) -> !gain
  return %s : !gain
}

// The value leaves the first op for a product and comes back to the third: one
// region would have to wait for itself. Mutation caught: joining without the
// search for a path, which breaks dominance.
// CHECK-LABEL: @cycle
// CHECK: %[[A:.*]] = weft.fused
// CHECK: weft.unary relu
// CHECK: %[[B:.*]] = weft.contract %[[A]], %arg1
// CHECK: %[[C:.*]] = weft.contract %[[B]], %arg1
// CHECK: %[[D:.*]] = weft.fused
// CHECK: weft.binary add
// CHECK: return %[[D]]
func.func @cycle(%x : !act, %w : !w) -> !act {
  %a = weft.unary relu %x : (!act) -> !act
  %b = weft.contract %a, %w : (!act, !w) -> !hid
  %c = weft.contract %b, %w : (!hid, !w) -> !act
  %d = weft.binary add %a, %c : (!act, !act) -> !act
  return %d : !act
}

// The number in every element is cloned into the region: kernels read no
// constants from memory.
// CHECK-LABEL: @constant
// CHECK: weft.fused rows ["batch", "pos"] chunks 2 (%{{.*}} = %arg0) :
// CHECK: weft.constant {value = 5.000000e-01 : f64}
// CHECK: weft.binary mul
func.func @constant(%x : !act) -> !act {
  %half = weft.constant {value = 0.5 : f64} : tensor<f32>
  %y = weft.binary mul %x, %half : (!act, tensor<f32>) -> !act
  return %y : !act
}

// Readers of one value that do not read one another share a region, so that the
// value is loaded once.
// CHECK-LABEL: @siblings
// CHECK: %[[F:.*]]:2 = weft.fused
// CHECK: weft.unary silu
// CHECK: weft.unary relu
// CHECK-NOT: weft.fused
// CHECK: return %[[F]]#0, %[[F]]#1
func.func @siblings(%x : !act) -> (!act, !act) {
  %a = weft.unary silu %x : (!act) -> !act
  %b = weft.unary relu %x : (!act) -> !act
  return %a, %b : !act, !act
}

// The optimiser's vectors have no rows: they run over elements, and their
// scalars do not keep them apart.
// CHECK-LABEL: @step
// CHECK: weft.fused rows [] chunks 2
// CHECK: weft.adamw
func.func @step(%p : tensor<32768xf32>, %m : tensor<32768xf32>, %v : tensor<32768xf32>, %g : tensor<32768xf32>,
                %hyper : tensor<3xf32>, %scale : tensor<f32>) -> (tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>) {
  %a, %b, %c = weft.adamw %p, %m, %v, %g hyper %hyper scale %scale betas 0.9, 0.95 eps 1.0e-8 decay 0.1
    : (tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>, tensor<3xf32>, tensor<f32>)
    -> (tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>)
  return %a, %b, %c : tensor<32768xf32>, tensor<32768xf32>, tensor<32768xf32>
}

// Four rows of 16 bytes; with 48 bytes the fourth opens a region of its own.
// SMALL-LABEL: @budget
// SMALL: weft.fused
// SMALL: weft.unary exp
// SMALL-NEXT: weft.yield
// SMALL: weft.fused
// SMALL: weft.unary tanh
// SMALL: return
// CHECK-LABEL: @budget
// CHECK: weft.fused
// CHECK-NOT: weft.fused
// CHECK: return
func.func @budget(%x : !act) -> !act {
  %a = weft.unary relu %x : (!act) -> !act
  %b = weft.unary silu %a : (!act) -> !act
  %c = weft.unary exp %b : (!act) -> !act
  %d = weft.unary tanh %c : (!act) -> !act
  return %d : !act
}
