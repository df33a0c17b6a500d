// RUN: weft-opt %s --expand-polar | FileCheck %s

// A wide matrix squares its rows, a tall one its columns: the square has the
// shorter side twice. Mutations caught: the longer side squared, a, b or c in
// another place, the floor left out of the norm.
// CHECK-LABEL: @wide
// CHECK: %[[Q:.*]] = weft.binary mul %[[X:.*]], %[[X]] : (tensor<2x6xf32, #weft.axes<rows, columns>>
// CHECK: %[[Z:.*]] = weft.sum_to %[[Q]] : (tensor<2x6xf32, #weft.axes<rows, columns>>) -> tensor<f32>
// CHECK: %[[N:.*]] = weft.unary sqrt %[[Z]]
// CHECK: %[[F:.*]] = weft.constant {value = 9.9999999999999995E-8 : f64} : tensor<f32>
// CHECK: %[[D:.*]] = weft.binary add %[[N]], %[[F]]
// CHECK: %[[Y:.*]] = weft.binary div %[[X]], %[[D]]
// CHECK: %[[T:.*]] = weft.reshape %[[Y]] : {{.*}} -> tensor<2x6xf32, #weft.axes<rows.a, columns>>
// CHECK: %[[S:.*]] = weft.contract %[[Y]], %[[T]] : {{.*}} -> tensor<2x2xf32, #weft.axes<rows, rows.a>>
// CHECK: %[[S1:.*]] = weft.reshape %[[S]] : {{.*}} -> tensor<2x2xf32, #weft.axes<rows.a, rows.b>>
// CHECK: %[[B:.*]] = weft.constant {value = -4.7{{.*}} : f64}
// CHECK: %[[B1:.*]] = weft.binary mul %{{.*}}
// CHECK: %[[BS:.*]] = weft.reshape %[[B1]] : {{.*}} -> tensor<2x2xf32, #weft.axes<rows, rows.b>>
// CHECK: %[[C:.*]] = weft.constant {value = 2.0315{{.*}} : f64}
// CHECK: %[[CS:.*]] = weft.binary mul %{{.*}}
// CHECK: %[[W:.*]] = weft.contract %[[CS]], %[[S1]] init %[[BS]]
// CHECK: %[[O:.*]] = weft.reshape %[[Y]] : {{.*}} -> tensor<2x6xf32, #weft.axes<rows.b, columns>>
// CHECK: weft.constant {value = 3.4445{{.*}} : f64}
// CHECK: %[[AY:.*]] = weft.binary mul %{{.*}}
// CHECK: %[[NEXT:.*]] = weft.contract %[[W]], %[[O]] init %[[AY]] : {{.*}} -> tensor<2x6xf32, #weft.axes<rows, columns>>
// CHECK-NOT: weft.polar
!wide = tensor<2x6xf32, #weft.axes<rows, columns>>
func.func @wide(%x : !wide) -> !wide {
  %y = weft.polar %x iterations 2 : (!wide) -> !wide
  return %y : !wide
}

// CHECK-LABEL: @tall
// CHECK: weft.contract {{.*}} -> tensor<2x2xf32, #weft.axes<columns, columns.a>>
// CHECK: weft.contract {{.*}} -> tensor<2x2xf32, #weft.axes<columns, columns.b>>
// CHECK: weft.contract {{.*}} -> tensor<6x2xf32, #weft.axes<rows, columns>>
!tall = tensor<6x2xf32, #weft.axes<rows, columns>>
func.func @tall(%x : !tall) -> !tall {
  %y = weft.polar %x iterations 1 : (!tall) -> !tall
  return %y : !tall
}

// Matrices side by side: one norm each, products of as many. Mutation caught: one
// norm over all of them.
// CHECK-LABEL: @several
// CHECK: weft.sum_to %{{.*}} : {{.*}} -> tensor<3xf32, #weft.axes<muon.matrix>>
// CHECK: weft.binary div %{{.*}}, %{{.*}} : (tensor<3x2x6xf32, #weft.axes<muon.matrix, rows, columns>>, tensor<3xf32, #weft.axes<muon.matrix>>)
// CHECK: weft.contract {{.*}} -> tensor<3x2x2xf32, #weft.axes<muon.matrix, rows, rows.a>>
// CHECK: weft.contract {{.*}} -> tensor<3x2x2xf32, #weft.axes<muon.matrix, rows, rows.b>>
// CHECK: weft.contract {{.*}} -> tensor<3x2x6xf32, #weft.axes<muon.matrix, rows, columns>>
!several = tensor<3x2x6xf32, #weft.axes<muon.matrix, rows, columns>>
func.func @several(%x : !several) -> !several {
  %y = weft.polar %x iterations 1 : (!several) -> !several
  return %y : !several
}
