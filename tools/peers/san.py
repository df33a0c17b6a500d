#!/usr/bin/env python3
"""models/san.weft in PyTorch, as a user would train it there: one line of JSON.

usage: tools/peers/san.py [--depth 20] [--positions 2048] [--rows 512] [--micro 32] [--steps 3]

torch.compile, autocast to bf16, cuDNN attention with grouped keys, torch.optim.Muon
on the layers' matrices and fused AdamW on the rest, gradients added up over
micro-batches and clipped to 1. `ms` is the median of whole steps after two that
are not counted; `muon_ms` that of Muon's step alone.
"""
import argparse
import json
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
for name, value in {"depth": 20, "positions": 2048, "rows": 512, "micro": 32, "steps": 3, "vocab": 16384}.items():
    parser.add_argument(f"--{name}", type=int, default=value)
options = parser.parse_args()
DIM, HEADS, GROUPS, HEAD = 512, 8, 4, 64
start = time.perf_counter()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros(DIM))
        self.gain_q, self.gain_k = nn.Parameter(torch.zeros(HEAD)), nn.Parameter(torch.zeros(HEAD))
        self.gate = nn.Parameter(torch.zeros(()))
        self.q, self.o = nn.Linear(DIM, HEADS * HEAD, bias=False), nn.Linear(HEADS * HEAD, DIM, bias=False)
        self.k, self.v = nn.Linear(DIM, GROUPS * HEAD, bias=False), nn.Linear(DIM, GROUPS * HEAD, bias=False)
        for linear in (self.q, self.k, self.v):
            nn.init.normal_(linear.weight, std=DIM ** -0.5)
        nn.init.normal_(self.o.weight, std=DIM ** -0.5 / math.sqrt(2 * options.depth))

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        u = F.rms_norm(x, (DIM,), 1 + self.gain, 1e-6)

        def turned(z, heads, gain):
            z = F.rms_norm(z.view(b, t, heads, HEAD), (HEAD,), 1 + gain, 1e-6).transpose(1, 2)
            first, second = z.chunk(2, -1)
            return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(torch.bfloat16)

        a = F.scaled_dot_product_attention(turned(self.q(u), HEADS, self.gain_q), turned(self.k(u), GROUPS, self.gain_k),
                                           self.v(u).view(b, t, GROUPS, HEAD).transpose(1, 2), is_causal=True, enable_gqa=True)
        return x + torch.sigmoid(self.gate) * self.o(a.transpose(1, 2).reshape(b, t, HEADS * HEAD))


class San(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(options.vocab, DIM)
        nn.init.normal_(self.embed.weight, std=DIM ** -0.5)
        self.blocks = nn.ModuleList(Block() for _ in range(options.depth))
        self.gain = nn.Parameter(torch.zeros(DIM))
        angles = torch.outer(torch.arange(options.positions), 10000.0 ** (-torch.arange(0, HEAD, 2) / HEAD))
        self.register_buffer("cos", angles.cos()), self.register_buffer("sin", angles.sin())

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = F.rms_norm(x, (DIM,), 1 + self.gain, 1e-6) @ self.embed.weight.T
        return F.cross_entropy(logits.view(-1, options.vocab), targets.view(-1))


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
model = San().cuda()
matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
rest = [p for p in model.parameters() if all(p is not m for m in matrices)]
muon = torch.optim.Muon(matrices, lr=0.02, momentum=0.95, nesterov=True, weight_decay=0.01)
adamw = torch.optim.AdamW(rest, lr=3e-4, betas=(0.9, 0.95), fused=True)
compiled = torch.compile(model)
tokens = torch.randint(0, options.vocab, (options.micro, options.positions), device="cuda")
micros = options.rows // options.micro


def step():
    for _ in range(micros):
        with torch.autocast("cuda", torch.bfloat16), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            loss = compiled(tokens, tokens) / micros
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    muon.step()
    adamw.step()
    muon.zero_grad(set_to_none=True), adamw.zero_grad(set_to_none=True)


def timed(work, times):
    took = []
    for _ in range(times):
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record(), work(), b.record(), b.synchronize()
        took.append(a.elapsed_time(b))
    return sorted(took)[len(took) // 2]


step()
torch.cuda.synchronize()
first = time.perf_counter() - start
step()
ms = timed(step, options.steps)
peak = torch.cuda.max_memory_allocated() / 2 ** 30
for matrix in matrices:
    matrix.grad = torch.randn_like(matrix)
muon.step()
print(json.dumps({"section": "san", "depth": options.depth, "positions": options.positions, "rows": options.rows, "micro": options.micro,
                  "parameters": sum(p.numel() for p in model.parameters()), "ms": round(ms, 2),
                  "tokens_per_second": round(1e3 * options.rows * options.positions / ms), "muon_ms": round(timed(muon.step, 10), 3),
                  "peak_gib": round(peak, 2), "first_step_s": round(first, 1), "torch": torch.__version__}))
