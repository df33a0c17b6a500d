"""dense.py MODELS TEXT NUMPY FOLDER: heads that are frozen to a number for each pair of places."""

import hashlib
import json
import os
import re
import subprocess
import sys

import numpy as np

models, text, numpy, folder = sys.argv[1:]
sys.path.insert(0, numpy)
from reference import read_safetensors

nano = f"{models}/nano.weft"
fresh = ["weft", "train", nano, "--set", "heads=4", "--set", "log=every 1 steps", "--set", "steps=24", "--set", "batch=2 x 64",
         "--set", f"data={text}", "--set", "held_out=last 10%"]


def run(*arguments, code=0):
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def plan(name, body):
    path = f"{folder}/{name}.weft"
    with open(path, "w") as file:
        file.write(f'use "{nano}"\nplan {name} for nano {{ {body} }}\n')
    return f"{path}:{name}"


def train(name, body, *more):
    out = f"{folder}/{name}"
    run(*fresh, "--plan", plan(name, body), "--out", out, *more)
    return out


def checkpoint(path, step=24):
    return f"{path}/checkpoints/step-{step:08d}"


def digest(path):
    return [hashlib.sha256(open(f"{checkpoint(path)}/{part}.safetensors", "rb").read()).hexdigest()
            for part in ("model", "state", "control")]


def lines(path, kind):
    with open(f"{path}/log.jsonl") as file:
        return [entry for entry in map(json.loads, file) if entry["kind"] == kind]


def squares(path):
    """By site: patterns [heads, 64, 64], checked to be shares of what a query sees."""
    decided = json.load(open(f"{checkpoint(path)}/run.json"))["decisions"]["freeze"]["frozen"]
    held = {name: np.array(value) for name, value in read_safetensors(f"{checkpoint(path)}/control.safetensors").items()}
    found = {}
    for site, frozen in decided.items():
        p = found[site] = held.pop(f"pattern/{site}/p")
        assert frozen["dense"] and p.shape == (len(frozen["heads"]), 64, 64), (frozen, p.shape)
        for square, window in zip(p, frozen["windows"]):
            i, j = np.indices(square.shape)
            assert (square >= 0).all() and not square[(j > i) | (j <= i - window)].any()
            assert np.abs(square.sum(1) - 1).max() < 2**-8
    assert not any(name.startswith("pattern/") for name in held), list(held)
    return found


def check(path):
    losses = [entry["loss"] for entry in lines(path, "train")]
    assert len(losses) == 24 and np.isfinite(losses).all() and losses[-1] < losses[0], losses
    (event,) = lines(path, "freeze")
    assert event["form"] == "dense" and len(event["installed"]) == 2, event
    return squares(path)


quarter = "freeze 25% of block[..].attn.heads[..] at 50% of steps { tolerance = none }"
options = {"sharp": "pattern = sharp, form = dense", "uniform": "pattern = uniform, form = dense",
           "structured": "pattern = structured, form = dense", "resample": "pattern = resample",
           "gaussian": "pattern = gaussian", "dirichlet": "pattern = dirichlet(4)"}
made = {name: check(train(name, quarter.replace("none }", f"none, {words} }}"))) for name, words in options.items()}
# The same heads whatever replaces them, and another pattern by each.
assert len({tuple(sorted((site, p.shape) for site, p in found.items())) for found in made.values()}) == 1
first = [next(iter(sorted(found.items())))[1] for found in made.values()]
assert all(np.abs(a - b).max() > 1e-3 for n, a in enumerate(first) for b in first[:n])
for p in made["uniform"].values():
    assert np.abs(p[:, 9, :10] - 0.1).max() < 0.1 * 2**-8

# The mean against PyTorch's attention on the rows that the run left out.
mean = train("mean", quarter.replace("none }", "none, form = dense }"), "--set", "held_out=none", "--until", "12")
os.system(f"mkdir {mean}-12 && cp -r {checkpoint(mean, 12)} {mean}-12/")  # the decision replaces it
run("weft", "train", "--resume", mean)
check(mean)
(event,) = lines(mean, "freeze")
done = subprocess.run(["/usr/bin/python3", f"{numpy}/calibrate_nano.py", f"{mean}-12/step-00000012", text, "16", "64",
                       f"{checkpoint(mean)}/control.safetensors"], input=json.dumps(event), capture_output=True, text=True)
assert done.returncode == 0 and "patterns 2" in done.stdout, done

# What is drawn is drawn once: a run in parts ends with the same bytes, another seed with others.
drawn = f"{folder}/dirichlet"
for stop in ("11", "12", "13"):
    parts = train(f"parts{stop}", quarter.replace("none }", "none, pattern = dirichlet(4) }"), "--until", stop)
    run("weft", "train", "--resume", parts)
    assert digest(parts) == digest(drawn), stop
other = check(train("other", quarter.replace("none }", "none, pattern = dirichlet(4), seed = 5 }")))
assert all(np.abs(other[site] - p).max() > 1e-3 for site, p in made["dirichlet"].items())
# In groups: earlier squares stay where they are.
groups = train("groups", "freeze 50% of block[..].attn.heads[..] { tolerance = none, pattern = gaussian, schedule = groups(2, from = 25%, to = 75%) }")
assert sum(len(p) for p in squares(groups).values()) == 4

# Whatever reads the run knows of it.
evaluated = json.loads(run("weft", "eval", drawn, "--json"))
assert abs(evaluated["loss"] - lines(drawn, "eval")[-1]["loss"]) < 1e-6
run("weft", "prefill", drawn, "--text", "It is a truth", "--out", f"{folder}/logits.safetensors")
run("weft", "generate", drawn, "--prompt", "It is a truth", "--length", "8", "--temperature", "0")
assert "64 positions" in run("weft", "prefill", drawn, "--text", "x" * 100, code=1)
run(*fresh, "--set", "steps=2", "--from", drawn, "--out", f"{folder}/tuned")
run("weft", "compile", drawn, "--emit", "exe", "-o", f"{folder}/dense.exe")
assert "eval" in run("weft", "run", f"{folder}/dense.exe")

# Given squares, at once: rows are scaled, a negative entry is named.
site, square = sorted(made["gaussian"].items())[0]
frozen = json.load(open(f"{checkpoint(folder + '/gaussian')}/run.json"))["decisions"]["freeze"]["frozen"]
given = "\n".join(f"freeze block[{name.split('.')[1]}].attn.heads[{', '.join(map(str, heads['heads']))}] at step 0 "
                  f'{{ form = dense, pattern = file("{checkpoint(folder + "/gaussian")}/control.safetensors") }}'
                  for name, heads in frozen.items())
same = squares(train("given", given))
assert all(np.abs(same[name] - p).max() < 2**-8 for name, p in made["gaussian"].items())

# A finished run, and rankings beside one another.
plain = f"{folder}/plain"
run(*fresh, "--out", plain)
run("weft", "plan", "apply", plain, plan("applied", quarter.replace("none }", "none, pattern = resample }")), "--out", f"{folder}/applied")
squares(f"{folder}/applied")
run("weft", "train", "--resume", f"{folder}/applied", "--steps", "26")
said = run("weft", "freeze", plain, "--rate", "25%", "--out", f"{folder}/again", "--against", f"{folder}/applied/heads.json")
assert "of 8 heads in both rankings" in said, said
(event,) = lines(f"{folder}/again", "freeze")
assert event["against"]["spearman"] == event["against"]["kendall"] == 1 and event["against"]["heads"] == 8, event["against"]
reverse = json.load(open(f"{folder}/applied/heads.json"))
reverse["heads"].reverse()
json.dump(reverse, open(f"{folder}/reverse.json", "w"))
run("weft", "freeze", plain, "--rate", "25%", "--out", f"{folder}/turned", "--against", f"{folder}/reverse.json")
assert lines(f"{folder}/turned", "freeze")[0]["against"]["spearman"] == -1
assert "nowhere.json" in run("weft", "freeze", plain, "--out", f"{folder}/x", "--against", f"{folder}/nowhere.json", code=1)
print("fine")
