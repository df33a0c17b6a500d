// RUN: weft-opt %s --weft-tile-patterns --cse | FileCheck %s
// RUN: weft-opt %s --weft-tile-patterns=chip=sm_80 | FileCheck %s --check-prefix=PLAIN
// Forward and backward share one table, scales lie on the side that is summed over, and log-sums
// are made where somebody reads them. Catches: a head table lost on the way, 1 / Z in the
// forward's scale.

!kv = tensor<2x96x1x64xf32, #weft.axes<batch, pos, kv, head>>
!out = tensor<2x96x3x64xf32, #weft.axes<batch, pos, frozen, head>>
!rows = tensor<2x96x3xf32, #weft.axes<batch, pos, frozen>>
!pattern = tensor<3x96xf32, #weft.axes<frozen, place>>
!list = tensor<3xi32>
!places = tensor<2x96xi32, #weft.axes<batch, pos>>
!cache = tensor<2x96x3x64xf32, #weft.axes<batch, keys, kv, head>>
!one = tensor<2x1xi32, #weft.axes<batch, pos>>
!step = tensor<2x1x3x64xf32, #weft.axes<batch, pos, frozen, head>>
!steprows = tensor<2x1x3xf32, #weft.axes<batch, pos, frozen>>
!narrow = tensor<2x96x3x8xf32, #weft.axes<batch, pos, kv, head>>
!narrowout = tensor<2x96x3x8xf32, #weft.axes<batch, pos, frozen, head>>

// CHECK-LABEL: func.func @training
// CHECK: %[[AHEAD:.*]], %[[BACK:.*]], %[[A:.*]], %[[Z:.*]], %[[LOGS:.*]] = weft.mix_table %arg1, %arg2 windows %arg3 :
// CHECK-NOT: weft.mix_table
// CHECK: %[[SCALED:.*]] = weft.mix_scale %arg0, %[[A]] documents %arg4 kv_of %arg5 :
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = weft.mix_product %[[SCALED]], %[[AHEAD]], %[[Z]] windows %arg3 documents %arg4 lse %[[LOGS]] :
// CHECK: %[[SLOPES:.*]] = weft.mix_scale %[[OUT]], %[[Z]] documents %arg4 :
// CHECK: %[[DV:.*]] = weft.mix_product back %[[SLOPES]], %[[BACK]], %[[A]] windows %arg3 documents %arg4 kv_of %arg5 :
// CHECK: return %[[DV]], %[[LSE]]
// PLAIN-LABEL: func.func @training
// PLAIN: weft.mix %
// PLAIN: weft.mix_grad_value
func.func @training(%v: !kv, %a: !pattern, %r: !pattern, %w: !list, %d: !places, %k: !list) -> (!kv, !rows) {
  %out, %lse = weft.mix %v, %a, %r windows %w documents %d kv_of %k : (!kv, !pattern, !pattern, !list, !places, !list) -> (!out, !rows)
  %dv = weft.mix_grad_value %a, %r windows %w documents %d, %lse, %out kv_of %k : (!pattern, !pattern, !list, !places, !rows, !out, !list) -> !kv
  return %dv, %lse : !kv, !rows
}

// One query a row reads a cache: left as it is, and so is a head of another size.
// CHECK-LABEL: func.func @decode
// CHECK: weft.mix %
// CHECK-LABEL: func.func @small
// CHECK: weft.mix %
func.func @decode(%v: !cache, %a: !pattern, %w: !list, %d: !one, %o: tensor<i32>) -> !step {
  %out, %lse = weft.mix %v, %a, %a windows %w documents %d offset %o : (!cache, !pattern, !pattern, !list, !one, tensor<i32>) -> (!step, !steprows)
  return %out : !step
}
func.func @small(%v: !narrow, %a: !pattern, %w: !list, %d: !places) -> !narrowout {
  %out, %lse = weft.mix %v, %a, %a windows %w documents %d : (!narrow, !pattern, !pattern, !list, !places) -> (!narrowout, !rows)
  return %out : !narrowout
}

// First places behind the windows: two tables a head.
!twice = tensor<6xi32>
// CHECK-LABEL: func.func @firstPlaces
// CHECK: weft.mix_table %arg1, %arg1 windows %arg2 : {{.*}} -> (tensor<3x10112xf32, #weft.axes<frozen, cell>>,
// CHECK: weft.mix_product %{{.*}} windows %arg2 documents %arg3 : ({{.*}}tensor<6xi32>
func.func @firstPlaces(%v: !kv, %a: !pattern, %w: !twice, %d: !places, %k: !list) -> !out {
  %out, %lse = weft.mix %v, %a, %a windows %w documents %d kv_of %k : (!kv, !pattern, !pattern, !twice, !places, !list) -> (!out, !rows)
  return %out : !out
}
