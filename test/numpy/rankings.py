#!/usr/bin/python3
"""Two rankings of heads, compared: what runtime/control/Ranking.h defines, by NumPy.

Reads {"now": [[site, head, chosen], ...], "then": [...]} in rank order from standard input, prints the numbers.
"""
import json
import sys

import numpy as np

question = json.load(sys.stdin)
now, then = ([(tuple(head[:2]), head[2]) for head in question[key]] for key in ("now", "then"))
both = {head for head, _ in now} & {head for head, _ in then}
names = sorted(both)
chosen = [np.array([dict(ranking)[name] for name in names], dtype=float) for ranking in (now, then)]
ranks = []
for ranking in (now, then):
    order = [head for head, _ in ranking if head in both]
    ranks.append(np.array([order.index(name) for name in names], dtype=float))
signs = [np.sign(rank[:, None] - rank[None, :]) for rank in ranks]
sites = np.array([name[0] for name in names])
print(json.dumps({
    "heads": len(names), "overlap": int((chosen[0] * chosen[1]).sum()),
    "by_chance": float(sum(chosen[0][sites == site].mean() * chosen[1][sites == site].sum() for site in set(sites))),
    "spearman": float(np.corrcoef(*ranks)[0, 1]), "kendall": float((signs[0] * signs[1]).sum() / (signs[0] ** 2).sum())}))
