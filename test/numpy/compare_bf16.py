#!/usr/bin/python3
"""Gradients of whole models on a GPU: how far from float64, beside PyTorch in bf16.

    compare_bf16.py WEFT [--device cuda] [--bound 1.5] [--json FILE] [NAME]...

The same weights and tokens three times: reference.py in float64, the same model
in PyTorch under autocast to bf16 with its fused attention, and Weft. An error is
the relative Frobenius norm of a gradient's difference from float64's; a tensor's
ratio is Weft's error over PyTorch's. Fails when a ratio is over the bound: a sum
kept in 16 bits, or a value rounded once more than PyTorch rounds it, shows there.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import compare_models  # noqa: E402
import reference  # noqa: E402

MODELS = os.path.join(HERE, "..", "..", "models")
SMALL = dict(vocab=512, dim=256, depth=4)
# name: (file, model, settings); heads of 64 and 128 channels, groups of heads, documents.
CASES = {
    "gpt_rope": ("gpt_rope.weft", "gpt_rope", dict(SMALL, heads=4)),
    "gpt_rope_128": ("gpt_rope.weft", "gpt_rope", dict(SMALL, heads=2)),
    "gpt2": ("gpt2.weft", "gpt2", dict(SMALL, heads=4)),
    "qwen3": ("qwen3.weft", "qwen3", dict(SMALL, heads=4, kv=2, head=128, hidden=512)),
    "san": ("san.weft", "san", dict(SMALL, heads=4, kv=2, head=64)),
}
ROWS, LENGTH, FLOOR = 4, 256, 1e-3


class Half(reference.Batch):
    """The batch as a user of PyTorch in bf16 would handle it."""

    def rope(self, x, base=1e4):
        half = x.shape[-1] // 2
        angle = self.position[..., None].double() * base ** (-torch.arange(half).double() / half)
        angle = angle.reshape(angle.shape[:2] + (1,) * (x.dim() - 3) + (half,)).float()
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def attend(self, q, k, v, window=reference.FULL):
        i, j = torch.arange(q.shape[1])[:, None], torch.arange(k.shape[1])[None, :]
        seen = ((j <= i) & (j > i - window))[None] & (j[None] >= self.start[:, :, None])
        group = q.shape[3]
        q = q.flatten(2, 3).transpose(1, 2).bfloat16()
        k, v = (t.repeat_interleave(group, 2).transpose(1, 2).bfloat16() for t in (k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None])
        return out.transpose(1, 2).unflatten(2, (-1, group))


def bf16_gradients(model, parameters, data, device):
    torch.set_default_device(device)
    try:
        batch = Half(data)
        leaves = {n: torch.tensor(v, dtype=torch.float32, requires_grad=True) for n, v in parameters.items()}
        with torch.autocast(device, torch.bfloat16):
            logits = reference.MODELS[model](reference.Scope(leaves), batch, {})
        total, count = batch.loss(logits.float())
        found = torch.autograd.grad(total / count, list(leaves.values()), allow_unused=True)
        return {n: torch.zeros_like(v) if g is None else g for (n, v), g in zip(leaves.items(), found)}
    finally:
        torch.set_default_device("cpu")


class Weft:
    """The program, on one model's statement with a recipe that keeps documents apart."""

    def __init__(self, args, file, model, settings, work):
        self.args, self.work = args, work
        self.path = os.path.join(work, "model.weft")
        with open(os.path.join(MODELS, file)) as source, open(self.path, "w") as out:
            out.write(compare_models.statement(source.read(), "model", model) + "\n" + compare_models.RECIPE.format(model=model))
        self.sets = [flag for name, value in settings.items() for flag in ("--set", f"{name}={value}")]

    def start(self):
        dump = os.path.join(self.work, "start.safetensors")
        compare_models.run([self.args.weft, "params", self.path, *self.sets, "--dump", dump, "--seed", "1"])
        return reference.read_safetensors(dump)

    def gradients(self, data):
        tokens, out = os.path.join(self.work, "data.json"), os.path.join(self.work, "grads.safetensors")
        with open(tokens, "w") as handle:
            json.dump(data, handle)
        compare_models.run([self.args.weft, "step", self.path, *self.sets, "--data", tokens, "--steps", "0", "--seed", "1",
                            "--device", self.args.device, "--out", out])
        return {n[5:]: v for n, v in reference.read_safetensors(out).items() if n.startswith("grad/")}


def documents(random, vocabulary):
    tokens = random.integers(0, vocabulary, (ROWS, LENGTH + 1))
    starts = []
    for row in range(ROWS):
        cuts = [0] + sorted(int(c) for c in random.choice(np.arange(1, LENGTH), row, replace=False))
        starts.append([max(c for c in cuts if c <= i) for i in range(LENGTH)])
    return {"tokens": tokens[:, :-1].tolist(), "targets": tokens[:, 1:].tolist(), "doc_start": starts}


def compare(args, name):
    file, model, settings = CASES[name]
    with tempfile.TemporaryDirectory() as work:
        weft = Weft(args, file, model, settings, work)
        parameters = weft.start()
        data = documents(np.random.default_rng(7), settings["vocab"])
        ours = weft.gradients(data)
    exact = reference.gradients(model, {n: np.array(v, np.float64) for n, v in parameters.items()}, reference.Batch(data), {})[1]
    torchs = bf16_gradients(model, parameters, data, "cpu" if args.device == "cpu" else "cuda")
    whole = np.sqrt(sum((g * g).sum() for g in exact.values()))
    rows = []
    for tensor, true in exact.items():
        # A gradient that is zero but for rounding is held to the norm of all.
        size = max(np.linalg.norm(true), 1e-6 * whole)
        error = lambda found: float(np.linalg.norm(np.asarray(found, np.float64) - true) / size)
        mine, theirs = error(ours[tensor]), error(torchs[tensor].double().cpu().numpy())
        # Under FLOOR of a gradient, a hundredth of what bf16 costs, nothing is compared.
        rows.append({"model": name, "tensor": tensor, "weft": mine, "torch": theirs, "ratio": mine / max(theirs, FLOOR)})
    worst = max(rows, key=lambda row: row["ratio"])
    middle = np.median([row["ratio"] for row in rows])
    print(f"{name:14} {len(rows)} tensors: ratio median {middle:.2f}, largest {worst['ratio']:.2f} "
          f"({worst['tensor']}: {worst['weft']:.2e} beside {worst['torch']:.2e})", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--bound", type=float, default=1.5)
    parser.add_argument("--json")
    args = parser.parse_intermixed_args()
    rows = [row for name in args.names or CASES for row in compare(args, name)]
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)
    over = [row for row in rows if row["ratio"] > args.bound]
    for row in sorted(over, key=lambda row: -row["ratio"])[:10]:
        print(f"over {args.bound}: {row['model']} {row['tensor']}: {row['weft']:.2e} beside {row['torch']:.2e}")
    print(f"{len(rows) - len(over)} of {len(rows)} gradients within {args.bound} times PyTorch's error")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
