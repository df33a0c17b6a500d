// RUN: weft-opt %s --split-input-file --verify-diagnostics --weft-check-locations

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

// The check must not cry where every op and argument has a place.
func.func @known(%x : !act) -> !act {
  %y = weft.unary relu %x : (!act) -> !act
  return %y : !act
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

// Catches a pass that builds an op at builder.getUnknownLoc().
func.func @op(%x : !act) -> !act {
  // expected-error@unknown {{'weft.unary' op has no known location; build it at the location of the op that it comes from}}
  %y = weft.unary relu %x : (!act) -> !act loc(unknown)
  return %y : !act
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

// Catches Block::addArgument without the location of what the argument stands for.
// expected-error@+1 {{has a block argument without a known location: number 1 of type 'tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>'}}
func.func @argument(%x : !act, %y : !act loc(unknown)) -> !act {
  %z = weft.binary add %x, %y : (!act, !act) -> !act
  return %z : !act
}

// -----

!act = tensor<2x3x4xf32, #weft.axes<batch, pos, dim>>

// Catches a scope's name around nothing: `in block.0` tells the layer, but not
// the line of the text.
func.func @part(%x : !act) -> !act {
  // expected-error@unknown {{'weft.binary' op has no known location}}
  %y = weft.binary add %x, %x : (!act, !act) -> !act loc("in block.0")
  return %y : !act
}
