"""A few steps of several models under each policy: checkpoints are equal byte for byte.

usage: memory_bits.py MODELS TEXT OUT

Catches a value that is made again from another one, or by other arithmetic; a mask
of dropout drawn anew; micro-batches that add to what an earlier one left.
"""
import json
import os
import re
import subprocess
import sys

models, text, out = map(os.path.abspath, sys.argv[1:])

SAN = {"vocab": 256, "dim": 32, "head": 8, "depth": 3}
QWEN = {"vocab": 256, "dim": 32, "heads": 4, "kv": 2, "head": 8, "hidden": 48, "depth": 3}
PLANS = """
plan frozen for nano { freeze 25% of block[..].attn.heads[..] at step 2 { tolerance = none, calibrate = 16 rows } }
plan adaptive for nano { windows adaptive [8, 16, full] { every = 2 steps } }
plan dropped for nano { drop block[0].ffn }
"""
DROPOUT = """
model dropout(vocab = 256, context = 64, dim = 32, depth = 3, heads = 2, head = dim / heads, hidden = 2 * dim) {
  input tokens, targets : int[batch, pos]
  param embed : [vocab, dim] init normal(0.02)
  param place : [context, dim] init normal(0.02)
  x = dropout(embed[tokens] + place[position], 0.1)
  layer block[depth] {
    x += branch attn {
      param gain, shift : [dim] init 1
      param wq, wk, wv : [dim, heads, head] init normal(0.1)
      param wo : [heads, head, dim] init normal(0.1)
      h = layer_norm(x) * gain + shift
      dropout(attend(h @ wq, h @ wk, h @ wv) @ wo, 0.1)
    }
    x += branch ffn {
      param gain : [dim] init 1
      param up : [dim, hidden] init normal(0.1)
      param bias : [hidden] init 0
      param down : [hidden, dim] init normal(0.1)
      dropout(gelu((layer_norm(x) * gain) @ up + bias) @ down, 0.1)
    }
  }
  output logits = layer_norm(x) @ embed
  loss = cross_entropy(logits, targets)
}
"""
RECIPE = """
train steps for NAME {
  data = "x"
  tokenizer = bytes
  documents = joined
  batch = 4 x 32 in 2
  steps = 5
  optimizer = adamw(lr = 1e-2)
  clip = 1.0
}
"""


def train(name, path, policy, sets, plan=""):
    run = f"{out}/{name}-{policy}"
    sets = {"data": text, "held_out": "none", "steps": 5, "batch": "4 x 32 in 2", **sets}
    command = ["weft", "train", path, "--memory", policy, "--out", run]
    command += [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    command += ["--plan", plan] if plan else []
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (name, policy, done.stderr[-2000:])
    step = f"{run}/checkpoints/step-00000005"
    files = [open(f"{step}/{file}", "rb").read() for file in ("model.safetensors", "state.safetensors")]
    losses = [line["loss"] for line in map(json.loads, open(f"{run}/log.jsonl")) if "loss" in line]
    arena = re.search(r"arena ([0-9.]+) (\w+), memory (\w+)", done.stdout)
    assert arena and arena[3] == policy, done.stdout
    return files, losses, done.stdout


def alike(name, path, sets, plan=""):
    runs = {policy: train(name, path, policy, sets, plan) for policy in ("fast", "lean", "tight")}
    for policy, (files, losses, _) in runs.items():
        assert losses and losses == runs["fast"][1], (name, policy, losses, runs["fast"][1])
        assert files == runs["fast"][0], (name, policy, "checkpoints differ")
    print(f"{name}: {len(runs)} policies alike")


os.makedirs(out, exist_ok=True)
with open(f"{out}/plans.weft", "w") as file:
    file.write(PLANS)
with open(f"{out}/dropout.weft", "w") as file:
    file.write(DROPOUT + RECIPE.replace("NAME", "dropout"))
with open(f"{out}/qwen3.weft", "w") as file:
    file.write(open(f"{models}/qwen3.weft").read() + RECIPE.replace("NAME", "qwen3"))
NANO = f"{models}/nano.weft"
alike("nano", NANO, {"depth": 3})
alike("qwen3", f"{out}/qwen3.weft", QWEN)
alike("san", f"{models}/san.weft", {**SAN, "tokenizer": "bytes"})
alike("dropout", f"{out}/dropout.weft", {})
alike("frozen", NANO, {"heads": 4}, f"{out}/plans.weft:frozen")
alike("dropped", NANO, {"depth": 3}, f"{out}/plans.weft:dropped")
alike("adaptive", NANO, {"heads": 4, "batch": "4 x 32"}, f"{out}/plans.weft:adaptive")
