"""plan_edits.py MODELS TEXT FOLDER: what a resumed run makes of edited plans and lost files.

Whatever differs from what the run was trained with is refused by name or carried
out with a line that says so; the run's folder stays as it was where it is refused.
"""

import json
import os
import re
import shutil
import subprocess
import sys

models, text, folder = sys.argv[1:]
nano = f"{models}/nano.weft"
count = 0


def run(*arguments, code=0):
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def train(name, body):
    with open(f"{folder}/{name}.weft", "w") as file:
        file.write(f'use "{nano}"\nplan {name} for nano {{\n{body}\n}}\n')
    run("weft", "train", nano, "--set", "heads=4", "--set", "steps=8", "--set", "batch=2 x 64", "--set", f"data={text}",
        "--set", "held_out=none", "--plan", f"{folder}/{name}.weft:{name}", "--out", f"{folder}/{name}", "--until", "4")
    return f"{folder}/{name}"


def checkpoint(path):
    return f"{path}/checkpoints/" + open(f"{path}/checkpoints/latest").read().strip()


def edited(path, old, new, *more, code=1):
    """Resumes a copy of the run at `path` with `old` in its text replaced."""
    global count
    count += 1
    copy = f"{path}-{count}"
    shutil.copytree(path, copy)
    source = open(f"{copy}/run.weft").read()
    assert re.search(old, source), (old, source)
    source = re.sub(old, new, source)
    open(f"{copy}/run.weft", "w").write(source)
    message = run("weft", "train", "--resume", copy, *more, code=code)
    if code:
        assert open(f"{copy}/run.weft").read() == source and checkpoint(copy).endswith("4"), copy
    return message


def refused(message, *words):
    for word in words:
        assert word in message, (word, message)


windows = train("adaptive", "  windows adaptive [8, 16, full] { every = 2 steps }")
refused(edited(windows, "every = 2 steps", "every = 3 steps"), "every = 2 steps", "every = 3 steps", "step 4")
refused(edited(windows, r"\[8, 16, full\]", "[8, 32, full]"), "[8, 32, full]")
refused(edited(windows, r"windows adaptive.*", "windows 8"), "`windows 8`")
refused(edited(windows, r"(?s)plan adaptive.*?\n}\n", ""), "plan adaptive", "none of that name")
refused(edited(windows, r"plan adaptive", "plan other"), "plan adaptive", "none of that name")
refused(edited(windows, r"(windows adaptive.*)", r"\1\n  windows 8 on block[0].attn.heads[0]"), "a plan of its own")
edited(windows, r"every = 2 steps", "every  =  2   steps", code=0)  # spaces are no change

# A controller that got lost would start anew in silence.
lost = f"{folder}/lost"
shutil.copytree(windows, lost)
os.remove(f"{checkpoint(lost)}/controller.safetensors")
for command in (("train", "--resume", lost), ("eval", lost, "--data", text), ("windows", lost),
                ("train", nano, "--set", "heads=4", "--set", f"data={text}", "--set", "held_out=none", "--from", lost, "--out", f"{folder}/x")):
    refused(run("weft", *command, code=1), "controller.safetensors", "restore the file")
assert not os.path.exists(f"{folder}/x")

# A statement that has not begun may be another; one that has may not.
later = train("later", "  prune 2 of block[..].attn.heads[..] at step 6 { calibrate = 16 rows }")
message = edited(later, "prune 2", "prune 3", code=0)
refused(message, "had not begun", "prune 3")
record = json.load(open(f"{checkpoint(f'{later}-{count}')}/run.json"))["decisions"]["freeze"]
assert sum(map(len, record["pruned"].values())) == 3, record
groups = train("groups", "  freeze 4 of block[..].attn.heads[..] { tolerance = none, schedule = groups(2, from = 25%, to = 75%) }")
refused(edited(groups, r"groups\(2", "groups(4"), "groups(2", "groups(4")
refused(edited(groups, "freeze 4", "freeze 2"), "freeze 4", "freeze 2")
budget = train("budget", "  freeze 4 of block[..].attn.heads[..] at 25% of steps { tolerance = none, schedule = budget(100%) }")
refused(edited(budget, r"budget\(100%\)", "budget(10%)"), "budget(10%)")

# A plan that is added and can't be carried out is not kept.
with open(f"{folder}/missing.weft", "w") as file:
    file.write(f'use "{nano}"\nplan missing for nano {{ windows file("nowhere.json") }}\n')
source = open(f"{later}/run.weft").read()
refused(run("weft", "train", "--resume", later, "--plan", f"{folder}/missing.weft:missing", code=1), "nowhere.json")
assert open(f"{later}/run.weft").read() == source

# The patterns of frozen heads are in control.safetensors.
bare = f"{folder}/bare"
shutil.copytree(groups, bare)
os.remove(f"{checkpoint(bare)}/control.safetensors")
refused(run("weft", "train", "--resume", bare, code=1), "pattern/block.", "restore the file")

# The run's own plan may be named again, another of its name may not.
run("weft", "train", "--resume", windows, "--plan", f"{folder}/adaptive.weft:adaptive", "--until", "5")
run("weft", "train", "--resume", windows, "--plan", "adaptive", "--until", "6")
with open(f"{folder}/another.weft", "w") as file:
    file.write(f'use "{nano}"\nplan adaptive for nano {{ windows 8 }}\n')
refused(run("weft", "train", "--resume", windows, "--plan", f"{folder}/another.weft:adaptive", code=1), "another name")

# run.weft repeats the run, plans and all.
run("weft", "train", "--resume", windows)
refused(run("weft", "train", "--resume", windows), "step 8/8: nothing was left to do")
run("weft", "train", f"{windows}/run.weft", "--out", f"{folder}/again")
for part in ("model", "state", "control", "controller"):
    pair = [open(f"{checkpoint(path)}/{part}.safetensors", "rb").read() for path in (windows, f"{folder}/again")]
    assert pair[0] == pair[1], part
print("every edit was named")
