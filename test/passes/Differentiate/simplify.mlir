// RUN: weft-opt %s --simplify | FileCheck %s

// CHECK-LABEL: @idle
// CHECK-NEXT: return %arg0
func.func @idle(%x : tensor<3xf64, #weft.axes<dim>>) -> tensor<3xf64, #weft.axes<dim>> {
  %one = weft.constant {value = 1.0 : f64} : tensor<f64>
  %zero = weft.constant {value = 0.0 : f64} : tensor<f64>
  %a = weft.binary mul %one, %x : (tensor<f64>, tensor<3xf64, #weft.axes<dim>>) -> tensor<3xf64, #weft.axes<dim>>
  %b = weft.binary add %a, %zero : (tensor<3xf64, #weft.axes<dim>>, tensor<f64>) -> tensor<3xf64, #weft.axes<dim>>
  %c = weft.binary div %b, %one : (tensor<3xf64, #weft.axes<dim>>, tensor<f64>) -> tensor<3xf64, #weft.axes<dim>>
  %d = weft.binary pow %c, %one : (tensor<3xf64, #weft.axes<dim>>, tensor<f64>) -> tensor<3xf64, #weft.axes<dim>>
  %e = weft.sum_to %d : (tensor<3xf64, #weft.axes<dim>>) -> tensor<3xf64, #weft.axes<dim>>
  return %e : tensor<3xf64, #weft.axes<dim>>
}

// 1 - x, 1 / x and a repeat along an axis are not idle.
// CHECK-LABEL: @busy
// CHECK: weft.binary sub
// CHECK: weft.binary div
// CHECK: weft.binary mul
func.func @busy(%x : tensor<f64>) -> tensor<3xf64, #weft.axes<dim>> {
  %one = weft.constant {value = 1.0 : f64} : tensor<f64>
  %ones = weft.constant {value = 1.0 : f64} : tensor<3xf64, #weft.axes<dim>>
  %a = weft.binary sub %one, %x : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %b = weft.binary div %one, %a : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %c = weft.binary mul %ones, %b : (tensor<3xf64, #weft.axes<dim>>, tensor<f64>) -> tensor<3xf64, #weft.axes<dim>>
  return %c : tensor<3xf64, #weft.axes<dim>>
}

// 0 * x + (1 - 4) / 2: numbers are computed, x is gone.
// CHECK-LABEL: @numbers
// CHECK-NEXT: %[[C:.*]] = weft.constant {value = -1.500000e+00 : f64}
// CHECK-NEXT: return %[[C]]
func.func @numbers(%x : tensor<f64>) -> tensor<f64> {
  %zero = weft.constant {value = 0.0 : f64} : tensor<f64>
  %one = weft.constant {value = 1.0 : f64} : tensor<f64>
  %two = weft.constant {value = 2.0 : f64} : tensor<f64>
  %four = weft.constant {value = 4.0 : f64} : tensor<f64>
  %a = weft.binary mul %zero, %x : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %b = weft.binary sub %one, %four : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %c = weft.binary div %b, %two : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %d = weft.binary add %a, %c : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %d : tensor<f64>
}
