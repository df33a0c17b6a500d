#!/usr/bin/python3
"""models/tiny.weft and its recipe in PyTorch: what loss should Weft reach?

    tiny_torch.py START.safetensors [--threads 2] [--steps 600]

START comes from `weft params models/tiny.weft --dump START.safetensors --seed 1`.
Rows are drawn in another order than Weft's, so losses agree to about 0.02.
Prints the loss over every byte of Persuasion.
"""
import argparse
import glob
import math
import os
import random
import struct
import time
import zlib

import numpy as np
import torch
import torch.nn.functional as F

from reference import read_safetensors

DIM, DEPTH, HEADS, HEAD, LENGTH, ROWS = 128, 5, 4, 32, 256, 8


def novels():
    """Texts of the six novels in file order, from R's lazy-load data."""
    home = os.environ.get("WEFT_DATA_DIR") or os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "weft")
    (path,) = glob.glob(os.path.join(home, "**", "Rdata.rdb"), recursive=True)
    data, place, texts = open(path, "rb").read(), 0, []
    while place < len(data):
        stream = zlib.decompressobj()
        raw = stream.decompress(data[place + 4 :])
        place = len(data) - len(stream.unused_data)
        version, at = struct.unpack_from(">i", raw, 2)[0], 14
        if version == 3:
            at += 4 + struct.unpack_from(">i", raw, at)[0]
        flags, count = struct.unpack_from(">ii", raw, at)
        at += 8
        if flags & 255 != 16:
            continue
        lines = []
        for _ in range(count):
            size = struct.unpack_from(">ii", raw, at)[1]
            at += 8
            lines.append(raw[at : at + max(size, 0)])
            at += max(size, 0)
        texts.append(b"\n".join(lines) + b"\n")
    return texts


def rms(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def loss_of(p, tokens, targets, reduction="mean"):
    rows, length = tokens.shape
    angle = torch.arange(length)[:, None] * 1e4 ** (-torch.arange(HEAD // 2) / (HEAD // 2))
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    mask = torch.full((length, length), float("-inf")).triu(1)
    x = p["embed"][tokens]
    for i in range(DEPTH):
        a, f = f"block.{i}.attn.", f"block.{i}.ffn."
        h = rms(x) * p[a + "gain"]
        q, k, v = ((h @ p[a + n].reshape(DIM, -1)).view(rows, length, HEADS, HEAD) for n in ("wq", "wk", "wv"))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        s = (q.transpose(1, 2) @ k.permute(0, 2, 3, 1)) * HEAD**-0.5 + mask
        o = (s.softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).reshape(rows, length, -1)
        x = x + o @ p[a + "wo"].reshape(-1, DIM)
        h = rms(x) * p[f + "gain"]
        x = x + F.gelu(h @ p[f + "up"]) @ p[f + "down"]
    logits = (rms(x) * p["final_gain"]) @ p["embed"].T
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction=reduction)


def evaluate(p, stream):
    count = (len(stream) - 1 + LENGTH - 1) // LENGTH
    padded = np.full(count * LENGTH + 1, -1, np.int64)
    padded[: len(stream)] = stream
    tokens = torch.from_numpy(np.maximum(padded[:-1], 0).reshape(count, LENGTH))
    targets = torch.from_numpy(padded[1:].reshape(count, LENGTH))
    with torch.no_grad():
        total = sum(loss_of(p, tokens[i : i + 32], targets[i : i + 32], "sum").item() for i in range(0, count, 32))
    return total / (len(stream) - 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("start")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    p = {name: torch.tensor(value, dtype=torch.float32, requires_grad=True) for name, value in read_safetensors(args.start).items()}
    texts = novels()
    (held,) = (text for text in texts if text.lstrip().upper().startswith(b"PERSUASION"))
    stream = np.frombuffer(b"".join(text for text in texts if text is not held), np.uint8).astype(np.int64)
    groups = [dict(params=[v for v in p.values() if v.ndim > 1], weight_decay=0.1),
              dict(params=[v for v in p.values() if v.ndim == 1], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-8)
    order, start = list(range((len(stream) - 1) // LENGTH)), time.time()
    random.Random(1).shuffle(order)
    for step in range(1, args.steps + 1):
        # Warm-up over 20 steps, then a cosine down to 5%.
        share = min(1.0, max(0.0, (step - 20) / (args.steps - 20)))
        rate = 3e-3 * (step / 20 if step < 20 else 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * share)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        rows = [stream[i * LENGTH : i * LENGTH + LENGTH + 1] for i in order[(step - 1) * ROWS : step * ROWS]]
        batch = torch.from_numpy(np.stack(rows))
        loss = loss_of(p, batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, {step * ROWS * LENGTH / (time.time() - start):.0f} tokens/s", flush=True)
    print(f"held out: loss {evaluate(p, np.frombuffer(held, np.uint8).astype(np.int64)):.4f} over {len(held) - 1:,} targets")


if __name__ == "__main__":
    main()
