// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each function or symbol breaks the constraint that it is named after, and
// nothing else.

!v = tensor<8xf32>

func.func @fused_c1(%x : !v) -> !v {
  // expected-error@+1 {{expects one block argument an operand, ('tensor<8xf32>'), but got ('tensor<4xf32>')}}
  %y = "weft.fused"(%x) <{rows = [], chunks = 1 : i64}> ({
  ^bb0(%in : tensor<4xf32>):
    %r = weft.constant {value = 1.0 : f64} : !v
    "weft.yield"(%r) : (!v) -> ()
  }) : (!v) -> !v
  return %y : !v
}

// -----

!v = tensor<8xf32>

func.func @fused_c2(%x : !v) {
  // expected-error@+1 {{expects its body to yield (), but it yields ('tensor<8xf32>')}}
  "weft.fused"(%x) <{rows = [], chunks = 1 : i64}> ({
  ^bb0(%in : !v):
    "weft.yield"(%in) : (!v) -> ()
  }) : (!v) -> ()
  return
}

// -----

!v = tensor<8xf32>

func.func @fused_c3(%x : !v) -> !v {
  // expected-error@+1 {{expects at least one chunk, but got 0}}
  %y = weft.fused rows [] chunks 0 (%in = %x) : (!v) -> !v {
    weft.yield %in : !v
  }
  return %y : !v
}

// -----

!row = tensor<2x3xf32, #weft.axes<batch, pos>>
!col = tensor<3xf32, #weft.axes<pos>>

// A tensor over positions alone is neither a row tensor nor one for all rows.
func.func @fused_c4(%x : !row, %y : !col) -> !row {
  // expected-error@+1 {{expects a tensor that has an axis of its rows ["batch", "pos"] to start with all of them, but got 'tensor<3xf32, #weft.axes<pos>>'}}
  %z = weft.fused rows ["batch", "pos"] chunks 1 (%a = %x, %b = %y) : (!row, !col) -> !row {
    %s = weft.binary add %a, %b : (!row, !col) -> !row
    weft.yield %s : !row
  }
  return %z : !row
}

// -----

// expected-error@+1 {{entry block must have 2 arguments to match function signature}}
"weft.kernel"() <{sym_name = "kernel_c1", function_type = (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>, rows = [], chunks = 1 : i64}> ({
^bb0(%x : tensor<8xf32>):
  "weft.yield"(%x) : (tensor<8xf32>) -> ()
}) : () -> ()

// -----

!v = tensor<8xf32>

// expected-error@+1 {{expects its body to yield ('tensor<4xf32>'), but it yields ('tensor<8xf32>')}}
weft.kernel @kernel_c2 rows [] chunks 1 (%x : !v) -> (tensor<4xf32>) {
  weft.yield %x : !v
}

// -----

!v = tensor<8xf32>

// expected-error@+1 {{expects at least one chunk, but got -1}}
weft.kernel @kernel_c3 rows [] chunks -1 (%x : !v) -> (!v) {
  weft.yield %x : !v
}

// -----

!v = tensor<8xf32>

func.func @launch_c1(%x : !v) {
  // expected-error@+1 {{names no kernel: @nowhere}}
  %y = weft.launch @nowhere(%x) : (!v) -> !v
  return
}

// -----

!v = tensor<8xf32>

weft.kernel @k rows [] chunks 1 (%x : !v) -> (!v) {
  weft.yield %x : !v
}
func.func @launch_c2(%x : !v) {
  // expected-error@+1 {{expects the kernel's type '(tensor<8xf32>) -> tensor<8xf32>', but got '(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>'}}
  %y = weft.launch @k(%x, %x) : (!v, !v) -> !v
  return
}

// -----

// expected-error@+1 {{expects one type a port, but got inputs ["x"] of [] and results [] of []}}
weft.program @program_c1 inputs ["x"] [] results [] [] {
}

// -----

weft.program @program_c2 inputs [] [] results [] [] {
  // expected-error@+1 {{can't stand in a program, which holds buffers, views, calls, fills and copies}}
  %x = weft.constant {value = 1.0 : f64} : tensor<8xf32>
}

// -----

weft.program @program_c3 inputs ["x"] [tensor<8xf32>] results [] [] {
  // expected-error@+1 {{expects number and type of a port of [tensor<8xf32>], but got number 1 and 'tensor<8xf32>'}}
  %x = weft.buffer input at 1 : tensor<8xf32>
}

// -----

weft.program @program_c3_type inputs [] [] results ["y"] [tensor<8xf32>] {
  // expected-error@+1 {{expects number and type of a port of [tensor<8xf32>], but got number 0 and 'tensor<4xf32>'}}
  %x = weft.buffer result at 0 : tensor<4xf32>
}

// -----

// A program is checked before its buffers: it may not take their offsets for granted.
weft.program @buffer_c1_input inputs ["x"] [tensor<8xf32>] results [] [] {
  // expected-error@+1 {{expects an offset of at least 0 in the space 'input'}}
  %x = weft.buffer input : tensor<8xf32>
}

// -----

weft.program @buffer_c1 inputs [] [] results [] [] {
  // expected-error@+1 {{expects an offset of at least 0 in the space 'state'}}
  %x = weft.buffer state : tensor<8xf32>
}

// -----

weft.program @view_c1 inputs [] [] results [] [] {
  %x = weft.buffer arena : tensor<8xf32>
  // expected-error@+1 {{'tensor<4xf32>' from 5 on ends outside}}
  %y = weft.view %x from 5 : (tensor<8xf32>) -> tensor<4xf32>
}

// -----

weft.program @view_c2 inputs [] [] results [] [] {
  %x = weft.buffer arena : tensor<8xf32>
  // expected-error@+1 {{expects elements of 'tensor<8xf32>', but got 'tensor<4xi32>'}}
  %y = weft.view %x from 0 : (tensor<8xf32>) -> tensor<4xi32>
}

// -----

weft.program @call_c1 inputs [] [] results [] [] {
  %x = weft.buffer arena : tensor<8xf32>
  // expected-error@+1 {{names no kernel: @nowhere}}
  weft.call @nowhere ins() outs(%x : tensor<8xf32>) grid 1
}

// -----

weft.kernel @k rows [] chunks 1 (%x : tensor<8xf32>) -> (tensor<8xf32>) {
  weft.yield %x : tensor<8xf32>
}
weft.program @call_c2 inputs [] [] results [] [] {
  %x = weft.buffer arena : tensor<8xf32>
  // expected-error@+1 {{expects operands of the kernel's type '(tensor<8xf32>) -> tensor<8xf32>', but got () and ('tensor<8xf32>')}}
  weft.call @k ins() outs(%x : tensor<8xf32>) grid 1
}

// -----

weft.kernel @k rows [] chunks 1 (%x : tensor<8xf32>) -> (tensor<8xf32>) {
  weft.yield %x : tensor<8xf32>
}
weft.program @call_c3 inputs [] [] results [] [] {
  %x = weft.buffer arena : tensor<8xf32>
  // expected-error@+1 {{expects a grid of at least 1, but got 0}}
  weft.call @k ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) grid 0
}

// -----

weft.program @copy_c1 inputs [] [] results [] [] {
  %x = weft.buffer arena : tensor<8xf32>
  %y = weft.buffer arena : tensor<4xf32>
  // expected-error@+1 {{expects two buffers of one size and element type}}
  weft.copy %x to %y : tensor<8xf32>, tensor<4xf32>
}
