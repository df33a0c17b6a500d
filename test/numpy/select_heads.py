#!/usr/bin/python3
"""Which heads a selector takes, in NumPy: what runtime/control/FreezeSelect is checked against.

Reads {"by", "highest", "per_site", "groups", "share", "tolerance", "group_size",
"heads": [{"site", "variance", "qk_gradient", "other", "kl"}]} from standard input; heads are in
order of their numbers. Prints {"order": [...], "chosen": [...]}: indices.
"""
import json
import sys

import numpy as np

question = json.load(sys.stdin)
heads = question["heads"]
count = len(heads)
of = lambda word: np.array([h[word] for h in heads], float)
rank = lambda x: np.argsort(np.argsort(x, kind="stable"), kind="stable")

by = question["by"]
blocked = of("kl") > question["tolerance"]
if by == "rank_sum":
    score = (rank(of("variance")) + rank(of("qk_gradient"))).astype(float)
elif by == "gradient_veto":
    score = of("variance")
    blocked |= rank(of("qk_gradient")) >= np.ceil(0.75 * count)
else:
    score = of(by)

size = question["group_size"] if question["groups"] else 1
groups = np.arange(count) // size
value = np.array([score[groups == g].mean() for g in range(count // size)])
bad = np.array([blocked[groups == g].any() for g in range(count // size)])
order = np.argsort(-value if question["highest"] else value, kind="stable")
sites = [heads[g * size]["site"] for g in range(count // size)]
wanted = lambda n: int(np.rint(np.rint(question["share"] * n) / size))
chosen = []
if question["per_site"]:
    for site in sorted(set(sites)):
        of_site = [g for g in order if sites[g] == site]
        chosen += [g for g in of_site if not bad[g]][: wanted(len(of_site) * size)]
else:
    chosen = [g for g in order if not bad[g]][: wanted(count)]
members = lambda list_: [int(g * size + m) for g in list_ for m in range(size)]
print(json.dumps({"order": members(order), "chosen": sorted(members(chosen))}))
