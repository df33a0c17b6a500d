#!/usr/bin/python3
"""models/tiny.weft and its recipe in PyTorch: what loss should Weft reach?

    tiny_torch.py START.safetensors [--threads 2] [--steps 600]

START comes from `weft params models/tiny.weft --dump START.safetensors --seed 1`.
Rows come in the order of Weft's documentation (runtime/data/Batches.h), worked out
anew here, so that losses agree step by step until rounding parts them.
Prints the loss over every byte of Persuasion.
"""
import argparse
import glob
import math
import os
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


def philox_bits(seed, stream, index):
    """First 64 bits of a block of Philox4x32-10 (Salmon et al., SC 2011)."""
    h = 0xCBF29CE484222325
    for c in stream.encode():
        h = (h ^ c) * 0x100000001B3 % 2**64
    low, high = (lambda v: v & 0xFFFFFFFF), (lambda v: v >> 32)
    c, k = [low(index), high(index), low(h), high(h)], [low(seed), high(seed)]
    for _ in range(10):
        even, odd = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [high(odd) ^ c[1] ^ k[0], low(odd), high(even) ^ c[3] ^ k[1], low(even)]
        k = [low(k[0] + 0x9E3779B9), low(k[1] + 0xBB67AE85)]
    return c[1] << 32 | c[0]


def row_order(seed, size):
    """The first epoch: eight turns of a Feistel network, walked until inside."""
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask, mixed = (1 << half) - 1, {}
    for turn in range(8):
        for right in range(1 << half):
            mixed[turn, right] = philox_bits(seed, "data/shuffle", turn << 31 | right) & mask
    for place in range(size):
        while True:
            left, right = place >> half, place & mask
            for turn in range(8):
                left, right = right, left ^ mixed[turn, right]
            place = left << half | right
            if place < size:
                break
        yield place


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
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    p = {name: torch.tensor(value, dtype=torch.float32, requires_grad=True) for name, value in read_safetensors(args.start).items()}
    texts = novels()
    (held,) = (text for text in texts if text.lstrip().upper().startswith(b"PERSUASION"))
    stream = np.frombuffer(b"".join(text for text in texts if text is not held), np.uint8).astype(np.int64)
    groups = [dict(params=[v for v in p.values() if v.ndim > 1], weight_decay=0.1),
              dict(params=[v for v in p.values() if v.ndim == 1], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), eps=1e-8)
    order, start = list(row_order(args.seed, (len(stream) - 1) // LENGTH)), time.time()
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
        if step % 50 == 0 or step <= 20:
            print(f"step {step}: loss {loss.item():.4f}, {step * ROWS * LENGTH / (time.time() - start):.0f} tokens/s", flush=True)
    print(f"held out: loss {evaluate(p, np.frombuffer(held, np.uint8).astype(np.int64)):.4f} over {len(held) - 1:,} targets")


if __name__ == "__main__":
    main()
