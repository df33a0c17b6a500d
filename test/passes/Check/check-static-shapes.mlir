// RUN: weft-opt %s --split-input-file --verify-diagnostics --weft-check-static-shapes

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

// The check must not cry where every size and number is there.
weft.state parameter @w <normal, 1.0 : f64> : !act
func.func @static(%x : !act) -> !act {
  %y = weft.rms_norm %x {eps = 1.0e-6 : f64} : (!act) -> !act
  return %y : !act
}

// -----

!act = tensor<2x?x4xf32, #weft.axes<batch, pos, dim>>

// Catches an op that unrolling cloned without sizing its result.
func.func @result() {
  // expected-error@+1 {{'weft.constant' op expects static sizes here, but got 'tensor<2x?x4xf32, #weft.axes<batch, pos, dim>>'; run weft-unroll-layers first}}
  %y = weft.constant {value = 1.0 : f64} : !act
  return
}

// -----

// Catches a parameter that kept its rolled type: its bytes would be negative.
// expected-error@+1 {{'weft.state' op expects static sizes here, but got 'tensor<?xf32, #weft.axes<dim>>'}}
weft.state parameter @w <normal, 1.0 : f64> : tensor<?xf32, #weft.axes<dim>>

// -----

// Catches arguments, which no op's result types show.
// expected-error@+1 {{'func.func' op expects static sizes here, but got 'tensor<?xf32, #weft.axes<dim>>'}}
func.func @argument(%x : tensor<?xf32, #weft.axes<dim>>) {
  return
}

// -----

!act = tensor<4xf32, #weft.axes<dim>>

// Catches a number that unrolling left as text: numberOf() would not be a number.
func.func @formula(%x : !act) -> !act {
  // expected-error@+1 {{'weft.rms_norm' op expects a number for 'eps' here, but got the formula "eps"; run weft-unroll-layers first}}
  %y = weft.rms_norm %x {eps = #weft.formula<"eps">} : (!act) -> !act
  return %y : !act
}
