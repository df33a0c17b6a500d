// RUN: weft-opt %s --weft-lay-out-params | FileCheck %s

// Two groups whose members stand in turns in the model: each kind is laid out in
// the order of the groups, without a gap inside, so that a group is one vector.
// Every kind starts at 64 bytes. Mutations caught: the order of the text kept;
// padding between members; gradients in another order than parameters.
// CHECK: module attributes {{{.*}}weft.state_bytes = 448 : i64}
// CHECK-DAG: weft.state parameter @b {{.*}} offset 0 : tensor<5xf32
// CHECK-DAG: weft.state parameter @d {{.*}} offset 20 : tensor<2xf32
// CHECK-DAG: weft.state parameter @a {{.*}} offset 28 : tensor<3xf32
// CHECK-DAG: weft.state parameter @c {{.*}} offset 40 : tensor<4xf32
// CHECK-DAG: weft.state table @table {{.*}} offset 64 : tensor<2x1x2xf32
// CHECK-DAG: weft.state gradient @"grad/b" {{.*}} offset 128 :
// CHECK-DAG: weft.state gradient @"grad/d" {{.*}} offset 148 :
// CHECK-DAG: weft.state gradient @"grad/a" {{.*}} offset 156 :
// CHECK-DAG: weft.state gradient @"grad/c" {{.*}} offset 168 :
// CHECK-DAG: weft.state moment @"adamw.m/b" {{.*}} offset 192 :
// CHECK-DAG: weft.state moment @"adamw.m/c" {{.*}} offset 232 :
// CHECK-DAG: weft.state moment @"adamw.v/b" {{.*}} offset 256 :
// CHECK-DAG: weft.state moment @"adamw.v/a" {{.*}} offset 284 :
// CHECK-DAG: weft.state cache @"cache/0.k" {{.*}} offset 320 :
// CHECK-DAG: weft.state cache @"cache/0.v" {{.*}} offset 384 :
module attributes {weft.groups = [{params = ["b", "d"]}, {params = ["a", "c"]}]} {
  weft.state parameter @a <normal, 1.0 : f64> : tensor<3xf32, #weft.axes<dim>>
  weft.state parameter @b <normal, 1.0 : f64> : tensor<5xf32, #weft.axes<dim>>
  weft.state table @table <rope_table, 10000.0 : f64> : tensor<2x1x2xf32>
  weft.state parameter @c <normal, 1.0 : f64> : tensor<4xf32, #weft.axes<dim>>
  weft.state parameter @d <normal, 1.0 : f64> : tensor<2xf32, #weft.axes<dim>>
  weft.state gradient @"grad/a" <constant, 0.0 : f64> : tensor<3xf32, #weft.axes<dim>>
  weft.state gradient @"grad/b" <constant, 0.0 : f64> : tensor<5xf32, #weft.axes<dim>>
  weft.state gradient @"grad/c" <constant, 0.0 : f64> : tensor<4xf32, #weft.axes<dim>>
  weft.state gradient @"grad/d" <constant, 0.0 : f64> : tensor<2xf32, #weft.axes<dim>>
  weft.state moment @"adamw.m/a" <constant, 0.0 : f64> : tensor<3xf32, #weft.axes<dim>>
  weft.state moment @"adamw.v/a" <constant, 0.0 : f64> : tensor<3xf32, #weft.axes<dim>>
  weft.state moment @"adamw.m/b" <constant, 0.0 : f64> : tensor<5xf32, #weft.axes<dim>>
  weft.state moment @"adamw.v/b" <constant, 0.0 : f64> : tensor<5xf32, #weft.axes<dim>>
  weft.state moment @"adamw.m/c" <constant, 0.0 : f64> : tensor<4xf32, #weft.axes<dim>>
  weft.state moment @"adamw.v/c" <constant, 0.0 : f64> : tensor<4xf32, #weft.axes<dim>>
  weft.state moment @"adamw.m/d" <constant, 0.0 : f64> : tensor<2xf32, #weft.axes<dim>>
  weft.state moment @"adamw.v/d" <constant, 0.0 : f64> : tensor<2xf32, #weft.axes<dim>>
  weft.state cache @"cache/0.k" <constant, 0.0 : f64> : tensor<1x2x3xf32, #weft.axes<batch, cache, head>>
  weft.state cache @"cache/0.v" <constant, 0.0 : f64> : tensor<1x2x3xf32, #weft.axes<batch, cache, head>>

  // The norm of all gradients asks for no order, so it takes that of storage and
  // reads one vector; so does zeroing. The optimiser's own list is left alone:
  // its elements meet those of p, m and v. Mutation caught: every list reordered.
  // CHECK: weft.get_flat [@"grad/b", @"grad/d", @"grad/a", @"grad/c"]
  // CHECK: weft.get_flat [@"grad/a", @"grad/b"]
  // CHECK: weft.set_flat [@"grad/b", @"grad/d", @"grad/a", @"grad/c"]
  func.func @update(%factor : tensor<f32>) -> (tensor<f32>, tensor<8xf32>) {
    %all = weft.get_flat [@"grad/a", @"grad/b", @"grad/c", @"grad/d"] : tensor<14xf32>
    %norm = weft.norm %all, %factor : (tensor<14xf32>, tensor<f32>) -> tensor<f32>
    %some = weft.get_flat [@"grad/a", @"grad/b"] : tensor<8xf32>
    %half = weft.unary neg %some : (tensor<8xf32>) -> tensor<8xf32>
    %zero = weft.constant {value = 0.0 : f64} : tensor<14xf32>
    weft.set_flat [@"grad/a", @"grad/b", @"grad/c", @"grad/d"], %zero : tensor<14xf32>
    return %norm, %half : tensor<f32>, tensor<8xf32>
  }
}
