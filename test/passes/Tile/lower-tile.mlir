// RUN: weft-opt --weft-lower-tile %s | FileCheck %s
// RUN: weft-opt --weft-lower-tile %s | FileCheck %s --check-prefix=ITEMS
// RUN: weft-opt --weft-lower-tile %S/Inputs/product.mlir | FileCheck %s --check-prefix=PRODUCT
// RUN: env WEFT_CUDA_JITTER=5 weft-opt --weft-lower-tile %S/Inputs/product.mlir | FileCheck %s --check-prefix=JITTER
// RUN: weft-opt --weft-lower-tile=chip=sm_80 %S/Inputs/product80.mlir | FileCheck %s --check-prefix=OLD
// RUN: not weft-opt --weft-lower-tile=chip=sm_80 %S/Inputs/product.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED

// A thread has two rows; the quad of a row joins its parts over distances 1 and 2.
// CHECK-LABEL: llvm.func @rows
// CHECK-SAME: attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>}
// CHECK-COUNT-2: ld.global.b32
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK: llvm.store
// CHECK: llvm.store
tile.kernel @rows(%x: !tile.global<f32>, %y: !tile.global<f32>) threads 128 shared 0 items 1 {
  %offset = arith.constant 0 : i64
  %stride = arith.constant 3000000000 : i64
  %limit = arith.constant 50 : i32
  %rows = tile.load_rows %x[%offset] stride %stride rows %limit : !tile.global<f32> -> !tile.rows<64xf32>
  %sum = tile.quad add %rows : !tile.rows<64xf32> -> !tile.rows<64xf32>
  tile.store_rows %sum, %y[%offset] stride %stride rows %limit : !tile.rows<64xf32>, !tile.global<f32>
  tile.return
}

// The counter is the module's own and starts at 0; behind the largest number of a launch, items + CTAs - 1,
// it wraps. Catches an atomic that only one block of threads sees (no "device"), and a number of items off by 1.
// ITEMS: llvm.mlir.global internal @next_item_items(0 : i32) {addr_space = 1 : i32, alignment = 4 : i64} : i32
// ITEMS-LABEL: llvm.func @items
// ITEMS-DAG: %[[ELEVEN:.*]] = llvm.mlir.constant(11 : i32)
// ITEMS-DAG: %[[CTAS:.*]] = nvvm.read.ptx.sreg.nctaid.x
// ITEMS: %[[LARGEST:.*]] = llvm.add %[[CTAS]], %[[ELEVEN]]
// ITEMS: %[[COUNTER:.*]] = llvm.mlir.addressof @next_item_items
// ITEMS: %[[NUMBER:.*]] = llvm.atomicrmw uinc_wrap %[[COUNTER]], %[[LARGEST]] syncscope("device") monotonic
// ITEMS: st.shared.b32 {{.*}}%[[NUMBER]]
// ITEMS: @first ld.shared.b32
// ITEMS: nvvm.shfl.sync {{.*}}idx
tile.kernel @items(%x: !tile.global<i32>) threads 128 shared 1024 items 12 {
  %c0 = arith.constant 0 : i32
  %o = arith.constant 0 : i64
  %cells = tile.cells : !tile.cells<1>
  tile.elect {
    %number = tile.next_item
    tile.write %number, %cells[%c0] : !tile.cells<1>
  }
  tile.sync %c0 threads 128
  %told = tile.read %cells[%c0] : !tile.cells<1>
  tile.store %told, %x[%o] : i32, !tile.global<i32>
  tile.return
}

// PRODUCT-LABEL: llvm.func @product
// PRODUCT-SAME: llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant
// PRODUCT: fence.mbarrier_init
// PRODUCT: mbarrier.arrive.expect_tx
// PRODUCT-COUNT-2: cp.async.bulk.tensor.2d
// PRODUCT-NOT: nanosleep
// PRODUCT: mbarrier.try_wait.parity
// JITTER: xor.b32 pause, pause, 5; {{.*}}nanosleep.u32 pause; {{.*}}mbarrier.try_wait.parity
// PRODUCT: wgmma.fence
// The first adds to nothing, the others to its registers.
// PRODUCT: setp.ne.b32 adds, 0, 0
// PRODUCT-COUNT-3: setp.ne.b32 adds, 1, 0
// PRODUCT: wgmma.commit_group
// PRODUCT: wgmma.wait_group.sync.aligned 0;{{.*}}=f{{.*}},0,1,2,
// PRODUCT-NOT: tile.

// OLD-LABEL: llvm.func @product80
// OLD-COUNT-6: cp.async.cg.shared.global
// OLD: cp.async.wait_group 0
// OLD-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.shared
// OLD: ldmatrix.sync.aligned.m8n8.x4.trans
// OLD-COUNT-16: mma.sync.aligned.m16n8k16

// REFUSED: 'tile.init_barrier' op needs sm_90a, but the target is sm_80
