"""window_resume.py MODEL TEXT FOLDER: a run whose windows are chosen ends with the same bytes when it stops before,
at and after a control step, or is killed, and goes on. Then evaluation: cached, live, of a plan that is added."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

model, text, folder = sys.argv[1:]
LINE = "windows adaptive [8, 16, 32, full]"
PLANS = {
    "deep": f"{LINE} {{ topology = reuse_heads, kept = update 2, shuffle = yes }}",
    "frozen": f"{LINE} {{ topology = freeze, resolution = average(0.5), passthrough = after 11 steps }}",
    "cached": LINE,
    "live": f"{LINE} {{ evaluation = live }}",
    "drawn": "windows random [8, 16] { redraw = yes }",
    "together": f"{LINE} {{ hierarchy = [2, 2], topology = freeze }}\n freeze 25% of block[..].attn.heads[..] at 50% of steps {{ tolerance = none }}",
    "given": f'windows file("{folder}/given.json") from step 8',
}
with open(f"{folder}/plans.weft", "w") as file:
    for name, line in PLANS.items():
        file.write(f"plan {name} for nano {{ {line} }}\n")
with open(f"{folder}/given.json", "w") as file:
    json.dump({"length": 64, "windows": [[8, 16, 32, "full"]] * 2}, file)
fresh = ["weft", "train", model, "--set", "heads=4", "--set", f"data={text}", "--set", "held_out=last 25%",
         "--set", "eval=every 4 steps", "--set", "log=every 1 steps"]


def weft(*arguments, code=0):
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == code, done
    return done.stdout


def digest(run, step=14):
    checkpoint = f"{run}/checkpoints/step-{step:08d}"
    files = sorted(name for name in os.listdir(checkpoint) if name.endswith(".safetensors"))
    return {name: hashlib.sha256(open(f"{checkpoint}/{name}", "rb").read()).hexdigest() for name in files}


def logged(run, kind):
    with open(f"{run}/log.jsonl") as file:
        return [line for line in map(json.loads, file) if line["kind"] == kind]


for name in PLANS:
    plan = ["--plan", f"{folder}/plans.weft:{name}", "--set", "steps=14"]
    straight = f"{folder}/{name}"
    weft(*fresh, *plan, "--out", straight)
    whole = digest(straight)
    assert {"control.safetensors", "controller.safetensors"} <= set(whole), whole
    for stop in ((5, 6, 10, 11) if name == "deep" else () if name == "cached" else (6, 9)):
        parts = f"{folder}/{name}-{stop}"
        weft(*fresh, *plan, "--until", str(stop), "--out", parts)
        if name == "given":  # what the file said is in the checkpoint
            os.rename(f"{folder}/given.json", f"{folder}/gone.json")
        weft("weft", "train", "--resume", parts)
        if name == "given":
            os.rename(f"{folder}/gone.json", f"{folder}/given.json")
        assert digest(parts) == whole, (name, stop)
        assert logged(parts, "windows") == logged(straight, "windows"), (name, stop)

# Frozen heads leave the controller with the window that they had.
lines = logged(f"{folder}/together", "windows")
shown = json.loads(weft("weft", "windows", f"{folder}/together", "--json"))
left = {(site, head) for site, entry in enumerate(shown["sites"]) for head in entry["left"]}
assert len(left) == 2, left
for site, head in left:
    assert len({str(line["windows"][site][head]) for line in lines[6:]}) == 1, (site, head)
live = [64 if w == "full" else w for site, row in enumerate(lines[-1]["windows"]) for head, w in enumerate(row) if (site, head) not in left]
assert abs(lines[-1]["acr_live"] - sum(live) / (6 * 64)) < 1e-12, lines[-1]

# Killed in the middle, between two saves.
long = [*fresh, "--plan", f"{folder}/plans.weft:deep", "--set", "steps=600", "--set", "eval=every 600 steps", "--set", "save=every 7 steps keep 2"]
weft(*long, "--out", f"{folder}/long")
process = subprocess.Popen([*long, "--out", f"{folder}/killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while process.poll() is None and not (os.path.exists(f"{folder}/killed/log.jsonl") and len(open(f"{folder}/killed/log.jsonl").readlines()) > 80):
    time.sleep(0.01)
assert process.poll() is None
process.send_signal(signal.SIGKILL)
process.wait()
weft("weft", "train", "--resume", f"{folder}/killed")
assert digest(f"{folder}/killed", 600) == digest(f"{folder}/long", 600)


def evaluated(*arguments):
    return json.loads(weft("weft", "eval", *arguments, "--json"))


def loss(*arguments):
    return evaluated(*arguments)["loss"]


# Live evaluations let the controller run on what they measure, and leave the run alone.
assert digest(f"{folder}/live")["model.safetensors"] == digest(f"{folder}/cached")["model.safetensors"]
both = [[line["loss"] for line in logged(f"{folder}/{name}", "eval")] for name in ("live", "cached")]
assert len(both[0]) == 4 and both[0] != both[1], both

# Evaluations use the checkpoint's windows; those of another set would give another loss.
cached = loss(f"{folder}/deep")
assert abs(cached - logged(f"{folder}/deep", "eval")[-1]["loss"]) < 1e-6
assert cached == loss(f"{folder}/deep")
# A run without a plan, evaluated under plans that it was trained without.
weft(*fresh, "--set", "steps=14", "--out", f"{folder}/plain")
plain = loss(f"{folder}/plain")
added = {name: loss(f"{folder}/plain", "--plan", f"{folder}/plans.weft:{name}") for name in ("deep", "live", "drawn")}
assert all(value != plain for value in added.values()), (plain, added)
assert loss(f"{folder}/plain") == plain
# The loss stands beside the share of context: of the checkpoint's windows, or a mean over live batches.
assert "acr" not in evaluated(f"{folder}/plain")
assert evaluated(f"{folder}/plain", "--plan", f"{folder}/plans.weft:drawn")["acr"] <= 0.25
assert 0.125 <= evaluated(f"{folder}/plain", "--plan", f"{folder}/plans.weft:deep")["acr"] < 1
shown = json.loads(weft("weft", "windows", f"{folder}/deep", "--json"))
assert evaluated(f"{folder}/deep")["acr"] == shown["acr"]
assert "windows" not in str(sorted(os.listdir(f"{folder}/plain")))

# And trained on with one: the plan stands in the run from then on.
weft("weft", "train", "--resume", f"{folder}/plain", "--plan", f"{folder}/plans.weft:deep", "--steps", "20")
lines = logged(f"{folder}/plain", "windows")
assert [line["step"] for line in lines] == list(range(15, 21)) and lines[0]["acr"] == 1, lines
assert lines[-1]["acr"] < 1 and "plan deep" in open(f"{folder}/plain/run.weft").read()
assert loss(f"{folder}/plain") != plain
weft("weft", "train", "--resume", f"{folder}/plain", "--steps", "22")

# A new run from these weights has windows, too: those of its plan, never silently none.
start = [*fresh, "--set", "steps=3", "--from", f"{folder}/deep"]
weft(*start, "--out", f"{folder}/bare", code=1)
weft(*start, "--plan", f"{folder}/plans.weft:deep", "--out", f"{folder}/tuned")
assert logged(f"{folder}/tuned", "windows")[0]["acr"] < 1
print("windows go on exactly")
