"""window_regimes.py MODEL TEXT FOLDER: twelve steps under every regime and control of adaptive windows, each one
line of a plan, and what its definition implies for windows and ratios. Eight heads in two layers, rows of 64."""

import collections
import hashlib
import json
import subprocess
import sys

model, text, folder = sys.argv[1:]
T, LIST = 64, "[8, 16, 32, full]"
CANDIDATES = {8, 16, 32, "full"}
common = ["--set", "heads=8", "--set", f"data={text}", "--set", "held_out=none", "--set", "steps=12",
          "--set", "log=every 1 steps", "--set", "schedule=constant(warmup = 3 steps)"]

PLANS = {
    "off": "windows adaptive LIST { grouping = none }",
    "adaptive": "windows adaptive LIST",
    "shallow": "windows adaptive LIST { hierarchy = [2], topology = freeze }",
    "shallow10": "windows adaptive LIST { hierarchy = [2], topology = freeze, every = 10 steps }",
    "deep": "windows adaptive LIST { topology = reuse_heads }",
    "control_off": "windows adaptive LIST { control = off }",
    "fixed": "windows 16",
    "listed": "windows [8, 8, 8, 8, 16, 16, 32, full]",
    "later": "windows 16 from step 4",
    "fraction": "windows 16 from 50% of steps",
    "random_groups": "windows adaptive LIST { hierarchy = [2], grouping = random, topology = freeze }",
    "index_groups": "windows adaptive LIST { hierarchy = [2], grouping = index }",
    "shuffle": "windows adaptive LIST { shuffle = yes }",
    "shuffle_shallow": "windows adaptive LIST { hierarchy = [2], topology = freeze, shuffle = yes }",
    "independent": "windows adaptive LIST { scoring = independent }",
    "free": "windows adaptive LIST { parents = free }",
    "latest": "windows adaptive LIST { features = latest, resolution = latest }",
    "passthrough": "windows adaptive LIST { every = 2 steps, passthrough = after 5 steps }",
    "ramp": "windows adaptive LIST { ramp = 0..10 }",
    "start": "windows adaptive LIST { control = off, start = 16 }",
    "least": "windows adaptive LIST { least = 12 }",
    "shared": "windows adaptive LIST { scorers = shared, activation = relu, widths = [8, 16] }",
    "groups": "windows adaptive LIST { unit = kv_group, kept = update 2, topology = freeze }",
    "knobs": "windows adaptive LIST { hierarchy = [2, 3], capped = no, threshold = 0.5, penalty = 1.0, seed = 9 }",
    "same": "windows adaptive LIST { apply = same }",
    "random": "windows random LIST { share = [0.5, 0.3, 0.15, 0.05] }",
    "redraw": "windows random LIST { redraw = yes, seed = 3 }",
    "dealt": 'windows file("FOLDER/adaptive/windows.json") { permuted = yes }',
    "copied": 'windows file("FOLDER/adaptive/windows.json") from step 2',
}
with open(f"{folder}/plans.weft", "w") as file:
    for name, line in PLANS.items():
        file.write(f"plan {name} for nano {{ {line.replace('LIST', LIST).replace('FOLDER', folder)} }}\n")


def train(name, plan=True):
    plans = ["--plan", f"{folder}/plans.weft:{name}"] if plan else []
    done = subprocess.run(["weft", "train", model, *common, *plans, "--out", f"{folder}/{name}"], capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    with open(f"{folder}/{name}/log.jsonl") as file:
        lines = list(map(json.loads, file))
    return ([l for l in lines if l["kind"] == "train"], [l for l in lines if l["kind"] == "windows"])


def digest(name):
    with open(f"{folder}/{name}/checkpoints/step-00000012/model.safetensors", "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def ratio(windows):
    flat = [T if w == "full" else min(w, T) for site in windows for w in site]
    return sum(flat) / (len(flat) * T)


def pairs(windows):
    flat = [T if w == "full" else min(w, T) for site in windows for w in site]
    return sum(sum(min(i + 1, w) for i in range(T)) for w in flat) / (len(flat) * T * (T + 1) / 2)


plain, _ = train("plain", plan=False)
runs = {name: train(name) for name in PLANS}
FULL = [["full"] * 8] * 2
for name, (losses, lines) in runs.items():
    assert len(lines) == 12 and all(abs(l["loss"]) < 10 for l in losses), name
    for now, after in zip(lines, lines[1:]):  # windows of a line are in force in the next step
        decided = name == "same" and after["step"] % 5 == 1  # for the very step
        assert decided or abs(after["acr"] - ratio(now["windows"])) < 1e-12, (name, after["step"])
    for line in lines:
        assert abs(line["pair_ratio"] - pairs(line["windows"])) < 1e-12, (name, line["step"])
        assert abs(line["acr_mean"] - line["acr"]) < 1e-12, name
        counts = collections.Counter(T if w == "full" else w for site in line["windows"] for w in site)
        assert line["shares"] == {str(w): c / 16 for w, c in counts.items()}, (name, line)
    # Starting full, the first step is that of plain attention: a plan moves neither initialisation nor data.
    if lines[0]["acr"] == 1:
        assert losses[0]["loss"] == plain[0]["loss"], name
    with open(f"{folder}/{name}/windows.json") as file:
        assert json.load(file) == {"length": T, "windows": lines[-1]["windows"]}, name


def of(name):
    return [line["windows"] for line in runs[name][1]]


def chosen(name, allowed=CANDIDATES):
    assert {w for line in of(name) for site in line for w in site} <= allowed, name
    return of(name)


# Decided at steps 0, 5, 10, counted from 0: in lines 1, 6, 11; cached between. Levels of 8 heads: [4, 2].
for name, levels in (("off", 1), ("adaptive", 2), ("shallow", 1), ("deep", 2), ("independent", 2), ("free", 2), ("latest", 2)):
    windows = chosen(name)
    assert windows[0] == windows[4] and windows[5] == windows[9] and windows[10] == windows[11], name
    assert windows[0] != FULL, name
    line = runs[name][1][-1]
    assert set(line["levels"].values()) == {levels} and line["updates"] == 3, (name, line)
assert runs["shallow10"][1][-1]["updates"] == 2

assert of("control_off") == [FULL] * 12 and digest("control_off") == digest("plain")
assert digest("adaptive") != digest("plain")
assert all(line["acr"] == 0.25 for line in runs["fixed"][1])
assert all(line["acr"] == (4 * 8 + 2 * 16 + 32 + 64) / (8 * T) for line in runs["listed"][1])
assert [line["acr"] for line in runs["later"][1]] == [1] * 4 + [0.25] * 8
assert [line["acr"] for line in runs["fraction"][1]] == [1] * 6 + [0.25] * 6
assert of("start") == [[[16] * 8] * 2] * 12
assert {w for line in chosen("least", {12, 16, 32, "full"}) for site in line for w in site} & {12, 16, 32}

# Two groups of a layer have two windows at most; random ones of four heads each, index ones of neighbours.
for name in ("shallow", "random_groups", "index_groups"):
    for windows in chosen(name):
        assert all(len(set(map(str, site))) <= 2 for site in windows), name
for windows in of("index_groups"):
    assert all(len(set(map(str, site[:4]))) == 1 and len(set(map(str, site[4:]))) == 1 for site in windows)
groups = {tuple(sorted(map(str, site))) for windows in of("random_groups") for site in windows}
assert all(collections.Counter(site).most_common(1)[0][1] in (4, 8) for site in groups), groups

# A shuffle keeps each layer's windows and is not fed back.
for name, other in (("shuffle", "adaptive"), ("shuffle_shallow", "shallow")):
    for mixed, straight in zip(of(name)[0], of(other)[0]):
        assert sorted(map(str, mixed)) == sorted(map(str, straight)), name
assert of("shuffle")[0] != of("adaptive")[0]

passed = of("passthrough")
assert runs["passthrough"][1][-1]["updates"] == 3 and passed[4] == passed[11]
assert of("ramp")[0] == FULL, of("ramp")[0]  # a share of 0 at step 0, half at 5
for name in ("shared", "groups", "knobs", "same"):
    chosen(name)
assert runs["same"][1][0]["acr"] < 1  # in force in the very step
assert ratio(of("deep")[-1]) < 1 and digest("deep") != digest("shallow")

assert all(windows == of("random")[0] for windows in chosen("random"))
drawn = chosen("redraw")
assert drawn[0] == drawn[3] != drawn[4] == drawn[8] != drawn[9]  # of the next step: 5 and 10 draw anew
assert [sorted(map(str, site)) for site in of("dealt")[0]] == [sorted(map(str, site)) for site in of("adaptive")[-1]]
assert of("copied")[0] == FULL and of("copied")[1] == of("adaptive")[-1]

# Every feature of every head is known and moves, from the second update on at the latest.
shown = subprocess.run(["weft", "windows", f"{folder}/adaptive", "--json"], capture_output=True, text=True)
assert shown.returncode == 0, shown.stderr
for site in json.loads(shown.stdout)["sites"]:
    assert len(site["features"]) == 8
    for head in site["features"]:
        assert all(number > 0 for number in head["features"]), head
print(f"{len(PLANS)} plans do what they say")
