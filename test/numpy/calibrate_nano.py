#!/usr/bin/python3
"""Scores of nano's heads on calibration rows, densely in float64 (torch).

    calibrate_nano.py CHECKPOINT TEXT ROWS POSITIONS [CONTROL] < EVENT

CHECKPOINT is the one before a decision, TEXT the bytes that the run trains on as one stream;
calibration rows are its end: 0.5% of it, or what ROWS need. EVENT is the line "freeze" of
log.jsonl; each number in it is compared. CONTROL holds dense means of the heads that it
installed, `pattern/SITE/p`: so are they, up to the rounding of bfloat16.
"""
import json
import sys

import numpy as np
import torch

from reference import gelu, read_safetensors, rms_norm

checkpoint, text, rows, positions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
event = json.load(sys.stdin)
p = {name: torch.tensor(np.array(value), dtype=torch.float64, requires_grad=True)
     for name, value in read_safetensors(f"{checkpoint}/model.safetensors").items()}
stream = np.frombuffer(open(text, "rb").read(), np.uint8).astype(np.int64)
size = max(int(0.005 * len(stream)), rows * positions + 1)
tokens = torch.tensor(stream[len(stream) - size :][: rows * positions + 1])


def rope(x):
    half = x.shape[-1] // 2
    angle = torch.arange(len(x)).double()[:, None] * 1e4 ** (-torch.arange(half).double() / half)
    angle, a, b = angle[:, None], x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def forward(ids, targets):
    x, maps, outs, streams = p["embed"][ids], [], [], []
    mask = torch.tril(torch.ones(len(ids), len(ids))) > 0
    for layer in range(sum(name.endswith("attn.wq") for name in p)):
        w = lambda name: p[f"block.{layer}.{name}"]
        h = rms_norm(x) * w("attn.gain")
        q, k, v = (torch.einsum("td,dhc->thc", h, w(f"attn.{name}")) for name in ("wq", "wk", "wv"))
        q, k = rope(q), rope(k)
        scores = torch.einsum("ihc,jhc->hij", q, k) * q.shape[-1] ** -0.5
        maps.append(torch.softmax(scores.masked_fill(~mask, -torch.inf), -1))
        outs.append(torch.einsum("hij,jhc->ihc", maps[-1], v))
        outs[-1].retain_grad()
        streams.append((x.detach(), v.detach(), w("attn.wo").detach()))
        x = x + torch.einsum("ihc,hcd->id", outs[-1], w("attn.wo"))
        h = rms_norm(x) * w("ffn.gain")
        x = x + gelu(h @ w("ffn.up")) @ w("ffn.down")
    logits = rms_norm(x) * p["final_gain"] @ p["embed"].T
    return torch.nn.functional.cross_entropy(logits, targets), maps, outs, streams


attention, gates, gradients, behind = [], [], [], []
for row in range(rows):
    ids = tokens[row * positions : (row + 1) * positions + 1]
    loss, maps, outs, streams = forward(ids[:-1], ids[1:])
    for value in p.values():
        value.grad = None
    loss.backward()
    behind.append(streams)
    attention.append(torch.stack(maps).detach().numpy())
    gates.append(torch.stack([(out * out.grad).sum((0, 2)).abs() for out in outs]).detach().numpy())
    squares = lambda name: torch.stack([(p[f"block.{l}.attn.{name}"].grad ** 2).sum((0, 2)) for l in range(len(maps))])
    gradients.append((squares("wq") + squares("wk")).numpy())
A = np.stack(attention)  # [rows, layers, heads, i, j]
M = A.mean(0)
cosines = np.zeros(M.shape[:2])
for row, streams in enumerate(behind):
    for layer, (x, v, wo) in enumerate(streams):
        given = torch.einsum("hij,jhc->ihc", torch.tensor(A[row, layer]), v)
        mean = torch.einsum("hij,jhc->ihc", torch.tensor(M[layer]), v)
        whole = x + torch.einsum("ihc,hcd->id", given, wo)
        for head in range(given.shape[1]):
            other = whole + (mean - given)[:, head] @ wo[head]
            cosines[layer, head] += torch.cosine_similarity(whole, other, -1).mean() / rows
log = lambda x: np.log(np.where(x > 0, x, 1))
keys = np.arange(1, positions + 1)
found = {
    "variance": ((A - M) ** 2).sum((-1, -2)).mean(0) / positions,
    "forward_kl": (A * (log(A) - log(M))).sum((-1, -2)).mean(0) / positions,
    "entropy": (-(A * log(A)).sum(-1)[..., 1:] / np.log(keys[1:])).sum(-1).mean(0) / positions,
    "first": A[..., 0].mean((0, -1)),
    "gate_taylor": np.mean(gates, 0),
    "residual_cosine": 1 - cosines,
    "qk_gradient": np.sqrt(np.mean(gradients, 0)),
}
compared = 0
for head in event["heads"]:
    for word, values in found.items():
        if word in head:
            wanted = values[head["layer"], head["head"]]
            # float32 cosines are right to their own step.
            near = 1e-6 if word == "residual_cosine" else 1e-9
            assert abs(head[word] - wanted) < 1e-3 * abs(wanted) + near, (word, head, wanted)
            compared += 1
print("compared", compared)
if len(sys.argv) > 5:
    held, patterns = read_safetensors(sys.argv[5]), 0
    for site in sorted({head["site"] for head in event["installed"]}):
        heads = sorted(head["head"] for head in event["installed"] if head["site"] == site)
        for head, square in zip(heads, np.array(held[f"pattern/{site}/p"], dtype=np.float64)):
            wanted = M[int(site.split(".")[1]), head]
            assert (np.abs(square - wanted) <= wanted * 2**-8 + 1e-6).all(), (site, head, np.abs(square - wanted).max())
            patterns += 1
    print("patterns", patterns)
