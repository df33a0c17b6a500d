"""Compares regions of `weft eval` with the files themselves and with the log.

usage: regions.py FOLDER
"""
import glob
import json
import re
import sys

folder = sys.argv[1]
found, whole = (json.load(open(f"{folder}/{name}.json")) for name in ("regions", "whole"))
regions = {region["name"]: region for region in found["regions"]}
assert list(regions) == ["query", "trace", "answer", "other"], regions
assert abs(sum(region["share"] for region in regions.values()) - 1) < 1e-12
assert abs(sum(region["loss_share"] for region in regions.values()) - 1) < 1e-6
assert abs(sum(region["share"] * region["loss"] for region in regions.values()) - whole["loss"]) < 1e-5
assert found["targets"] == whole["targets"]
# Each held-out document has three markers, and no target before the first of them (the separator is none).
documents = glob.glob(f"{folder}/d3*.txt")
assert regions["other"]["targets"] == 3 * len(documents), regions["other"]
# A token has one byte at least; digits and what joined them stay inside their region.
for name in ("query", "trace", "answer"):
    bytes_ = sum(len(re.search(rf"<\|{name}\|>([^<]*)", open(path).read())[1]) for path in documents)
    assert 0 < regions[name]["targets"] <= bytes_, (name, regions[name], bytes_)
log = [json.loads(line) for line in open(f"{folder}/run/log.jsonl")]
logged = [line for line in log if line["kind"] == "eval"][-1]["regions"]
assert logged == found["regions"], (logged, found["regions"])
print("regions agree")
