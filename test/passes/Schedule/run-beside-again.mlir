// RUN: weft-opt %s --weft-run-beside | FileCheck %s --check-prefix=ORDER

!x = tensor<4x8xf32, #weft.axes<pos, dim>>
!w = tensor<8x8xf32, #weft.axes<dim, dim2>>
!y = tensor<4x8xf32, #weft.axes<pos, dim2>>

// A product that is made again to free memory stays behind the call before it, which it
// could pass. Mutation caught: one that is moved up and lives from there.
// ORDER: weft.program @again
// ORDER: weft.call @double
// ORDER-NEXT: weft.call @double
// ORDER-NEXT: weft.call @product {{.*}} grid 1 {weft.again}{{$}}
// ORDER-NEXT: weft.call @join
//
// One that is not may pass all calls, but not what it reads.
// Mutation caught: a call before the buffers that it reads, where those come first.
// ORDER: weft.program @free
// ORDER: weft.call @product {{.*}} {weft.beside}
// ORDER-NEXT: weft.call @double
module attributes {weft.state_bytes = 256 : i64} {
  weft.kernel @double rows [] chunks 1 (%x : !y) -> (!y) {
    %y = weft.binary add %x, %x : (!y, !y) -> !y
    weft.yield %y : !y
  }
  weft.kernel @product rows [] chunks 1 (%x : !x, %w : !w) -> (!y) {
    %y = weft.contract %x, %w : (!x, !w) -> !y
    weft.yield %y : !y
  }
  weft.kernel @join rows [] chunks 1 (%x : !y, %y : !y) -> (!y) {
    %z = weft.binary add %x, %y : (!y, !y) -> !y
    weft.yield %z : !y
  }
  weft.program @again inputs ["x", "z"] [!x, !y] results ["y"] [!y] {
    %x = weft.buffer input at 0 : !x
    %z = weft.buffer input at 1 : !y
    %y = weft.buffer result at 0 : !y
    %w = weft.buffer state at 0 : !w
    %a = weft.buffer arena : !y
    %b = weft.buffer arena : !y
    %c = weft.buffer arena : !y
    weft.call @double ins(%z : !y) outs(%a : !y) grid 1
    weft.call @double ins(%a : !y) outs(%b : !y) grid 1
    weft.call @product ins(%x, %w : !x, !w) outs(%c : !y) grid 1 {weft.again}
    weft.call @join ins(%b, %c : !y, !y) outs(%y : !y) grid 1
  }
  weft.program @free inputs ["x", "z"] [!x, !y] results ["y"] [!y] {
    %x = weft.buffer input at 0 : !x
    %z = weft.buffer input at 1 : !y
    %y = weft.buffer result at 0 : !y
    %w = weft.buffer state at 0 : !w
    %a = weft.buffer arena : !y
    %b = weft.buffer arena : !y
    %c = weft.buffer arena : !y
    weft.call @double ins(%z : !y) outs(%a : !y) grid 1
    weft.call @double ins(%a : !y) outs(%b : !y) grid 1
    weft.call @product ins(%x, %w : !x, !w) outs(%c : !y) grid 1
    weft.call @join ins(%b, %c : !y, !y) outs(%y : !y) grid 1
  }
}
