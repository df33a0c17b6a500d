// RUN: weft-opt %s --weft-plan-memory | FileCheck %s

!v = tensor<20xf32>
!w = tensor<40xf32>

weft.kernel @copy rows [] chunks 1 (%x : !v) -> (!v) {
  %y = weft.unary relu %x : (!v) -> !v
  weft.yield %y : !v
}
weft.kernel @join rows [] chunks 1 (%x : !v, %y : !v) -> (!v) {
  %z = weft.binary add %x, %y : (!v, !v) -> !v
  weft.yield %z : !v
}

// a lives over calls 1..3, b over 1..2, c over 2..3. a overlaps both; c may not
// take b's bytes, since the call that writes c still reads b: 3 x 128 bytes.
// Mutations caught: a buffer that is read by the call that ends its life counted
// as dead; 80 bytes not rounded to 128.
// CHECK: weft.program @overlap {{.*}} arena 384
// CHECK: %[[A:.*]] = weft.buffer arena at 0
// CHECK: %[[B:.*]] = weft.buffer arena at 128
// CHECK: %[[C:.*]] = weft.buffer arena at 256
// CHECK: weft.call @join ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] :
weft.program @overlap inputs ["x"] [!v] results ["y"] [!v] {
  %x = weft.buffer input at 0 : !v
  %y = weft.buffer result at 0 : !v
  %a = weft.buffer arena : !v
  %b = weft.buffer arena : !v
  %c = weft.buffer arena : !v
  weft.call @copy ins(%x : !v) outs(%a : !v) grid 1
  weft.call @copy ins(%a : !v) outs(%b : !v) grid 1
  weft.call @join ins(%a, %b : !v, !v) outs(%c : !v) grid 1
  weft.call @join ins(%a, %c : !v, !v) outs(%y : !v) grid 1
}

// A chain needs two places whatever its length. Mutation caught: no reuse.
// CHECK: weft.program @chain {{.*}} arena 256
// CHECK: weft.buffer arena at 0
// CHECK: weft.buffer arena at 128
// CHECK: weft.buffer arena at 0
// CHECK: weft.buffer arena at 128
weft.program @chain inputs ["x"] [!v] results ["y"] [!v] {
  %x = weft.buffer input at 0 : !v
  %y = weft.buffer result at 0 : !v
  %a = weft.buffer arena : !v
  %b = weft.buffer arena : !v
  %c = weft.buffer arena : !v
  %d = weft.buffer arena : !v
  weft.call @copy ins(%x : !v) outs(%a : !v) grid 1
  weft.call @copy ins(%a : !v) outs(%b : !v) grid 1
  weft.call @copy ins(%b : !v) outs(%c : !v) grid 1
  weft.call @copy ins(%c : !v) outs(%d : !v) grid 1
  weft.call @copy ins(%d : !v) outs(%y : !v) grid 1
}

// A view keeps its whole buffer alive: b can't stand on the second half of a.
// Mutation caught: lives counted by the operands of calls, views not followed.
// CHECK: weft.program @views {{.*}} arena 320
// CHECK: weft.buffer arena at 0 : tensor<40xf32>
// CHECK: weft.buffer arena at 192 : tensor<20xf32>
weft.program @views inputs ["x"] [!v] results ["y"] [!v] {
  %x = weft.buffer input at 0 : !v
  %y = weft.buffer result at 0 : !v
  %a = weft.buffer arena : !w
  %b = weft.buffer arena : !v
  %first = weft.view %a from 0 : (!w) -> !v
  %second = weft.view %a from 20 : (!w) -> !v
  weft.call @copy ins(%x : !v) outs(%second : !v) grid 1
  weft.call @copy ins(%x : !v) outs(%b : !v) grid 1
  weft.call @join ins(%b, %second : !v, !v) outs(%first : !v) grid 1
  weft.copy %first to %y : !v, !v
}

// The largest is placed first: the small ones go around it. Mutation caught:
// first come, first placed (the arena would grow to 384). Unused buffers go.
// CHECK: weft.program @largest {{.*}} arena 320
// CHECK: weft.buffer arena at 192 : tensor<20xf32>
// CHECK-NEXT: weft.buffer arena at 0 : tensor<40xf32>
// CHECK-NEXT: weft.fill
weft.program @largest inputs [] [] results [] [] {
  %a = weft.buffer arena : !v
  %b = weft.buffer arena : !w
  %unused = weft.buffer arena : !w
  weft.fill %a : !v
  weft.fill %b : !w
  weft.fill %a : !v
}
