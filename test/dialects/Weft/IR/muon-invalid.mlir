// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each function breaks the constraint that it is named after, and nothing else.

!m = tensor<6x4xf32, #weft.axes<rows, columns>>

func.func @reshape_c1(%x : !m) {
  // expected-error@+1 {{expects as many elements as}}
  %y = weft.reshape %x : (!m) -> tensor<5x4xf32, #weft.axes<rows, columns>>
  return
}

// -----

!m = tensor<6x4xf32, #weft.axes<rows, columns>>

func.func @reshape_c2(%x : !m) {
  // expected-error@+1 {{expects elements of 'f32', but got}}
  %y = weft.reshape %x : (!m) -> tensor<24xf64, #weft.axes<rows>>
  return
}

// -----

func.func @polar_c1(%x : tensor<6xf32, #weft.axes<rows>>) {
  // expected-error@+1 {{expects matrices of [..., rows, columns]}}
  %y = weft.polar %x iterations 5 : (tensor<6xf32, #weft.axes<rows>>) -> tensor<6xf32, #weft.axes<rows>>
  return
}

// -----

!m = tensor<6x4xf32, #weft.axes<rows, columns>>

func.func @polar_c2(%x : !m) {
  // expected-error@+1 {{expects `y` of type}}
  %y = weft.polar %x iterations 5 : (!m) -> tensor<4x6xf32, #weft.axes<rows, columns>>
  return
}

// -----

!m = tensor<6x4xf32, #weft.axes<rows, columns>>

func.func @polar_c3(%x : !m) {
  // expected-error@+1 {{expects at least 1 iteration, but got 0}}
  %y = weft.polar %x iterations 0 : (!m) -> !m
  return
}

// -----

!m = tensor<6x4xf32, #weft.axes<rows, columns>>

func.func @accept_c1(%x : !m, %y : tensor<24xf32, #weft.axes<rows>>, %s : tensor<f32>) {
  // expected-error@+1 {{expects `next` of type}}
  %z = weft.accept %x, %y scale %s : (!m, tensor<24xf32, #weft.axes<rows>>, tensor<f32>) -> !m
  return
}

// -----

!m = tensor<6x4xf32, #weft.axes<rows, columns>>

func.func @accept_c2(%x : !m, %s : tensor<3xf32>) {
  // expected-error@+1 {{expects `scale` to be a single number}}
  %z = weft.accept %x, %x scale %s : (!m, !m, tensor<3xf32>) -> !m
  return
}

// -----

!m = tensor<6x4xf32, #weft.axes<rows, columns>>

func.func @convert_c1(%x : !m) {
  // expected-error@+1 {{expects the sizes and axes of}}
  %y = weft.convert %x : (!m) -> tensor<4x6xbf16, #weft.axes<rows, columns>>
  return
}
