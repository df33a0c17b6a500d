#!/usr/bin/python3
"""Computes a SAN with frozen and pruned heads again, in PyTorch: frozen_san.py CASE.json.

Whole matrices of probabilities in float64; gradients by autograd. CASE.json holds
{"inputs", "states"} (name -> {"shape", "data"}), "slices" (name -> {"full",
"first", "count", "kept"}) of entries that hold a part, "frozen" (site -> heads,
windows), "pruned" (site -> heads), "depth", "loss" and "gradients". Exit status 1
when the loss or a gradient differs by more than 1e-9 of its greatest number.
"""
import json
import sys

import numpy as np
import torch

from reference import Batch

TOLERANCE = 1e-9


def array(entry):
    return np.array(entry["data"], dtype=np.float64).reshape(entry["shape"])


def whole(part, slices):
    """The tensor with zeros for the slices that the entry does not hold."""
    first, count, full = slices["first"], slices["count"], slices["full"]
    places = int(np.prod(full[first:first + count]))
    spread = torch.zeros(full[:first] + [places] + full[first + count:], dtype=torch.float64)
    return spread.index_copy(first, torch.tensor(slices["kept"]), part).reshape(full)


def norm(z, gamma):
    return (1 + gamma) * z / torch.sqrt((z * z).mean(-1, keepdim=True) + 1e-6)


def pattern(a, r, window, start):
    """P of one head: exp(a[j - s] + r[i - j]) over its sum, [batch, queries, keys]."""
    n = start.shape[1]
    i, j = torch.arange(n)[None, :, None], torch.arange(n)[None, None, :]
    seen = (j <= i) & (j >= start[:, :, None]) & (j > i - window)
    column, distance = torch.where(seen, j - start[:, :, None], 0), torch.where(seen, i - j, 0)
    return torch.softmax((a[column] + r[distance]).masked_fill(~seen, float("-inf")), -1)


class San:
    def __init__(self, case):
        self.case = case
        inputs = {name: torch.tensor(array(entry)).long() for name, entry in case["inputs"].items()}
        self.batch = Batch.__new__(Batch)
        self.batch.tokens, self.batch.targets = inputs["tokens"], inputs["targets"]
        self.batch.start = inputs["doc_start"]
        self.batch.position = torch.arange(self.batch.tokens.shape[1])[None, :] - self.batch.start
        self.leaves = {name: torch.tensor(array(entry), requires_grad=True)
                       for name, entry in case["states"].items()}

    def __getitem__(self, name):
        value = self.leaves[name]
        return whole(value, self.case["slices"][name]) if name in self.case["slices"] else value

    def mixed(self, site, scores, v):
        """Every head's output: softmax, pattern or nothing."""
        p = torch.softmax(scores, -1)
        heads = p.shape[1]
        frozen, pruned = self.case["frozen"].get(site), self.case["pruned"].get(site, [])
        each = []
        for h in range(heads):
            if frozen and h in frozen["heads"]:
                at = frozen["heads"].index(h)
                a, r = self[f"pattern/{site}/a"][at], self[f"pattern/{site}/r"][at]
                each.append(pattern(a, r, frozen["windows"][at], self.batch.start))
            else:
                each.append(torch.zeros_like(p[:, h]) if h in pruned else p[:, h])
        return torch.einsum("bhij,bjhc->bihc", torch.stack(each, 1), v)

    def attention(self, site, x):
        u = norm(x, self[site + ".gamma"])
        wk = self[site + ".wk"]
        kv = wk.shape[1]
        v = torch.einsum("btd,dkc->btkc", u, self[site + ".wv"])
        wo = self[site + ".wo"]
        group = wo.shape[1]
        q = torch.einsum("btd,dkgc->btkgc", u, self[site + ".wq"])
        k = torch.einsum("btd,dkc->btkc", u, wk)
        q, k = norm(q, self[site + ".gamma_q"]), norm(k, self[site + ".gamma_k"])
        q, k = self.batch.rope(q).flatten(2, 3), self.batch.rope(k).repeat_interleave(group, 2)
        n = x.shape[1]
        i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
        seen = (j <= i)[None] & (j[None] >= self.batch.start[:, :, None])
        scores = torch.einsum("bihc,bjhc->bhij", q, k) * q.shape[-1] ** -0.5
        scores = scores.masked_fill(~seen[:, None], float("-inf"))
        out = self.mixed(site, scores, v.repeat_interleave(group, 2)).unflatten(2, (kv, group))
        return torch.sigmoid(self[site + ".gate"]) * torch.einsum("btkgc,kgcd->btd", out, wo)

    def loss(self):
        embed = self["embed"]
        x = embed[self.batch.tokens]
        for layer in range(self.case["depth"]):
            x = x + self.attention(f"block.{layer}.attn", x)
        logits = norm(x, self["gamma_final"]) @ embed.T
        return self.batch.loss(logits)[0]


def differs(name, found, expected):
    error = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-9)
    if error > TOLERANCE:
        print(f"FAILED {name}: relative error {error:.3g}")
    return error > TOLERANCE


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        case = json.load(file)
    model = San(case)
    loss = model.loss()
    loss.backward()
    worst = differs("loss", np.array(case["loss"]), loss.detach().numpy())
    for name, entry in case["gradients"].items():
        worst |= differs(name, array(entry), model.leaves[name].grad.numpy())
    print(f'loss {float(loss):.6f}, {len(case["gradients"])} gradients')
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
