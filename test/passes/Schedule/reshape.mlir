// RUN: weft-opt %s --weft-lay-out-params --weft-fuse --weft-outline-kernels --weft-schedule | FileCheck %s

// A reshape is no call: the same bytes under another type. Of state it is the
// state's place, of the arena a view. The state that is read under both names is
// not written before its last reader. Mutations caught: the reshape copied, or
// its readers forgotten when the state is assigned in place.
// CHECK: weft.program @update
// CHECK: %[[W:.*]] = weft.buffer state at 0 : tensor<2x3xf32, #weft.axes<a, b>>
// CHECK: %[[V:.*]] = weft.buffer state at 0 : tensor<6xf32, #weft.axes<n>>
// CHECK: %[[H:.*]] = weft.buffer arena : tensor<2x3xf32, #weft.axes<a, b>>
// CHECK: weft.call @fused_exp{{.*}} ins(%[[W]] : {{.*}}) outs(%[[H]] :
// CHECK-NOT: weft.copy
// CHECK: %[[G:.*]] = weft.view %[[H]] from 0
// CHECK: weft.call @contract{{.*}} ins(%[[V]], %[[G]] :
// CHECK: weft.copy %[[H]] to
!w = tensor<2x3xf32, #weft.axes<a, b>>
!n = tensor<6xf32, #weft.axes<n>>
module {
  weft.state parameter @w <normal, 1.0 : f64> : !w
  func.func @update() -> (tensor<f32> {weft.name = "r"}) {
    %w = weft.get @w : !w
    %v = weft.reshape %w : (!w) -> !n
    %h = weft.unary exp %w : (!w) -> !w
    %g = weft.reshape %h : (!w) -> !n
    %s = weft.contract %v, %g : (!n, !n) -> tensor<f32>
    weft.set @w, %h : !w
    return %s : tensor<f32>
  }
}
