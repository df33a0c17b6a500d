// RUN: weft-opt %s --split-input-file --verify-diagnostics --weft-schedule

!v = tensor<8xf32>

// A pipeline without its outlining must not lose the op.
func.func @f(%x : !v {weft.name = "x"}) -> (!v {weft.name = "y"}) {
  // expected-error@+1 {{is no launch: outline kernels before scheduling}}
  %y = weft.unary relu %x : (!v) -> !v
  return %y : !v
}

// -----

!v = tensor<8xf32>

// A state without a place.
weft.state parameter @w <normal, 1.0 : f64> : !v
func.func @f() -> (!v {weft.name = "y"}) {
  // expected-error@+1 {{names a state entry without a place: @w}}
  %w = weft.get @w : !v
  return %w : !v
}

// -----

// A flat vector over entries with something between them would step that too.
weft.state gradient @a <constant, 0.0 : f64> offset 0 : tensor<3xf32>
weft.state gradient @b <constant, 0.0 : f64> offset 64 : tensor<5xf32>
func.func @f() -> (tensor<8xf32> {weft.name = "y"}) {
  // expected-error@+1 {{expects entries one after another, but @b is at 64, not 12}}
  %all = weft.get_flat [@a, @b] : tensor<8xf32>
  return %all : tensor<8xf32>
}

// -----

// Zero is the only constant that a fill makes.
weft.state parameter @w <normal, 1.0 : f64> offset 0 : tensor<8xf32>
func.func @f() {
  %one = weft.constant {value = 1.0 : f64} : tensor<8xf32>
  // expected-error@+1 {{assigns or returns a constant other than zero, which no kernel makes}}
  weft.set @w, %one : tensor<8xf32>
  return
}
