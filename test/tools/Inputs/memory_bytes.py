"""Bytes of the arena under each policy, beside what the model's text says is alive.

usage: memory_bytes.py MODELS

The model is `peer` (no RoPE, layer norms, exact GELU), f32. u = rows x positions x dim
x 4 bytes. Per layer a gradient reads

  fast: x, norm, h (norm with gain and shift), q, k, v, attention's output,
        x after it, its norm, h, up (4 u), gelu (4 u)       = 10 u + 8 u
  lean: x, q, k, v, output, x after it, up                  =  6 u + 4 u
  tight: x, output                                          =  2 u

and log-sums, which are 1 / head of u. A layer more must cost that, to a kilobyte: what
is alive once (the loss, one layer's gradients) is alive in both. For a GPU, model
`gpt_rope`, u in bf16, where norms are made again anyway and weights are rounded: 16 u and
the layer's 12 dim^2 weights under `fast`. Catches values that are made again and kept,
and chains that live too long.
"""
import json
import re
import subprocess
import sys

models, = sys.argv[1:]
ROWS, POSITIONS, DIM, HEADS = 2, 64, 128, 4
u = ROWS * POSITIONS * DIM * 4
log_sums = ROWS * POSITIONS * HEADS * 4
PER_LAYER = {"fast": 18 * u + log_sums, "lean": 10 * u + log_sums, "tight": 2 * u + log_sums}


def arenas(depth):
    command = ["weft", "bench", f"{models}/peer.weft", "--batch", str(ROWS), "--positions", str(POSITIONS),
               "--set", f"depth={depth}", "--steps", "1", "--memory", "all", "--json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["policies"]
    return {row["policy"]: row for row in rows}


few, many = arenas(4), arenas(8)
for policy, expected in PER_LAYER.items():
    found = (many[policy]["arena_bytes"] - few[policy]["arena_bytes"]) / 4
    assert abs(found - expected) <= 1024, (policy, found / u, expected / u)
# Products of `tight`, a layer: q, k, v (6), output (2) and up (8) x tokens x dim^2.
flops = (many["tight"]["again_product_flops"] - few["tight"]["again_product_flops"]) / 4
tokens = ROWS * POSITIONS
assert flops == 16 * tokens * DIM * DIM, (flops, 16 * tokens * DIM * DIM)
assert many["lean"]["again_product_flops"] == 0 == many["fast"]["again_bytes"]

def gpu_arena(depth, policy):
    command = ["weft", "compile", f"{models}/gpt_rope.weft", "--target", "sm_90a", "--program", "micro,update",
               "--batch", "4", "--positions", "256", "--memory", policy, "--emit", "schedule"]
    for name, value in {"depth": depth, "dim": DIM, "heads": 2, "vocab": 512, "context": 256, "tokenizer": "bytes"}.items():
        command += ["--set", f"{name}={value}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return max(int(bytes) for bytes in re.findall(r"arena (\d+)", text))


u, log_sums = 4 * 256 * DIM * 2, 4 * 256 * 2 * 4
for policy, expected in {"fast": 16 * u + 12 * DIM * DIM * 2, "lean": 10 * u, "tight": 2 * u}.items():
    found = (gpu_arena(8, policy) - gpu_arena(4, policy)) / 4
    assert abs(found - expected - log_sums) <= 1024, (policy, found / u, expected / u)
print("arenas as counted")
