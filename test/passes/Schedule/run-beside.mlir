// RUN: weft-opt %s --weft-run-beside --weft-plan-memory | FileCheck %s
// RUN: weft-opt %s --weft-run-beside | FileCheck %s --check-prefix=ORDER

!x = tensor<4x8xf32, #weft.axes<pos, dim>>
!w = tensor<8x8xf32, #weft.axes<dim, out>>
!y = tensor<4x8xf32, #weft.axes<pos, out>>

// Three products read one tensor: the second and third need not wait for those before them. The
// sum needs two of them and is no product; the fourth product needs the sum.
// Mutations caught: a product that needs the call before marked; one that stays where it was;
// a move past the call that it needs (@double makes what it reads).
// ORDER: weft.call @double
// ORDER-NEXT: weft.call @product {{.*}} {weft.beside}
// ORDER-NEXT: weft.call @product {{.*}} {weft.beside}
// ORDER-NEXT: weft.call @product {{.*}} grid 1{{$}}
// ORDER-NEXT: weft.call @join {{.*}} grid 1{{$}}
// ORDER-NEXT: weft.call @join {{.*}} grid 1{{$}}
// ORDER-NOT: weft.beside

// What marked products touch stays theirs until a call waits for them: %d is read by nothing
// behind the products, yet %s (512) does not take its place, as the product that the second
// @join waits for may still read it. In a chain the arena would have 512 bytes.
// CHECK: weft.program @read {{.*}} arena 640
// CHECK: weft.buffer arena at 0 : tensor<4x8xf32, #weft.axes<pos, dim>>
// CHECK: weft.buffer arena at 512 :
// CHECK-NOT: weft.buffer
module attributes {weft.state_bytes = 256 : i64} {
  weft.kernel @double rows [] chunks 1 (%x : !x) -> (!x) {
    %y = weft.binary add %x, %x : (!x, !x) -> !x
    weft.yield %y : !x
  }
  weft.kernel @product rows [] chunks 1 (%x : !x, %w : !w) -> (!y) {
    %y = weft.contract %x, %w : (!x, !w) -> !y
    weft.yield %y : !y
  }
  weft.kernel @join rows [] chunks 1 (%x : !y, %y : !y) -> (!y) {
    %z = weft.binary add %x, %y : (!y, !y) -> !y
    weft.yield %z : !y
  }
  weft.program @read inputs ["x"] [!x] results ["y"] [!y] {
    %x = weft.buffer input at 0 : !x
    %y = weft.buffer result at 0 : !y
    %w = weft.buffer state at 0 : !w
    %d = weft.buffer arena : !x
    %a = weft.buffer arena : !y
    %b = weft.buffer arena : !y
    %c = weft.buffer arena : !y
    %s = weft.buffer arena : !y
    weft.call @double ins(%x : !x) outs(%d : !x) grid 1
    weft.call @product ins(%d, %w : !x, !w) outs(%a : !y) grid 1
    weft.call @product ins(%d, %w : !x, !w) outs(%b : !y) grid 1
    weft.call @join ins(%a, %b : !y, !y) outs(%s : !y) grid 1
    weft.call @product ins(%d, %w : !x, !w) outs(%c : !y) grid 1
    weft.call @join ins(%s, %c : !y, !y) outs(%y : !y) grid 1
  }
}
