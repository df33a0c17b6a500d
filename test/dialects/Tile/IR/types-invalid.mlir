// RUN: weft-opt %s --split-input-file --verify-diagnostics

// Each type breaks one rule.

// Elements.
// expected-error@+1 {{expects elements of bf16 or f32 in shared memory}}
func.func private @type(!tile.smem<1x64x64xf16>)

// -----

// A ring without stages.
// expected-error@+1 {{expects at least one stage, row, column and panel}}
func.func private @type(!tile.smem<0x64x64xbf16>)

// -----

// Panels.
// expected-error@+1 {{expects panels that divide the columns}}
func.func private @type(!tile.smem<1x64x64xbf16, panels 3>)

// -----

// Pitch.
// expected-error@+1 {{expects a pitch of at least the rows, 64, but got 32}}
func.func private @type(!tile.smem<1x64x64xbf16, pitch 32>)

// -----

// Swizzle.
// expected-error@+1 {{expects a swizzle of 0, 32, 64 or 128 bytes, but got 48}}
func.func private @type(!tile.smem<1x64x64xbf16, swizzle 48>)

// -----

// Width of a swizzle.
// expected-error@+1 {{expects a panel's row as wide as the swizzle of 128 bytes, but got 256 bytes}}
func.func private @type(!tile.smem<1x64x128xbf16, swizzle 128>)

// -----

// Rows of a swizzle.
// expected-error@+1 {{expects a multiple of 8 rows under a swizzle}}
func.func private @type(!tile.smem<1x60x64xbf16, swizzle 128>)

// -----

// Words.
// expected-error@+1 {{expects `swizzle`, `panels` or `pitch`, but got `turns`}}
func.func private @type(!tile.smem<1x64x64xbf16, turns 2>)

// -----

// Sizes.
// expected-error@+1 {{expects 3 sizes, but got 2}}
func.func private @type(!tile.smem<64x64xbf16>)

// -----

// Rows.
// expected-error@+1 {{expects a fragment of 64 rows, but got 32}}
func.func private @type(!tile.frag<32x64xf32>)

// -----

// Columns.
// expected-error@+1 {{expects a multiple of 8 columns, at most 256, but got 264}}
func.func private @type(!tile.frag<64x264xf32>)

// -----

// Columns of packed pairs.
// expected-error@+1 {{expects a multiple of 16 columns}}
func.func private @type(!tile.frag<64x24xbf16>)

// -----

// Elements of a fragment.
// expected-error@+1 {{expects a fragment of bf16 or f32}}
func.func private @type(!tile.frag<64x16xi32>)

// -----

// Rows.
// expected-error@+1 {{expects 64 rows, but got 32}}
func.func private @type(!tile.rows<32xf32>)

// -----

// Values.
// expected-error@+1 {{expects values of f32 or i32}}
func.func private @type(!tile.rows<64xbf16>)

// -----

// Columns.
// expected-error@+1 {{expects a multiple of 8 columns}}
func.func private @type(!tile.cols<12xf32>)

// -----

// Barriers.
// expected-error@+1 {{expects 1 to 128 barriers}}
func.func private @type(!tile.barriers<0>)

// -----

// Cells.
// expected-error@+1 {{expects 1 to 256 cells}}
func.func private @type(!tile.cells<257>)

// -----

// Globals.
// expected-error@+1 {{expects elements of bf16, f32 or i32}}
func.func private @type(!tile.global<f64>)
