#!/usr/bin/python3
"""Rows of associative recall against a generator of its own.

usage: mqar.py WEFT FOLDER

Checks every rule of a row, and the distribution of queries: for n = 8, 32 and 64
pairs in 512 positions the mean distance of a query past the pairs is 94, 113 and
123 positions, and 48, 34 and 23% are within 32; slot by slot the counts agree
with a plain NumPy sampler that draws one slot after another and renormalises.
"""
import json, struct, subprocess, sys

import numpy as np

weft, folder = sys.argv[1:3]
LENGTH, VOCABULARY, ROWS, A = 512, 8192, 4000, 0.01


def read(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    return {name: np.frombuffer(data[info["data_offsets"][0]:info["data_offsets"][1]], "<i4").reshape(info["shape"])
            for name, info in header.items() if name != "__metadata__"}


def slots_by_hand(generator, space, pairs):
    """One after another, weights renormalised: no Gumbel trick."""
    weights = np.arange(1, space + 1, dtype=float) ** (A - 1)
    chosen = []
    for _ in range(pairs):
        slot = generator.choice(space, p=weights / weights.sum())
        chosen.append(slot)
        weights[slot] = 0
    return chosen


def check_row(tokens, targets, pairs):
    keys, values = tokens[0:2 * pairs:2], tokens[1:2 * pairs:2]
    assert len(set(keys)) == pairs and keys.min() >= 1 and keys.max() < VOCABULARY // 2
    assert len(set(values)) == pairs and values.min() >= VOCABULARY // 2 and values.max() < VOCABULARY
    asked = np.flatnonzero(targets >= 0)
    assert len(asked) == pairs and (asked >= 2 * pairs).all() and (asked % 2 == 0).all()
    value_of = dict(zip(keys, values))
    assert all(value_of[tokens[p]] == targets[p] for p in asked)
    return (asked - 2 * pairs) // 2


for pairs, mean, near in [(8, 94, 0.48), (32, 113, 0.34), (64, 123, 0.23)]:
    path = f"{folder}/mqar-{pairs}.safetensors"
    subprocess.run([weft, "data", "mqar", f"pairs={pairs},rows={ROWS},seed=5", "--length", str(LENGTH), "--out", path],
                   check=True, stdout=subprocess.DEVNULL)
    rows = read(path)
    found = np.stack([check_row(t, y, pairs) for t, y in zip(rows["tokens"], rows["targets"])])
    distance = 2 * found
    assert abs(distance.mean() - mean) < 1.5, (pairs, distance.mean())
    assert abs((distance < 32).mean() - near) < 0.012, (pairs, (distance < 32).mean())
    # Independent sampler: counts of 16 groups of slots agree within five standard deviations.
    space, generator = (LENGTH - 2 * pairs) // 2, np.random.default_rng(pairs)
    draws = max(200, 20000 // pairs)
    own = np.stack([slots_by_hand(generator, space, pairs) for _ in range(draws)])
    edges = np.unique(np.round(np.geomspace(1, space + 1, 17)).astype(int)) - 1
    a, b = np.histogram(found, edges)[0] / ROWS, np.histogram(own, edges)[0] / draws
    width = np.minimum(np.diff(edges), pairs)
    sigma = np.sqrt(np.minimum(a, width) * (1 / ROWS + 1 / draws)) + 1e-3
    assert (np.abs(a - b) < 5 * sigma).all(), (pairs, a, b)
    # Filler: every id may come, evenly.
    mask = np.ones_like(rows["tokens"], bool)
    mask[:, :2 * pairs] = False
    mask[rows["targets"] >= 0] = False
    filler = rows["tokens"][mask]
    assert filler.min() < 4 and filler.max() > VOCABULARY - 4
    assert abs(filler.mean() / ((VOCABULARY - 1) / 2) - 1) < 0.01
    print(f"{pairs} pairs: mean distance {distance.mean():.1f}, {100 * (distance < 32).mean():.1f}% within 32")
