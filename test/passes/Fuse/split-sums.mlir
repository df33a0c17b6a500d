// RUN: weft-opt %s --weft-split-sums | FileCheck %s

!act = tensor<4x8x6xf32, #weft.axes<batch, pos, dim>>
!gain = tensor<6xf32, #weft.axes<dim>>

// 32 rows are 4 chunks of 8: the number depends on sizes alone, so that results
// do not depend on the number of workers. Mutation caught: chunks from anything
// else (a thread count would change this line from machine to machine).
// CHECK-LABEL: @gain
// CHECK: %[[PARTS:.*]] = weft.partial_sum %arg0 over ["batch", "pos"] : {{.*}} -> tensor<4x6xf32, #weft.axes<chunk, dim>>
// CHECK: %[[SUM:.*]] = weft.sum_to %[[PARTS]] : {{.*}} -> tensor<6xf32, #weft.axes<dim>>
// CHECK: return %[[SUM]]
func.func @gain(%x : !act) -> !gain {
  %s = weft.sum_to %x : (!act) -> !gain
  return %s : !gain
}

// What is accumulated is added once, to the sum of the parts. Mutation caught:
// the init given to the partial sum, which would add it once a chunk.
// CHECK-LABEL: @accumulated
// CHECK: %[[PARTS:.*]] = weft.partial_sum %arg0 over
// CHECK: %[[SUM:.*]] = weft.sum_to %[[PARTS]] init %arg1
// CHECK: return %[[SUM]]
func.func @accumulated(%x : !act, %old : !gain) -> !gain {
  %s = weft.sum_to %x init %old : (!act, !gain) -> !gain
  return %s : !gain
}

// A sum inside each row keeps the rows and stays whole.
// CHECK-LABEL: @rows
// CHECK-NOT: weft.partial_sum
// CHECK: weft.sum_to %arg0
func.func @rows(%x : !act) -> tensor<4x8xf32, #weft.axes<batch, pos>> {
  %s = weft.sum_to %x : (!act) -> tensor<4x8xf32, #weft.axes<batch, pos>>
  return %s : tensor<4x8xf32, #weft.axes<batch, pos>>
}

// A sum over batch alone keeps pos: parts of whole rows would mix positions.
// CHECK-LABEL: @positions
// CHECK-NOT: weft.partial_sum
// CHECK: weft.sum_to %arg0
func.func @positions(%x : !act) -> tensor<8x6xf32, #weft.axes<pos, dim>> {
  %s = weft.sum_to %x : (!act) -> tensor<8x6xf32, #weft.axes<pos, dim>>
  return %s : tensor<8x6xf32, #weft.axes<pos, dim>>
}
