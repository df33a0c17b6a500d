// RUN: weft-opt %s --weft-lay-out-params | FileCheck %s

// A parameter that no gradient belongs to stands before the group that names it, so
// that the optimiser's vector of the others has no gap. Mutation caught: the order of
// the group kept as it is (`get_flat expects entries one after another`).
// CHECK-DAG: weft.state parameter @idle {{.*}} offset 0 : tensor<4xf32
// CHECK-DAG: weft.state parameter @a {{.*}} offset 16 : tensor<3xf32
// CHECK-DAG: weft.state parameter @c {{.*}} offset 28 : tensor<2xf32
// CHECK-DAG: weft.state gradient @"grad/a" {{.*}} offset 64 :
// CHECK-DAG: weft.state gradient @"grad/c" {{.*}} offset 76 :
module attributes {weft.groups = [{params = ["a", "idle", "c"]}]} {
  weft.state parameter @a <normal, 1.0 : f64> : tensor<3xf32, #weft.axes<dim>>
  weft.state parameter @idle <normal, 1.0 : f64> : tensor<4xf32, #weft.axes<dim>>
  weft.state parameter @c <normal, 1.0 : f64> : tensor<2xf32, #weft.axes<dim>>
  weft.state gradient @"grad/a" <constant, 0.0 : f64> : tensor<3xf32, #weft.axes<dim>>
  weft.state gradient @"grad/c" <constant, 0.0 : f64> : tensor<2xf32, #weft.axes<dim>>
}
