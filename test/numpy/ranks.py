#!/usr/bin/python3
"""Stable and effective ranks of a run's checkpoints, by NumPy's SVD.

usage: ranks.py RUN RANKS.json
"""
import glob, json, struct, sys

import numpy as np

run, ranks = sys.argv[1], json.load(open(sys.argv[2]))
# Rows of each matrix as the model's products read it: the axes summed.
ROWS = {"embed": 1, "wq": 1, "wk": 1, "wv": 1, "wo": 2, "up": 1, "down": 1}


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {name: np.frombuffer(data[slice(*info["data_offsets"])], "<f4").astype(float).reshape(info["shape"])
            for name, info in header.items() if name != "__metadata__"}


for entry in ranks:
    weights = read(f"{run}/checkpoints/step-{entry['step']:08d}/model.safetensors")
    wanted = {name: value for name, value in weights.items() if value.ndim > 1}
    assert set(wanted) == set(entry["matrices"]), set(wanted) ^ set(entry["matrices"])
    for name, value in wanted.items():
        rows = int(np.prod(value.shape[:ROWS[name.split(".")[-1]]]))
        singular = np.linalg.svd(value.reshape(rows, -1), compute_uv=False)
        share = singular / singular.sum()
        stable, effective = (singular ** 2).sum() / singular[0] ** 2, np.exp(-(share * np.log(share)).sum())
        found = entry["matrices"][name]
        assert abs(found["effective"] / effective - 1) < 1e-6, (name, found, effective)
        # Fifty power iterations where the largest two are close: up to a few percent high.
        assert -1e-6 < found["stable"] / stable - 1 < 0.05, (name, found, stable)
assert len(ranks) == len(glob.glob(f"{run}/checkpoints/step-*"))
print(f"{len(ranks)} checkpoints, {len(ranks[0]['matrices'])} matrices each: ranks agree")
