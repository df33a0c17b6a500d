// D = A B on sm_80: A is 64 x 64, B is 64 x 32 with n contiguous; D in bf16.
!a = !tile.smem<1x64x64xbf16, swizzle 128>
!b = !tile.smem<1x64x32xbf16, swizzle 64>
tile.kernel @product80(%d: !tile.global<bf16>, %x: !tile.global<bf16>, %y: !tile.global<bf16>) threads 128 shared 65536 items 1 {
  %left = tile.alloc : !a
  %right = tile.alloc : !b
  %zero = arith.constant 0 : i32
  %rows = arith.constant 64 : i32
  %offset = arith.constant 0 : i64
  %wide = arith.constant 64 : i64
  %narrow = arith.constant 32 : i64
  tile.copy_async %x[%offset] stride %wide rows %rows to %left : !tile.global<bf16>, !a
  tile.copy_async %y[%offset] stride %narrow rows %rows to %right : !tile.global<bf16>, !b
  tile.copy_commit
  tile.copy_wait 0
  tile.sync %zero threads 128
  %part = tile.read_frag %left : !a -> !tile.frag<64x64xbf16>
  %sum = tile.product_sync %part, %right trans_b : !tile.frag<64x64xbf16>, !b -> !tile.frag<64x32xf32>
  tile.store_frag %sum, %d[%offset] stride %narrow rows %rows : !tile.frag<64x32xf32>, !tile.global<bf16>
  tile.return
}
