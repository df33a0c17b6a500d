// Rows of 96 elements: columns 64 to 95 to the first 32, and 0 to 63 behind them.
tile.kernel @wide(%y: !tile.global<bf16>, %x: !tile.global<bf16>) threads 128 shared 0 items 1 {
  %zero = arith.constant 0 : i64
  %behind = arith.constant 32 : i64
  %stride = arith.constant 96 : i64
  %limit = arith.constant 61 : i32
  %all = tile.load_frag %x[%zero] stride %stride rows %limit wide : !tile.global<bf16> -> !tile.frag<64x96xbf16>
  %last = tile.columns %all from 64 : !tile.frag<64x96xbf16> -> !tile.frag<64x32xbf16>
  %first = tile.columns %all from 0 : !tile.frag<64x96xbf16> -> !tile.frag<64x64xbf16>
  %f = tile.cast %first : !tile.frag<64x64xbf16> -> !tile.frag<64x64xf32>
  tile.store_frag %last, %y[%zero] stride %stride rows %limit wide : !tile.frag<64x32xbf16>, !tile.global<bf16>
  tile.store_frag %f, %y[%behind] stride %stride rows %limit wide : !tile.frag<64x64xf32>, !tile.global<bf16>
  tile.return
}
