// y = softcap(x), where softcap is a user's own device function.
tile.kernel @capped(%y: !tile.global<bf16>, %x: !tile.global<bf16>) threads 128 shared 0 items 1 {
  %offset = arith.constant 0 : i64
  %stride = arith.constant 64 : i64
  %rows = arith.constant 64 : i32
  %in = tile.load_frag %x[%offset] stride %stride rows %rows : !tile.global<bf16> -> !tile.frag<64x64xf32>
  %out = tile.map (%in : !tile.frag<64x64xf32>) {
  ^bb0(%v: f32):
    %c = tile.call @softcap(%v) : (f32) -> f32
    tile.yield %c : f32
  } -> !tile.frag<64x64xf32>
  tile.store_frag %out, %y[%offset] stride %stride rows %rows : !tile.frag<64x64xf32>, !tile.global<bf16>
  tile.return
}
