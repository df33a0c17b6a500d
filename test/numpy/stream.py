#!/usr/bin/python3
"""Effective ranks of a model's outputs, by NumPy's SVD.

usage: stream.py OUTPUTS.safetensors RANKS.json
"""
import json, struct, sys

import numpy as np

with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
ranks = {entry["output"]: entry for entry in json.load(open(sys.argv[2]))}
wanted = {name for name in header if name not in ("logits", "__metadata__")}
assert set(ranks) == wanted, (set(ranks), wanted)
for name in wanted:
    value = np.frombuffer(data[slice(*header[name]["data_offsets"])], "<f4").astype(float).reshape(header[name]["shape"])
    singular = np.linalg.svd(value - value.mean(0), compute_uv=False)
    share = singular / singular.sum()
    rank = np.exp(-(share * np.log(share)).sum())
    assert ranks[name]["tokens"] == len(value) and abs(ranks[name]["effective_rank"] / rank - 1) < 1e-5, (ranks[name], rank)
print(f"{len(wanted)} outputs: ranks agree")
