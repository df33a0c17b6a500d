"""Runs lowered tile kernels in ptx_emulator.py against NumPy.

  emulate_test.py TILE_TO_PTX

Catches, each tried: leading and stride offset swapped, a k-step of half the size,
two parts of ldmatrix swapped, halves of a pair swapped, a wrong count of arrivals.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

from ptx_emulator import Map, from_bf16, launch, to_bf16

HERE = os.path.dirname(os.path.abspath(__file__))
RANDOM = np.random.default_rng(5)


def normal(*shape):
    return to_bf16(RANDOM.standard_normal(shape).astype(np.float32))


def ptx(tool, name, chip):
    file = name if name.endswith(".mlir") else os.path.join(HERE, "Inputs", name + ".mlir")
    done = subprocess.run([tool, file, chip], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    return done.stdout


def check(name, got, expected, bound):
    error = np.linalg.norm(np.float64(got) - expected) / np.linalg.norm(expected)
    print(f"{name}: relative error {error:.2e}")
    if not error < bound:
        sys.exit(f"{name}: expected at most {bound}")


def product(tool):
    a, b = normal(64, 64), normal(128, 64)
    d = np.full((64, 128), np.nan, np.float32)
    launch(ptx(tool, "product", "sm_90a"), [d, Map(a, [64, 64], 128), Map(b, [64, 128], 128)], 128)
    check("product", d, np.float64(from_bf16(a)) @ from_bf16(b).T, 1e-6)


def wide(tool):
    """Each element once, none behind the last row. Catches: threads of a quad that swap other registers."""
    x = to_bf16(np.arange(64 * 96, dtype=np.float32).reshape(64, 96) % 251)
    y = np.full((64, 96), 0xFFFF, np.uint16)
    launch(ptx(tool, "wide", "sm_90a"), [y, x], 128)
    expected = np.concatenate([x[:, 64:], x[:, :64]], axis=1)
    if not (y[:61] == expected[:61]).all() or not (y[61:] == 0xFFFF).all():
        sys.exit(f"wide: rows of other numbers: {y[:2]}, expected {expected[:2]}")
    print("wide: every element in its place")


def product80(tool):
    a, b = normal(64, 64), normal(64, 32)
    d = np.full((64, 32), 0xFFFF, np.uint16)
    launch(ptx(tool, "product80", "sm_80"), [d, a, b], 128)
    check("product80", from_bf16(d), np.float64(from_bf16(a)) @ from_bf16(b), 3e-3)


def attention(tool):
    ctas, keys = 2, 1024
    q, k, v = normal(64 * ctas, 64), normal(keys, 64), normal(keys, 64)
    o, lse = np.full((64 * ctas, 64), 0xFFFF, np.uint16), np.full(64 * ctas, np.nan, np.float32)
    maps = [Map(q, [64, 64], 128), Map(k, [64, 128], 128), Map(v, [64, 128], 128)]
    launch(ptx(tool, "attention", "sm_90a"), [o, lse, *maps], 256, ctas)
    q, k, v = (np.float64(from_bf16(x)) for x in (q, k, v))
    scores = q @ k.T
    top = scores.max(1, keepdims=True)
    weights = np.exp2((scores - top) * np.float32(0.18))
    check("attention", from_bf16(o), weights / weights.sum(1, keepdims=True) @ v, 6e-3)
    check("log-sums", lse, top[:, 0] + np.log(weights.sum(1)), 1e-6)


LAYOUT = """
tile.kernel @layout(%d: !tile.global<f32>, %a: !tile.map, %b: !tile.map) threads 128 shared 65536 items 1 {{
  %left = tile.alloc : !tile.smem<1x128x64xbf16{a}>
  %right = tile.alloc : !tile.smem<2x{rows}x{columns}xbf16{b}>
  %full = tile.barriers : !tile.barriers<2>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %offset = arith.constant 0 : i64
  %stride = arith.constant {n} : i64
  %one_left = tile.stage %left[%c0] : !tile.smem<1x128x64xbf16{a}> -> !tile.smem<1x128x64xbf16{a}>
  %one_right = tile.stage %right[%c1] : !tile.smem<2x{rows}x{columns}xbf16{b}> -> !tile.smem<1x{rows}x{columns}xbf16{b}>
  tile.elect cta {{
    tile.init_barrier %full[%c1] count 1 : !tile.barriers<2>
    tile.fence_init
    tile.expect %full[%c1] bytes {bytes} : !tile.barriers<2>
{loads}
  }}
  tile.sync %c0 threads 128
  tile.wait %full[%c1] parity %c0 : !tile.barriers<2>
  %lower = tile.slice %one_left[%c64] : !tile.smem<1x128x64xbf16{a}> -> !tile.smem<1x64x64xbf16{s}>
{left}
  tile.fence_products
  %sum = tile.product {operand}, %one_right{trans} : {type}, !tile.smem<1x{rows}x{columns}xbf16{b}> -> !tile.frag<64x{n}xf32>
  tile.commit_products
  %done{more} = tile.wait_products 0 (%sum{held}) : !tile.frag<64x{n}xf32>{heldtype} -> !tile.frag<64x{n}xf32>{heldtype}
  tile.store_frag %done, %d[%offset] stride %stride rows %c64 : !tile.frag<64x{n}xf32>, !tile.global<f32>
  tile.return
}}
"""


def layout(tool, swizzle, trans, registers):
    """The lower 64 of 128 rows times a tile in the second stage of a ring, with panels as the swizzle wants them."""
    n, width = 128, (swizzle or 16) // 2
    rows, columns = (64, n) if trans else (n, 64)

    def attributes(rows, columns, pitch=0):
        text = f", swizzle {swizzle}" if swizzle else ""
        text += f", panels {columns // width}" if columns != width else ""
        return text + (f", pitch {pitch}" if pitch else "")

    loads = ""
    for name, tile, height, across in (("a", "%one_left", 128, 64), ("b", "%one_right", rows, columns)):
        whole = f"!tile.smem<1x{height}x{across}xbf16{attributes(height, across)}>"
        panel = f"!tile.smem<1x{height}x{width}xbf16{attributes(height, width)}>"
        for p in range(across // width):
            loads += f"    %{name}{p} = tile.panel {tile} at {p} : {whole} -> {panel}\n"
            loads += f"    %x{name}{p} = arith.constant {p * width} : i32\n"
            loads += (f"    tile.load_tile %{name}[%x{name}{p}, %c0] to %{name}{p} barrier %full[%c1] : "
                      f"{panel}, !tile.barriers<2>\n")
    part = f"!tile.smem<1x64x64xbf16{attributes(64, 64, 128)}>"
    fragment = "!tile.frag<64x64xbf16>"
    text = LAYOUT.format(a=attributes(128, 64), b=attributes(rows, columns), s=attributes(64, 64, 128), rows=rows,
                         columns=columns, n=n, bytes=2 * 64 * (128 + n), loads=loads,
                         left=f"  %part = tile.read_frag %lower : {part} -> {fragment}" if registers else "",
                         operand="%part" if registers else "%lower", type=fragment if registers else part,
                         trans=" trans_b" if trans else "", more=":2" if registers else "",
                         held=", %part" if registers else "", heldtype=f", {fragment}" if registers else "")
    text = text.replace("%done, %d", "%done#0, %d") if registers else text
    a, b = normal(128, 64), normal(rows, columns)
    d = np.full((64, n), np.nan, np.float32)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        launch(ptx(tool, file.name, "sm_90a"), [d, Map(a, [width, 128], swizzle), Map(b, [width, rows], swizzle)], 128)
    right = np.float64(from_bf16(b))
    expected = np.float64(from_bf16(a))[64:] @ (right if trans else right.T)
    check(f"swizzle {swizzle}, trans_b {trans}, registers {registers}", d, expected, 1e-6)


HANKEL = """
tile.kernel @hankel(%d: !tile.global<f32>, %t: !tile.global<bf16>, %b: !tile.map) threads 128 shared 65536 items 1 {
  %blocks = tile.alloc : !tile.smem<2x168x8xbf16>
  %right = tile.alloc : !tile.smem<1x64x128xbf16, swizzle 128, panels 2>
  %full = tile.barriers : !tile.barriers<1>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c10 = arith.constant 10 : i32
  %c40 = arith.constant 40 : i32
  %c64 = arith.constant 64 : i32
  %from = arith.constant 64 : i64
  %last = arith.constant 8064 : i64
  %stride = arith.constant -128 : i64
  %table = tile.stage %blocks[%c1] : !tile.smem<2x168x8xbf16> -> !tile.smem<1x168x8xbf16>
  %values = tile.stage %right[%c0] : !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x128xbf16, swizzle 128, panels 2>
  %first = tile.panel %values at 0 : !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x64xbf16, swizzle 128>
  %second = tile.panel %values at 1 : !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.smem<1x64x64xbf16, swizzle 128>
  tile.elect cta {
    tile.init_barrier %full[%c0] count 1 : !tile.barriers<1>
    tile.fence_init
    tile.expect %full[%c0] bytes 19072 : !tile.barriers<1>
    tile.load_bulk %t[%from] to %table barrier %full[%c0] : !tile.global<bf16>, !tile.smem<1x168x8xbf16>, !tile.barriers<1>
    tile.load_tile %b[%c0, %c0] to %first barrier %full[%c0] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<1>
    tile.load_tile %b[%c64, %c0] to %second barrier %full[%c0] : !tile.smem<1x64x64xbf16, swizzle 128>, !tile.barriers<1>
  }
  tile.sync %c0 threads 128
  tile.wait %full[%c0] parity %c0 : !tile.barriers<1>
  %left = tile.hankel %table[%c40] : !tile.smem<1x168x8xbf16> -> !tile.smem<1x64x64xbf16, panels 8, pitch 8>
  tile.fence_products
  %sum = tile.product %left, %values trans_b : !tile.smem<1x64x64xbf16, panels 8, pitch 8>, !tile.smem<1x64x128xbf16, swizzle 128, panels 2> -> !tile.frag<64x128xf32>
  tile.commit_products
  %done = tile.wait_products 0 (%sum) : !tile.frag<64x128xf32> -> !tile.frag<64x128xf32>
  tile.store_frag %done, %d[%last] stride %stride rows %c10 tail : !tile.frag<64x128xf32>, !tile.global<f32>
  tile.return
}
"""


def hankel(tool):
    """Row 63 - r of the result is sum over c of h[r + c] b[c], for r from 10 on; blocks from the second on, of
    which those from the sixth on are read."""
    numbers = RANDOM.standard_normal(300).astype(np.float32)
    place = 8 * np.arange(30)[:, None, None] + np.arange(8)[:, None] + np.arange(8)
    table, b = to_bf16(numbers[place]), normal(64, 128)
    d = np.full((64, 128), np.nan, np.float32)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(HANKEL)
        file.flush()
        launch(ptx(tool, file.name, "sm_90a"), [d, table, Map(b, [64, 64], 128)], 128)
    h = np.float64(from_bf16(to_bf16(numbers)))[8 * (1 + 5):]
    expected = h[np.arange(64)[:, None] + np.arange(64)] @ np.float64(from_bf16(b))
    check("hankel", d[53::-1], expected[10:], 1e-6)
    if not np.isnan(d[54:]).all():
        sys.exit("hankel: rows before the limit were stored")


if __name__ == "__main__":
    for case in (product, wide, product80, attention, hankel):
        case(sys.argv[1])
    for case in ((128, False, False), (128, True, True), (64, False, True), (64, True, False), (32, False, False),
                 (32, True, False), (0, False, False), (0, True, False)):
        layout(sys.argv[1], *case)
