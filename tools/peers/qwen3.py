#!/usr/bin/env python3
"""models/qwen3.weft in PyTorch, as a user would train it there: one line of JSON.

usage: tools/peers/qwen3.py [--positions 4096] [--rows 4] [--steps 10] [--depth 28] [--dim 1024] [--vocab 151936]

torch.compile, autocast to bf16, cuDNN attention with grouped keys, RMS norms of
rows and of queries and keys, SwiGLU, tied embedding, fused AdamW, gradients
clipped to 1. `ms` is the median of whole steps after three that are not counted.
With --shapes it counts the parameters and takes one step on the CPU instead.
"""
import argparse
import json
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
SIZES = {"positions": 4096, "rows": 4, "steps": 10, "depth": 28, "dim": 1024, "heads": 16, "kv": 8, "head": 128, "hidden": 3072, "vocab": 151936}
for name, value in SIZES.items():
    parser.add_argument(f"--{name}", type=int, default=value)
parser.add_argument("--shapes", action="store_true")
options = parser.parse_args()
start = time.perf_counter()


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, x):
        if options.shapes:  # older PyTorch, on a CPU
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain
        return F.rms_norm(x, self.gain.shape, self.gain, 1e-6)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        o = options
        self.norm, self.norm_ffn = Norm(o.dim), Norm(o.dim)
        self.norm_q, self.norm_k = Norm(o.head), Norm(o.head)
        self.q, self.o = nn.Linear(o.dim, o.heads * o.head, bias=False), nn.Linear(o.heads * o.head, o.dim, bias=False)
        self.k, self.v = nn.Linear(o.dim, o.kv * o.head, bias=False), nn.Linear(o.dim, o.kv * o.head, bias=False)
        self.gate, self.up = nn.Linear(o.dim, o.hidden, bias=False), nn.Linear(o.dim, o.hidden, bias=False)
        self.down = nn.Linear(o.hidden, o.dim, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        u = self.norm(x)

        def heads(z, count):
            return z.view(b, t, count, options.head).transpose(1, 2)

        def turned(z):
            first, second = z.chunk(2, -1)
            return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(z.dtype if options.shapes else torch.bfloat16)

        q, k = turned(self.norm_q(heads(self.q(u), options.heads))), turned(self.norm_k(heads(self.k(u), options.kv)))
        v = heads(self.v(u), options.kv)
        x = x + self.o(attend(q, k, v).transpose(1, 2).reshape(b, t, options.heads * options.head))
        u = self.norm_ffn(x)
        return x + self.down(F.silu(self.gate(u)) * self.up(u))


def attend(q, k, v):
    if not options.shapes:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    k, v = (z.repeat_interleave(options.heads // options.kv, 1) for z in (k, v))
    scores = (q @ k.transpose(-1, -2)) * options.head ** -0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v


class Qwen3(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(options.vocab, options.dim)
        self.blocks = nn.ModuleList(Block() for _ in range(options.depth))
        self.norm = Norm(options.dim)
        angles = torch.outer(torch.arange(options.positions), 1e6 ** (-torch.arange(0, options.head, 2) / options.head))
        self.register_buffer("cos", angles.cos()), self.register_buffer("sin", angles.sin())
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy((self.norm(x) @ self.embed.weight.T).float().view(-1, options.vocab), targets.view(-1))


torch.manual_seed(0)
device = "cpu" if options.shapes else "cuda"
model = Qwen3().to(device)
parameters = sum(p.numel() for p in model.parameters())
tokens = torch.randint(0, options.vocab, (options.rows, options.positions), device=device)
if options.shapes:
    loss = model(tokens, tokens)
    loss.backward()
    print(json.dumps({"section": "qwen3", "parameters": parameters, "loss": round(loss.item(), 4)}))
    raise SystemExit(0)

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402  (not in the PyTorch that --shapes may run on)

torch.set_float32_matmul_precision("high")
adamw = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
compiled = torch.compile(model)


def step():
    with torch.autocast("cuda", torch.bfloat16), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        loss = compiled(tokens, tokens)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    adamw.step()
    adamw.zero_grad(set_to_none=True)


step()
torch.cuda.synchronize()
first = time.perf_counter() - start
step(), step()
took = []
for _ in range(options.steps):
    a, b = torch.cuda.Event(True), torch.cuda.Event(True)
    a.record(), step(), b.record(), b.synchronize()
    took.append(a.elapsed_time(b))
ms = sorted(took)[len(took) // 2]
print(json.dumps({"section": "qwen3", "positions": options.positions, "rows": options.rows, "parameters": parameters, "ms": round(ms, 2),
                  "tokens_per_second": round(1e3 * options.rows * options.positions / ms),
                  "peak_gib": round(torch.cuda.max_memory_allocated() / 2 ** 30, 2), "first_step_s": round(first, 1), "torch": torch.__version__}))
