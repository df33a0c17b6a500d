// RUN: weft-opt %s --split-input-file --weft-outline-kernels | FileCheck %s

!act = tensor<2x8x4xf32, #weft.axes<batch, pos, dim>>
!hid = tensor<2x8x6xf32, #weft.axes<batch, pos, hidden>>
!w = tensor<4x6xf32, #weft.axes<dim, hidden>>

// Two layers at other places of the text, with other operands, are two launches
// of the same two kernels. Mutations caught: locations in the hash, one kernel
// a launch, labels in the hash.
// CHECK: weft.kernel @[[UP:contract_[0-9a-f]+]] rows [] chunks 1 (%[[A:.*]]: tensor<2x8x4xf32, {{.*}}>, %[[B:.*]]: tensor<4x6xf32, {{.*}}>) -> (tensor<2x8x6xf32
// CHECK: weft.hash
// CHECK: weft.contract %[[A]], %[[B]]
// CHECK: weft.kernel @[[DOWN:contract_[0-9a-f]+]]
// CHECK-NOT: weft.kernel
// CHECK-LABEL: @layers
// CHECK: %[[H0:.*]] = weft.launch @[[UP]](%arg0, %arg1)
// CHECK: %[[X1:.*]] = weft.launch @[[DOWN]](%[[H0]], %arg1)
// CHECK: %[[H1:.*]] = weft.launch @[[UP]](%[[X1]], %arg2)
// CHECK: %[[X2:.*]] = weft.launch @[[DOWN]](%[[H1]], %arg2)
// CHECK-NOT: weft.contract
// CHECK: return %[[X2]]
func.func @layers(%x : !act, %w0 : !w, %w1 : !w) -> !act {
  %h0 = weft.contract %x, %w0 : (!act, !w) -> !hid loc("m.weft":3:1)
  %x1 = weft.contract %h0, %w0 : (!hid, !w) -> !act loc("m.weft":4:1)
  %h1 = weft.contract %x1, %w1 : (!act, !w) -> !hid loc("in block.1"("m.weft":3:1))
  %x2 = weft.contract %h1, %w1 : (!hid, !w) -> !act loc("in block.1"("m.weft":4:1))
  return %x2 : !act
}

// -----

!act = tensor<2x8x4xf32, #weft.axes<batch, pos, dim>>

// Another number is another kernel. Mutation caught: attributes left out of the hash.
// CHECK: weft.kernel @[[A:fused_rms_norm_[0-9a-f]+]]
// CHECK: eps = 5.000000e-01
// CHECK: weft.kernel @[[B:fused_rms_norm_[0-9a-f]+]]
// CHECK: eps = 2.500000e-01
// CHECK-LABEL: @numbers
// CHECK: weft.launch @[[A]](%arg0)
// CHECK: weft.launch @[[B]](%arg0)
func.func @numbers(%x : !act) -> (!act, !act) {
  %a = weft.fused rows ["batch", "pos"] chunks 2 (%in = %x) : (!act) -> !act {
    %n = weft.rms_norm %in {eps = 0.5 : f64} : (!act) -> !act
    weft.yield %n : !act
  }
  %b = weft.fused rows ["batch", "pos"] chunks 2 (%in = %x) : (!act) -> !act {
    %n = weft.rms_norm %in {eps = 0.25 : f64} : (!act) -> !act
    weft.yield %n : !act
  }
  return %a, %b : !act, !act
}

// -----

!act = tensor<2x8x4xf32, #weft.axes<batch, pos, dim>>
!sum = tensor<2x8xf32, #weft.axes<batch, pos>>

// An operand that stands twice is passed once, and the kernel reads it twice;
// that is another kernel than the product of two.
// CHECK: weft.kernel @[[SQUARE:.*]] rows [] chunks 1 (%[[X:[a-z0-9]*]]: tensor<2x8x4xf32, {{[^)]*}}) ->
// CHECK: weft.contract %[[X]], %[[X]]
// CHECK: weft.kernel @[[PRODUCT:.*]] rows [] chunks 1 (%{{.*}}, %{{.*}}) ->
// CHECK-LABEL: @twice
// CHECK: weft.launch @[[SQUARE]](%arg0)
// CHECK: weft.launch @[[PRODUCT]](%arg0, %arg1)
func.func @twice(%x : !act, %y : !act) -> (!sum, !sum) {
  %a = weft.contract %x, %x : (!act, !act) -> !sum
  %b = weft.contract %x, %y : (!act, !act) -> !sum
  return %a, %b : !sum, !sum
}
