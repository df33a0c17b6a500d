"""freeze.py MODELS TEXT NUMPY FOLDER: heads that a plan freezes or prunes while a model trains."""

import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys

models, text, numpy, folder = sys.argv[1:]
nano = f"{models}/nano.weft"
fresh = ["weft", "train", nano, "--set", "heads=4", "--set", "log=every 1 steps", "--set", "steps=40", "--set", "batch=2 x 64",
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


def checkpoint(path, step=40):
    return f"{path}/checkpoints/step-{step:08d}"


def shapes(path, part="model"):
    return shapes_at(path, 40, part)


def shapes_at(path, step, part="model"):
    with open(f"{checkpoint(path, step)}/{part}.safetensors", "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def digest(path, step=40):
    parts = ["model", "state", "control"]
    return [hashlib.sha256(open(f"{checkpoint(path, step)}/{part}.safetensors", "rb").read()).hexdigest()
            for part in parts if os.path.exists(f"{checkpoint(path, step)}/{part}.safetensors")]


def lines(path, kind):
    with open(f"{path}/log.jsonl") as file:
        return [entry for entry in map(json.loads, file) if entry["kind"] == kind]


def count(shape):
    return math.prod(shape)


def train(name, body, *more):
    out = f"{folder}/{name}"
    run(*fresh, "--plan", plan(name, body), "--out", out, *more)
    return out


def check_run(path, frozen, pruned=0):
    losses = [entry["loss"] for entry in lines(path, "train")]
    assert len(losses) == 40 and all(math.isfinite(loss) for loss in losses), losses
    assert losses[-1] < losses[0], losses
    decisions = json.load(open(f"{checkpoint(path)}/run.json"))["decisions"]["freeze"]
    assert sum(len(site["heads"]) for site in decisions["frozen"].values()) == frozen, decisions
    assert sum(map(len, decisions["pruned"].values())) == pruned, decisions
    # A frozen head loses its slices of wq and wk, a pruned one those of wv and wo too:
    # 32 x 8 numbers each.
    found = shapes(path)
    whole = 2 * 4 * 32 * 32
    attention = sum(count(shape) for name, shape in found.items() if re.search(r"\.(wq|wk|wv|wo)$", name))
    assert attention == whole - 2 * 256 * frozen - 4 * 256 * pruned, (attention, found)
    moments = shapes(path, "state")
    for name, shape in found.items():
        if not name.startswith("pattern/"):
            assert moments["adamw.m/" + name] == shape, name
    return decisions


# A quarter of 8 heads at half time; the run in parts ends with the same bytes.
quarter = "freeze 25% of block[..].attn.heads[..] at 50% of steps { tolerance = none }"
straight = train("quarter", quarter)
check_run(straight, frozen=2)
(event,) = lines(straight, "freeze")
assert event["step"] == 20 and event["eligible"] == 8 and event["wanted"] == event["chosen"] == 2, event
assert all(0 <= head["kl"] < 5 and 0 <= head["entropy"] <= 1 for head in event["heads"]), event
order = [head["score"] for head in event["heads"]]
assert order == sorted(order) and [head["chosen"] for head in event["heads"]] == [True] * 2 + [False] * 6
heads = json.load(open(f"{straight}/heads.json"))["heads"]
assert [(head["layer"], head["head"]) for head in heads] == [(head["layer"], head["head"]) for head in event["heads"]]
assert "cost" in event and event["cost"]["loss_after"] > 0
for stop in (10, 20, 30):
    parts = train(f"parts{stop}", quarter, "--until", str(stop))
    run("weft", "train", "--resume", parts)
    assert digest(parts) == digest(straight), f"stopped after step {stop} and resumed"
    assert len(lines(parts, "freeze")) == 1

# Before the event nothing differs from a run without the plan: same data, same bytes.
ordinary = train("later", quarter.replace("50%", "75%"), "--until", "20")
assert digest(ordinary, 20)[:2] == digest(train("upto", quarter, "--until", "20"), 20)[:2]

# What a run lost it has lost for evaluation, prefill and generation too.
evaluated = json.loads(run("weft", "eval", straight, "--json"))
assert abs(evaluated["loss"] - lines(straight, "eval")[-1]["loss"]) < 1e-6
run("weft", "prefill", straight, "--text", "It is a truth", "--out", f"{folder}/logits.safetensors")
run("weft", "generate", straight, "--prompt", "It is a truth", "--length", "8", "--temperature", "0")
refused = run("weft", "prefill", straight, "--text", "x" * 100, code=1)
assert "64 positions" in refused and "100" in refused, refused

# Statements of other kinds: counts by arithmetic.
pruned = train("pruned", "prune 25% of block[..].attn.heads[..] at 50% of steps")
check_run(pruned, frozen=0, pruned=2)
assert lines(pruned, "freeze")[0]["by"] == "gate_taylor"
same = train("same", f'prune file("{straight}/heads.json") at 50% of steps')
assert {(head["site"], head["head"]) for head in lines(same, "freeze")[0]["installed"]} == {
    (head["site"], head["head"]) for head in event["installed"]}
check_run(same, frozen=0, pruned=2)
start = train("start", f'prune file("{straight}/heads.json") at step 0')
check_run(start, frozen=0, pruned=2)
refrozen = train("refrozen", f'freeze file("{straight}/heads.json") at 50% of steps')
assert check_run(refrozen, frozen=2)["frozen"] == check_run(straight, frozen=2)["frozen"]
# Patterns of another run's checkpoint, for heads that the plan names: no calibration.
frozen = check_run(straight, frozen=2)["frozen"]
given = train("given", "\n".join(
    f"freeze block[{site.split('.')[1]}].attn.heads[{', '.join(map(str, heads['heads']))}] at step 0 "
    f'{{ pattern = file("{checkpoint(straight)}/control.safetensors"), negligible = 0 }}' for site, heads in frozen.items()))
check_run(given, frozen=2)
tables = [open(f"{checkpoint(path)}/control.safetensors", "rb").read()[-2 * 4 * 64 * 2 :] for path in (given, straight)]
assert tables[0] == tables[1]
trained = train("trained", quarter.replace("none }", "none, patterns = trained }"))
check_run(trained, frozen=2)
assert any(name.startswith("pattern/") for name in shapes(trained)), shapes(trained)
groups = train("groups", "freeze 50% of block[..].attn.heads[..] { tolerance = none, schedule = groups(2, from = 25%, to = 75%) }")
check_run(groups, frozen=4)
assert [entry["step"] for entry in lines(groups, "freeze")] == [10, 30]
trigger = train("trigger", quarter.replace("none }", "none, schedule = trigger(50%) }"))
check_run(trigger, frozen=2)
assert lines(trigger, "freeze")[0]["step"] == 3  # an average over 2 steps never improves by half
parts = train("trigger2", quarter.replace("none }", "none, schedule = trigger(50%) }"), "--until", "2")
run("weft", "train", "--resume", parts)
assert digest(parts) == digest(trigger)
everything = train("every", "freeze 100% of block[..].attn.heads[..] at 50% of steps { tolerance = none }")
check_run(everything, frozen=8)

budget = train("budget", quarter.replace("25%", "50%").replace("none }", "none, schedule = budget(100%) }"))
check_run(budget, frozen=4)
tries = lines(budget, "freeze_budget")
assert [entry["step"] for entry in tries] == [20, 21, 22, 23] and all(entry["installed"] for entry in tries), tries
assert abs(tries[-1]["spent"] + tries[-1]["rise"] - sum(entry["rise"] for entry in tries)) < 1e-9
parts = train("budget2", quarter.replace("25%", "50%").replace("none }", "none, schedule = budget(100%) }"), "--until", "22")
run("weft", "train", "--resume", parts)
assert digest(parts) == digest(budget)

# A budget that nothing fits: every group is tried and left as it was, bit for bit.
tight = "freeze 50% of block[..].attn.heads[..] at 50% of steps { tolerance = none, pattern = uniform, order = highest, schedule = budget(0.001%) }"
left = train("left", tight)
check_run(left, frozen=0)
assert [entry["installed"] for entry in lines(left, "freeze_budget")] == [False] * 20
never = train("never", tight.replace("at 50%", "at 97.5%"))  # after step 39
assert digest(left)[:2] == digest(never)[:2]

# Windows that a controller chooses: a frozen head keeps its own for good, the rest stay under control.
both = "windows adaptive [8, 16, 32, full] { every = 2 steps }\n" + quarter
windowed = train("windowed", both)
decisions = check_run(windowed, frozen=2)
assert all(window in (8, 16, 32, 64, 2147483647) or window < 64
           for site in decisions["frozen"].values() for window in site["windows"]), decisions
parts = train("windowed2", both, "--until", "23")
run("weft", "train", "--resume", parts)
assert digest(parts) == digest(windowed)
fixed = train("fixed", "windows 16\n" + quarter)
assert all(window <= 16 for site in check_run(fixed, frozen=2)["frozen"].values() for window in site["windows"])

# Every score against PyTorch, densely, on the rows that the run left out.
for by, numbers in (("gradient_veto", 48), ("residual_cosine", 40)):
    exact = train(f"exact_{by}", quarter.replace("none }", f"none, by = {by} }}"), "--set", "held_out=none", "--until", "20")
    os.makedirs(f"{exact}-20")
    os.system(f"cp -r {checkpoint(exact, 20)} {exact}-20/")  # the decision replaces it
    run("weft", "train", "--resume", exact, "--until", "21")
    (entry,) = lines(exact, "freeze")
    done = subprocess.run(["/usr/bin/python3", f"{numpy}/calibrate_nano.py", f"{exact}-20/step-00000020", text, "16", "64"],
                          input=json.dumps(entry), capture_output=True, text=True)
    assert done.returncode == 0 and f"compared {numbers}" in done.stdout, done

# Selectors and patterns.
for by in ("forward_kl", "residual_cosine", "qk_gradient", "rank_sum", "gradient_veto", "gate_taylor", "random(matched)", "random(unmatched)"):
    name = re.sub(r"\W", "_", by)
    done = train(name, quarter.replace("none }", f"none, by = {by} }}"), "--until", "20")
    run("weft", "train", "--resume", done, "--until", "22")
    (entry,) = lines(done, "freeze")
    assert entry["by"] == by and len(entry["installed"]) == 2, entry
for pattern in ("sharp", "uniform", "structured", "zero"):
    done = train(pattern, quarter.replace("none }", f"none, pattern = {pattern} }}"))
    check_run(done, frozen=0 if pattern == "zero" else 2, pruned=2 if pattern == "zero" else 0)

# What a checkpoint lost, an executable compiled from it lacks.
run("weft", "compile", straight, "--emit", "exe", "-o", f"{folder}/frozen.exe")
assert "eval" in run("weft", "run", f"{folder}/frozen.exe")

# A finished run: weft freeze and weft plan apply give a run that goes on.
plain = f"{folder}/plain"
run(*fresh, "--out", plain)
run("weft", "freeze", plain, "--rate", "50%", "--out", f"{folder}/half")
half = json.load(open(f"{checkpoint(f'{folder}/half')}/run.json"))["decisions"]["freeze"]
assert 1 <= sum(len(site["heads"]) for site in half["frozen"].values()) <= 4
run("weft", "eval", f"{folder}/half")
run("weft", "plan", "apply", plain, plan("two", "prune 2 of block[..].attn.heads[..] at 50% of steps"), "--out", f"{folder}/two")
run("weft", "train", "--resume", f"{folder}/two", "--steps", "42")
run(*fresh, "--set", "steps=2", "--from", straight, "--out", f"{folder}/tuned")
tuned = json.load(open(f"{checkpoint(f'{folder}/tuned', 2)}/run.json"))["decisions"]["freeze"]
assert tuned["frozen"] == json.load(open(f"{checkpoint(straight)}/run.json"))["decisions"]["freeze"]["frozen"]

# Shared keys, documents of their own, Muon: key heads leave whole, a run in parts is the same.
san = ["weft", "train", f"{models}/san.weft", "--set", f"data={text}", "--set", "held_out=none", "--set", "tokenizer=bytes",
       "--set", "batch=2 x 64", "--set", "steps=6", *(word for size in ("vocab=256", "dim=32", "depth=2", "heads=8", "kv=4", "head=8")
                                                     for word in ("--set", size))]
with open(f"{folder}/grouped.weft", "w") as file:
    file.write(f'use "{models}/san.weft"\nplan grouped for san {{ freeze 50% of block[..].attn.heads[..] at 50% of steps '
               "{ tolerance = none, unit = kv_group } }\n")
run(*san, "--plan", f"{folder}/grouped.weft:grouped", "--out", f"{folder}/grouped")
found = shapes_at(f"{folder}/grouped", 6)
assert sum(count(shape) for name, shape in found.items() if name.endswith(".wq")) == 8 * 32 * 8, found
assert sum(count(shape) for name, shape in found.items() if name.endswith(".wk")) == 4 * 32 * 8, found
run(*san, "--plan", f"{folder}/grouped.weft:grouped", "--out", f"{folder}/grouped2", "--until", "3")
run("weft", "train", "--resume", f"{folder}/grouped2")
assert digest(f"{folder}/grouped2", 6) == digest(f"{folder}/grouped", 6)

# Errors that a user will make.
with open(f"{folder}/short.txt", "w") as file:
    file.write("It is a truth. " * 500)
refusal = run(*fresh, "--set", "batch=2 x 2048", "--set", "held_out=none", "--set", f"data={folder}/short.txt", "--plan",
           plan("short", quarter), "--out", f"{folder}/x", code=1)
assert "16 rows of 2048" in refusal, refusal
for name, options, words in (
        ("drawn", "pattern = resample, form = compact", "dense beside pattern = resample"),
        ("kept", "form = dense, patterns = trained", "kept as they are made"),
        ("fitted", "form = dense", "compact and dense")):
    body = quarter.replace("none }", f"none, {options} }}")
    if name == "fitted":
        body = ("freeze block[..].attn.heads[0] at 25% of steps { tolerance = none }\n"
                "freeze block[..].attn.heads[1] at 50% of steps { tolerance = none, form = dense }")
    refusal = run(*fresh, "--plan", plan(name, body), "--out", f"{folder}/x-{name}", code=1)
    assert words in refusal, refusal
refusal = run(*fresh, "--set", "batch=1 x 4096", "--plan", plan("long", quarter.replace("none }", "none, pattern = gaussian }")),
              "--out", f"{folder}/x", code=1)
assert "at most 2048, found 4096, which is 67108864 bytes a head" in refusal, refusal
print("fine")
