// RUN: weft-opt %s --form-programs="programs=update,decode" --split-input-file --verify-diagnostics

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>

// expected-error@+1 {{@update needs the module's attribute weft.groups: found none}}
module {
  weft.state parameter @w <constant, 1.0 : f64> : tensor<f32>
  func.func @forward(%tokens : !ids {weft.name = "tokens"}) -> (tensor<f32> {weft.name = "loss"}) {
    %w = weft.get @w : tensor<f32>
    return %w : tensor<f32>
  }
}

// -----

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>

// expected-error@+1 {{weft.groups names 'w' twice: expected each parameter in one group}}
module attributes {weft.groups = [
    {beta1 = 0.9 : f64, beta2 = 0.99 : f64, eps = 1.0e-8 : f64, decay = 0.1 : f64, params = ["w"]},
    {beta1 = 0.8 : f64, beta2 = 0.98 : f64, eps = 1.0e-9 : f64, decay = 0.0 : f64, params = ["w"]}]} {
  weft.state parameter @w <constant, 1.0 : f64> : tensor<f32>
  func.func @forward(%tokens : !ids {weft.name = "tokens"}) -> (tensor<f32> {weft.name = "loss"}) {
    %w = weft.get @w : tensor<f32>
    return %w : tensor<f32>
  }
}

// -----

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>

// expected-error@+1 {{weft.groups names "v": no parameter has this address}}
module attributes {weft.groups = [
    {beta1 = 0.9 : f64, beta2 = 0.99 : f64, eps = 1.0e-8 : f64, decay = 0.1 : f64, params = ["v"]}]} {
  weft.state parameter @w <constant, 1.0 : f64> : tensor<f32>
  func.func @forward(%tokens : !ids {weft.name = "tokens"}) -> (tensor<f32> {weft.name = "loss"}) {
    %w = weft.get @w : tensor<f32>
    return %w : tensor<f32>
  }
}

// -----

!ids = tensor<2x4xi32, #weft.axes<batch, pos>>
!act = tensor<2x4x6xf32, #weft.axes<batch, pos, vocab>>

// A mean over positions knows the future: no token can be decoded alone.
module attributes {weft.groups = [
    {beta1 = 0.9 : f64, beta2 = 0.99 : f64, eps = 1.0e-8 : f64, decay = 0.1 : f64, params = ["w"]}]} {
  weft.state parameter @w <constant, 1.0 : f64> : tensor<5x6xf32, #weft.axes<words, vocab>>
  func.func @forward(%tokens : !ids {weft.name = "tokens"})
      -> (tensor<f32> {weft.name = "loss"}, !act {weft.name = "logits"}) {
    %w = weft.get @w : tensor<5x6xf32, #weft.axes<words, vocab>>
    %x = weft.gather %w, %tokens : (tensor<5x6xf32, #weft.axes<words, vocab>>, !ids) -> !act
    // expected-error@+1 {{a token can't be decoded alone: it sums over positions or rows, in weft.sum_to}}
    %s = weft.sum_to %x : (!act) -> tensor<2x6xf32, #weft.axes<batch, vocab>>
    %y = weft.binary add %x, %s : (!act, tensor<2x6xf32, #weft.axes<batch, vocab>>) -> !act
    %loss = weft.sum_to %y : (!act) -> tensor<f32>
    return %loss, %y : tensor<f32>, !act
  }
}
