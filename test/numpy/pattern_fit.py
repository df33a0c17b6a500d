#!/usr/bin/python3
"""Fixed patterns of heads, densely, in float64: what runtime/control is checked against.

Reads one JSON question from standard input, prints one JSON answer.

  {"kind": "fit", "rows": [...], "mean": [[...]], "window": W}
      minimises the row-averaged KL(mean || P) over a and r by L-BFGS -> {"kl", "pattern"}
  {"kind": "statistics", "documents": [{"q": [[...]], "k": [[...]]}], "scale", "window", "length",
   "a": [...], "r": [...]}
      -> what PatternStatistics.h defines, and the distances to the pattern (a, r)
  {"kind": "rows", "documents", "scale", "window", "length"}
      -> {"maps": attention of each document, "mean", "variance", "sharp"}, [T, T] each
"""
import json
import sys

import numpy as np


def allowed(length, window):
    i, j = np.arange(length)[:, None], np.arange(length)[None, :]
    return (j <= i) & (j > i - window)


def pattern(a, r, window):
    a, r = np.array(a), np.array(r)
    distance = np.clip(np.arange(len(a))[:, None] - np.arange(len(a))[None, :], 0, None)
    p = np.where(allowed(len(a), window), np.exp(a[None, :] + r[distance]), 0)
    return p / p.sum(1, keepdims=True)


def fit(question):
    import torch

    rows = torch.tensor(question["rows"], dtype=torch.float64)
    mean = torch.tensor(question["mean"], dtype=torch.float64)
    length, window = len(rows), question["window"]
    a = torch.zeros(length, dtype=torch.float64, requires_grad=True)
    r = torch.zeros(length, dtype=torch.float64, requires_grad=True)

    mask = torch.tensor(allowed(length, window))
    distance = (torch.arange(length)[:, None] - torch.arange(length)[None, :]).clamp(min=0)

    def divergence():
        found = torch.softmax((a[None, :] + r[distance]).masked_fill(~mask, -torch.inf), dim=1)
        terms = torch.where(mean > 0, mean * (mean.clamp(min=1e-300).log() - found.clamp(min=1e-300).log()), 0.0)
        return (terms.sum(1) * rows).sum() / rows.sum()

    optimiser = torch.optim.LBFGS([a, r], lr=0.5, max_iter=3000, history_size=50, tolerance_grad=1e-10,
                                  tolerance_change=1e-14, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = divergence()
        loss.backward()
        return loss

    optimiser.step(closure)
    return {"kl": float(divergence()), "pattern": pattern(a.detach().numpy(), r.detach().numpy(), window).tolist()}


def attention(question):
    """Attention of each document, documents by row, and of the rows: mean, variance, softmax of mean scores."""
    window, length = question["window"], question["length"]
    maps, scores = [], []
    for document in question["documents"]:
        q, k = np.array(document["q"]), np.array(document["k"])
        s = np.where(allowed(len(q), window), q @ k.T * question["scale"], -np.inf)
        p = np.exp(s - s.max(1, keepdims=True))
        maps.append(p / p.sum(1, keepdims=True))
        scores.append(s)
    rows = np.array([sum(len(m) > i for m in maps) for i in range(length)])
    mean, variance, sharp = np.zeros((3, length, length))
    for i in range(length):
        reaching = [x for x, m in enumerate(maps) if len(m) > i]
        if not reaching:
            continue
        mean[i, : i + 1] = np.mean([maps[x][i, : i + 1] for x in reaching], axis=0)
        variance[i, : i + 1] = np.var([maps[x][i, : i + 1] for x in reaching], axis=0)
        s = np.mean([scores[x][i, : i + 1] for x in reaching], axis=0)
        e = np.exp(s - s.max())
        sharp[i, : i + 1] = e / e.sum()
    return maps, rows, mean, variance, sharp


def rows_of(question):
    maps, _, mean, variance, sharp = attention(question)
    return {"maps": [m.tolist() for m in maps], "mean": mean.tolist(), "variance": variance.tolist(),
            "sharp": sharp.tolist()}


def statistics(question):
    window, length = question["window"], question["length"]
    maps, rows, mean, _, sharp = attention(question)
    total = rows.sum()
    log = lambda p: np.log(np.where(p > 0, p, 1))
    answer = {"score": 0, "forward_kl": 0, "entropy": 0, "recent": 0, "first": 0,
              "frobenius": 0, "kl": 0, "hellinger": 0, "variation": 0}
    fixed = pattern(question["a"], question["r"], window)
    for m in maps:
        for i, row in enumerate(m):
            other, p = mean[i, : len(row)], fixed[i, : len(row)]
            keys = min(i + 1, window)
            answer["score"] += np.sum((row - other) ** 2)
            answer["forward_kl"] += np.sum(row * (log(row) - log(other)))
            answer["entropy"] += -np.sum(row * log(row)) / np.log(keys) if keys > 1 else 0
            answer["recent"] += row[max(0, i - 63) : i + 1].sum()
            answer["first"] += row[0]
            answer["frobenius"] += np.sum((row - p) ** 2)
            answer["kl"] += np.sum(row * (log(row) - log(p)))
            answer["hellinger"] += 1 - np.sum(np.sqrt(row * p))
            answer["variation"] += 0.5 * np.abs(row - p).sum()
    answer = {key: float(value / total) for key, value in answer.items()}

    def moments(m):
        weighted = m * rows[:, None]
        return {"columns": weighted.sum(0).tolist(),
                "diagonals": [float(np.trace(weighted, -d)) for d in range(length)],
                "information": float(np.sum(weighted * log(m)))}

    return answer | {"rows": rows.tolist(), "mean": moments(mean), "sharp": moments(sharp)}


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print(json.dumps({"fit": fit, "statistics": statistics, "rows": rows_of}[question["kind"]](question)))
