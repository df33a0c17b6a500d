"""last.py MODELS TEXT FOLDER: `weft prefill --last` gives the last row of what all positions give."""

import json
import struct
import subprocess
import sys

import numpy as np

models, text, folder = sys.argv[1:]


def weft(*arguments):
    done = subprocess.run(["weft", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr[-2000:])


def logits_in(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))["logits"]
        data = file.read()
    return np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(-1, entry["shape"][-1])


def train(name, model, *words):
    weft("train", f"{models}/{model}", "--set", f"data={text}", "--set", "held_out=none", "--set", "batch=2 x 64", *words,
         "--out", f"{folder}/{name}")
    return f"{folder}/{name}"


def plan(model, name, body):
    path = f"{folder}/{model}-{name}.weft"
    with open(path, "w") as file:
        file.write(f'use "{models}/{model}.weft"\nplan {name} for {model} {{ {body} }}\n')
    return f"{path}:{name}"


short = ["--set", "steps=12", "--set", "save=every 12 steps"]
san = ["--set", "vocab=256", "--set", "tokenizer=bytes", "--set", "dim=32", "--set", "depth=3", "--set", "heads=4", "--set", "kv=2",
       "--set", "head=8", "--set", "steps=4"]
runs = [train("plain", "nano.weft", *short),
        # A window shorter than the text: catches an offset that is one off.
        train("windows", "nano.weft", *short, "--plan", plan("nano", "near", "windows 5")),
        train("frozen", "nano.weft", *short, "--set", "heads=4",
              "--plan", plan("nano", "mixed", "freeze 50% of block[..].attn.heads[..] at step 6 { tolerance = none }")),
        train("san", "san.weft", *san)]
with open(text, "rb") as file:
    ids = list(file.read(41))
for run in runs:
    for count in (1, 2, 17, 41):
        with open(f"{folder}/ids", "w") as file:
            file.write(" ".join(map(str, ids[:count])))
        weft("prefill", run, "--tokens", f"{folder}/ids", "--out", f"{folder}/all")
        weft("prefill", run, "--tokens", f"{folder}/ids", "--last", "--out", f"{folder}/last")
        whole, last = logits_in(f"{folder}/all"), logits_in(f"{folder}/last")
        assert whole.shape[0] == count and last.shape[0] == 1, (run, whole.shape, last.shape)
        worst = np.abs(whole[-1] - last[0]).max()
        assert worst <= 2e-5, (run, count, worst)
print("last rows agree")
