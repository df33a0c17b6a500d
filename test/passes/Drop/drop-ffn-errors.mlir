// RUN: weft-opt %s --split-input-file --verify-diagnostics --weft-drop-ffn

// expected-error@+1 {{weft.drop holds {branch = "ffn", layer = "block", setting = "depth"}: expected {layer, branch : string}, and both or none of setting and depth}}
module attributes {weft.drop = [{layer = "block", branch = "ffn", setting = "depth"}]} {
  weft.model @m {dim = "4"} {
  }
}

// -----

module attributes {weft.drop = [{layer = "block", branch = "ffn"}]} {
  // expected-error@+1 {{weft.drop names the branch "ffn" of the layer "block": the model has none}}
  weft.model @m {dim = "4"} {
  }
}

// -----

!act = tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
module attributes {weft.drop = [{layer = "block", branch = "ffn", setting = "layers", depth = 3 : i64}]} {
  // expected-error@+1 {{weft.drop sets "layers", which is no setting of the model}}
  weft.model @m {dim = "4"} {
    %x = weft.input "x" : !act
    %y = weft.layer "block" [<"2">] (%in = %x) : !act {
      %f = weft.branch "ffn" {
        weft.yield %in : !act
      } : !act
      weft.yield %f : !act
    }
  }
}
