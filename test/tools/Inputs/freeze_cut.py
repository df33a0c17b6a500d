"""freeze_cut.py MODELS TEXT FOLDER: patterns that keep first places of a document and a window."""

import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys

models, text, folder = sys.argv[1:]
nano, length, share, steps = f"{models}/nano.weft", 192, 0.01, 6
fresh = ["weft", "train", nano, "--set", "heads=2", "--set", "log=every 1 steps", "--set", f"steps={steps}", "--set", f"batch=2 x {length}",
         "--set", f"data={text}", "--set", "held_out=last 10%"]


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def write(path, tables):
    header, body = {}, b""
    for name, (shape, values) in tables.items():
        data = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    head = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + body)


def plan(name, options):
    with open(f"{folder}/{name}.weft", "w") as file:
        file.write(f'use "{os.path.abspath(nano)}"\nplan {name} for nano {{ freeze block[0].attn.heads[..] at step 2 {{ {options} }} }}\n')
    return f"{folder}/{name}.weft:{name}"


# Head 0: two places that all look at, beside an exponential decay; head 1: a decay alone.
single = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
a = [[0.0 if j < 2 else -9.0 for j in range(length)], [0.0] * length]
r = [[max(single(-0.2 * d), -9.0) for d in range(length)], [max(single(-0.1 * d), -30.0) for d in range(length)]]


def kept(head, window, first):
    """Rows of the pattern, or None where a row would lose more than it may."""
    rows = []
    for i in range(length):
        row = [math.exp(a[head][j] + r[head][i - j]) for j in range(i + 1)]
        stays = [x if i - j < window or j < first else 0.0 for j, x in enumerate(row)]
        if sum(stays) < (1 - share) * sum(row) * (1 - 1e-12):
            return None
        rows.append([x / sum(stays) for x in stays] + [0.0] * (length - i - 1))
    return rows


def smallest(head):
    found = []
    for first in range(0, length, 64):
        low, high = 0, length  # the smallest window by halves: more of it never loses more
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if kept(head, middle, first) else (middle, high)
        pairs = sum(i - j < high or j < first for i in range(length) for j in range(i + 1))
        found.append((pairs, first, high))
    return min(found)[1:]


wanted = [smallest(head) for head in range(2)]
assert wanted[0][0] == 64 and wanted[1][0] == 0, wanted
rows = [kept(head, window, first) for head, (first, window) in enumerate(wanted)]
write(f"{folder}/two.safetensors", {f"pattern/block.0.attn/{name}": ([2, length], [x for head in table for x in head])
                                   for name, table in (("a", a), ("r", r))})
write(f"{folder}/whole.safetensors", {"pattern/block.0.attn/p": ([2, length, length], [x for head in rows for row in head for x in row])})
cut = plan("cut", f'pattern = file("{folder}/two.safetensors"), negligible = {share}, cut = middle')
dense = plan("dense", f'pattern = file("{folder}/whole.safetensors"), form = dense')
with open(f"{folder}/dense.weft", "a") as file:
    file.write("plan wrong for nano { freeze 25% of block[..].attn.heads[..] at step 2 { form = dense, cut = middle } }\n")


def losses(path):
    with open(f"{path}/log.jsonl") as file:
        return [entry["loss"] for entry in map(json.loads, file) if entry["kind"] == "train"]


def digest(path):
    return [hashlib.sha256(open(f"{path}/checkpoints/step-{steps:08d}/{part}.safetensors", "rb").read()).hexdigest()
            for part in ("model", "state", "control")]


run(*fresh, "--plan", cut, "--out", f"{folder}/cut")
run(*fresh, "--plan", dense, "--out", f"{folder}/dense")
with open(f"{folder}/cut/checkpoints/step-{steps:08d}/run.json") as file:
    record = json.load(file)["decisions"]["freeze"]["frozen"]["block.0.attn"]
assert list(zip(record["first_places"], record["windows"])) == wanted, (record, wanted)
with open(f"{folder}/cut/log.jsonl") as file:
    line = [entry for entry in map(json.loads, file) if entry["kind"] == "freeze"][-1]
pairs = sum(x > 0 for head in rows for row in head for x in row) / (length * (length + 1))
assert abs(line["kept_pairs"] - pairs) < 1e-9, (line["kept_pairs"], pairs)
print("first places and windows: as tried one by one")

ours, theirs = losses(f"{folder}/cut"), losses(f"{folder}/dense")
assert len(ours) == steps and max(abs(x - y) for x, y in zip(ours, theirs)) < 2e-3, (ours, theirs)
assert ours[:2] == theirs[:2], (ours, theirs)
print("losses: those of whole matrices")

for stop in (1, 3):
    run(*fresh, "--plan", cut, "--out", f"{folder}/parts{stop}", "--until", str(stop))
    run("weft", "train", "--resume", f"{folder}/parts{stop}")
    assert digest(f"{folder}/parts{stop}") == digest(f"{folder}/cut"), stop
print("stopped and resumed: the same bytes")

number = lambda text: float(re.search(r"\d+\.\d+", text).group())
values = [json.loads(run("weft", "eval", f"{folder}/cut", "--json", *device))["loss"]
          for device in ([], ["--device", "reference"])]
assert abs(values[0] - values[1]) < 1e-5, values
print("evaluated by the interpreter: the same")
