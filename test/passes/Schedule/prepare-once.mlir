// RUN: weft-opt %s --weft-prepare-once --weft-plan-memory | FileCheck %s

!v = tensor<20xf32>

// State: w at 0, u at 80 (written by @read), 160 bytes, so results stand at 256 and 512.
// From w: c, once for both programs, and d from c. Not from u, not from the input,
// not e, which two calls write, not into a port.
// Mutations caught: written state taken for constant (f); a result that another call
// overwrites kept (e); equal calls made twice; results that share a place.
// CHECK: module attributes {weft.state_bytes = 640 : i64}
// CHECK: weft.program @prepare inputs [] [] results [] [] arena 0
// CHECK: %[[W:.*]] = weft.buffer state at 0
// CHECK: %[[C:.*]] = weft.buffer state at 256
// CHECK: weft.call @copy ins(%[[W]] : {{.*}}) outs(%[[C]] :
// CHECK: %[[C2:.*]] = weft.buffer state at 256
// CHECK: %[[D:.*]] = weft.buffer state at 512
// CHECK: weft.call @double ins(%[[C2]] : {{.*}}) outs(%[[D]] :
// CHECK-NOT: weft.call
// CHECK: weft.program @read
// CHECK: weft.buffer state at 512
// CHECK-NOT: weft.call @double
// CHECK: weft.call @join
// CHECK: weft.call @copy ins({{.*}}) outs(%[[F:[0-9]+]] :
// CHECK: weft.program @again
// CHECK: %[[AGAIN:.*]] = weft.buffer state at 256
// CHECK: %[[E:.*]] = weft.buffer arena at 0
// CHECK-NOT: weft.call @copy ins(%{{.*}}) outs(%[[AGAIN]]
// CHECK: weft.call @copy ins(%{{.*}}) outs(%[[E]] :
// CHECK: weft.call @copy ins(%{{.*}}) outs(%[[E]] :
// CHECK: weft.call @join ins(%[[AGAIN]], %[[E]] :
module attributes {weft.state_bytes = 160 : i64} {
  weft.kernel @copy rows [] chunks 1 (%x : !v) -> (!v) {
    %y = weft.unary relu %x : (!v) -> !v
    weft.yield %y : !v
  }
  weft.kernel @double rows [] chunks 1 (%x : !v) -> (!v) {
    %y = weft.binary add %x, %x : (!v, !v) -> !v
    weft.yield %y : !v
  }
  weft.kernel @join rows [] chunks 1 (%x : !v, %y : !v) -> (!v) {
    %z = weft.binary add %x, %y : (!v, !v) -> !v
    weft.yield %z : !v
  }
  weft.program @read inputs ["x"] [!v] results ["y"] [!v] {
    %x = weft.buffer input at 0 : !v
    %y = weft.buffer result at 0 : !v
    %w = weft.buffer state at 0 : !v
    %u = weft.buffer state at 80 : !v
    %c = weft.buffer arena : !v
    %d = weft.buffer arena : !v
    %f = weft.buffer arena : !v
    weft.call @copy ins(%w : !v) outs(%c : !v) grid 1
    weft.call @double ins(%c : !v) outs(%d : !v) grid 1
    weft.call @join ins(%d, %x : !v, !v) outs(%u : !v) grid 1
    weft.call @copy ins(%u : !v) outs(%f : !v) grid 1
    weft.call @join ins(%f, %x : !v, !v) outs(%y : !v) grid 1
  }
  weft.program @again inputs [] [] results ["y", "z"] [!v, !v] {
    %y = weft.buffer result at 0 : !v
    %z = weft.buffer result at 1 : !v
    %w = weft.buffer state at 0 : !v
    %c = weft.buffer arena : !v
    %e = weft.buffer arena : !v
    weft.call @copy ins(%w : !v) outs(%c : !v) grid 1
    weft.call @copy ins(%w : !v) outs(%e : !v) grid 1
    weft.call @copy ins(%c : !v) outs(%e : !v) grid 1
    weft.call @join ins(%c, %e : !v, !v) outs(%y : !v) grid 1
    weft.call @copy ins(%w : !v) outs(%z : !v) grid 1
  }
}
