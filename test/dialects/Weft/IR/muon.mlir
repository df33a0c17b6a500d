// RUN: weft-opt %s | weft-opt | FileCheck %s

// What is printed is read again and means the same.
// CHECK: weft.reshape %{{.*}} : (tensor<2x3x4xf32, #weft.axes<kv, group, dim>>) -> tensor<6x4xf32, #weft.axes<rows, columns>>
// CHECK: weft.polar %{{.*}} iterations 5 : (tensor<6x4xf32, #weft.axes<rows, columns>>) -> tensor<6x4xf32, #weft.axes<rows, columns>>
// CHECK: weft.polar %{{.*}} iterations 5 : (tensor<2x3x4xf32, #weft.axes<several, rows, columns>>)
// CHECK: weft.accept %{{.*}}, %{{.*}} scale %{{.*}} :
// CHECK: weft.norm %{{.*}} : (tensor<6x4xf32, #weft.axes<rows, columns>>) -> tensor<f32>
!w = tensor<2x3x4xf32, #weft.axes<kv, group, dim>>
!m = tensor<6x4xf32, #weft.axes<rows, columns>>
!n = tensor<2x3x4xf32, #weft.axes<several, rows, columns>>
func.func @muon(%w : !w, %s : tensor<f32>) {
  %m = weft.reshape %w : (!w) -> !m
  %y = weft.polar %m iterations 5 : (!m) -> !m
  %x = weft.reshape %w : (!w) -> !n
  %z = weft.polar %x iterations 5 : (!n) -> !n
  %a = weft.accept %m, %y scale %s : (!m, !m, tensor<f32>) -> !m
  %n = weft.norm %a : (!m) -> tensor<f32>
  return
}
