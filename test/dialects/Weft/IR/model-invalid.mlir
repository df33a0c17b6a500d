// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each section breaks the constraint that stands above it, and nothing else.

// model_c1: names and formulas come in pairs.
// expected-error@+1 {{'weft.model' op expects one formula a name, but got 2 names and 1 formulas}}
"weft.model"() <{sym_name = "m", names = ["a", "b"], formulas = [#weft.formula<"1">]}> ({
^bb0:
}) : () -> ()

// -----

// model_c1: what stands there is a formula.
// expected-error@+1 {{'weft.model' op expects formulas, but got 1 : i64}}
"weft.model"() <{sym_name = "m", names = ["a"], formulas = [1 : i64]}> ({
^bb0:
}) : () -> ()

// -----

!x = tensor<?xf32, #weft.axes<dim>>
!y = tensor<?xf32, #weft.axes<hidden>>

// layer_c1: the carried value changes its axes from one repeat to the next.
weft.model @m {dim = "4"} {
  %x = weft.input "x" : !x
  // expected-error@+1 {{expects carried values, block arguments, yielded values and results to agree}}
  %z = weft.layer "block" [<"2">] (%in = %x) : !x {
    %y = weft.param "w" <normal, 1.0 : f64> : !y
    // expected-note@+1 {{yields}}
    weft.yield %y : !y
  }
}

// -----

!x = tensor<?xf32, #weft.axes<dim>>

// branch_c1: a branch without its value can't be dropped to zero.
weft.model @m {dim = "4"} {
  // expected-error@+1 {{expects its region to yield one value of type}}
  %z = weft.branch "b" {
    weft.yield
  } : !x
}

// -----

!x = tensor<?xf32, #weft.axes<dim>>
!y = tensor<?xf32, #weft.axes<hidden>>

// if_c1: both sides give the same axes.
weft.model @m {dim = "4"} {
  %x = weft.input "x" : !x
  %y = weft.input "y" : !y
  // expected-error@+1 {{expects both regions to yield ('tensor<?xf32, #weft.axes<dim>>'), but one yields ('tensor<?xf32, #weft.axes<hidden>>')}}
  %z = weft.if <"dim is 4"> {
    weft.yield %x : !x
  } else {
    weft.yield %y : !y
  } : !x
}

// -----

// loss_c1: a loss for each row is not one that training can lower.
weft.model @m {dim = "4"} {
  %x = weft.input "x" : tensor<?xf32, #weft.axes<dim>>
  // expected-error@+1 {{expects a single number, summed over every axis}}
  weft.loss %x : tensor<?xf32, #weft.axes<dim>>
}

// -----

func.func @get_c1() {
  // expected-error@+1 {{names no state entry: @w}}
  %w = weft.get @w : tensor<3xf32>
  return
}

// -----

// expected-note@+1 {{state entry declared here}}
weft.state parameter @w <normal, 1.0 : f64> : tensor<4xf32>
func.func @get_c1_type() {
  // expected-error@+1 {{expects the state's type 'tensor<4xf32>', but got 'tensor<3xf32>'}}
  %w = weft.get @w : tensor<3xf32>
  return
}

// -----

// expected-note@+1 {{state entry declared here}}
weft.state parameter @w <normal, 1.0 : f64> : tensor<4xf32>
func.func @set_c1(%x : tensor<3xf32>) {
  // expected-error@+1 {{expects the state's type 'tensor<4xf32>', but got 'tensor<3xf32>'}}
  weft.set @w, %x : tensor<3xf32>
  return
}

// -----

weft.state parameter @a <normal, 1.0 : f64> : tensor<4xf32>
func.func @get_flat_c1() {
  // expected-error@+1 {{names no state entry: @b}}
  %w = weft.get_flat [@a, @b] : tensor<8xf32>
  return
}

// -----

weft.state parameter @a <normal, 1.0 : f64> : tensor<4xf32>
weft.state parameter @b <normal, 1.0 : f64> : tensor<2x3xf32>
func.func @get_flat_c2() {
  // expected-error@+1 {{expects a vector of the entries' 10 elements, but got 'tensor<8xf32>'}}
  %w = weft.get_flat [@a, @b] : tensor<8xf32>
  return
}

// -----

weft.state parameter @a <normal, 1.0 : f64> : tensor<4xf32>
func.func @set_flat_c1(%x : tensor<4xf32>) {
  // expected-error@+1 {{names no state entry: @c}}
  weft.set_flat [@c], %x : tensor<4xf32>
  return
}

// -----

weft.state parameter @a <normal, 1.0 : f64> : tensor<4xf32>
func.func @set_flat_c2(%x : tensor<4xf64>) {
  // expected-error@+1 {{expects entries of 'f64', but @a is 'tensor<4xf32>'}}
  weft.set_flat [@a], %x : tensor<4xf64>
  return
}

// -----

// axes_c1: as many names as axes.
// expected-error@+1 {{expects one name an axis, but got 2 names for 1 axes}}
func.func @axes_c1(%x : tensor<4xf32, #weft.axes<dim, hidden>>) {
  return
}

// -----

// axes_c2: a name stands once.
// expected-error@+1 {{axis 'dim' stands twice; a tensor has each axis name once}}
func.func @axes_c2(%x : tensor<4x4xf32, #weft.axes<dim, dim>>) {
  return
}

// -----

// formula_c1: text that frontend/Formula reads.
// expected-error@+1 {{'dim +' is not a formula}}
weft.model @m {dim = "dim +"} {
}
