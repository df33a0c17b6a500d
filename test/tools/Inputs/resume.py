"""resume.py MODEL TEXT FOLDER WORKERS: ten steps straight, in parts, after an interrupt and after a kill."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

model, text, folder, workers = sys.argv[1:]
environment = dict(os.environ, WEFT_THREADS=workers)
fresh = ["weft", "train", model, "--set", f"data={text}", "--set", "held_out=none", "--set", "log=every 1 steps"]


def weft(*arguments):
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


def digest(run, step=10):
    checkpoint = f"{run}/checkpoints/step-{step:08d}"
    return [hashlib.sha256(open(f"{checkpoint}/{part}.safetensors", "rb").read()).hexdigest() for part in ("model", "state")]


def steps(run):
    with open(f"{run}/log.jsonl") as file:
        return [entry["step"] for entry in map(json.loads, file) if entry["kind"] == "train"]


straight, parts = f"{folder}/straight-{workers}", f"{folder}/parts-{workers}"
weft(*fresh, "--set", "steps=10", "--out", straight)
weft(*fresh, "--set", "steps=10", "--until", "5", "--out", parts)
assert os.listdir(f"{parts}/checkpoints").count("step-00000005") == 1
weft("weft", "train", "--resume", parts)
assert digest(parts) == digest(straight), "stopped after step 5 and resumed"
assert steps(parts) == list(range(1, 11)), steps(parts)

# Long enough to be met in the middle; a checkpoint every 50 steps.
total = 4000
long = [*fresh, "--set", f"steps={total}", "--set", "save=every 50 steps keep 2"]
reference = f"{folder}/long-{workers}"
weft(*long, "--out", reference)


def meet(run, number):
    """Starts a run and sends it a signal when it has passed step 120."""
    process = subprocess.Popen([*long, "--out", run], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (os.path.exists(f"{run}/log.jsonl") and len(steps_so_far(run)) >= 120):
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def steps_so_far(run):
    with open(f"{run}/log.jsonl") as file:
        return file.readlines()


for name, number in (("interrupt", signal.SIGINT), ("kill", signal.SIGKILL)):
    run = f"{folder}/{name}-{workers}"
    code, output, errors = meet(run, number)
    if number == signal.SIGINT:
        assert code == 130 and "interrupted and saved; go on with: weft train --resume" in output, (code, output, errors)
    else:
        assert code == -signal.SIGKILL, code
    assert max(int(entry[5:]) for entry in os.listdir(f"{run}/checkpoints") if entry.startswith("step-")) < total
    weft("weft", "train", "--resume", run)
    assert digest(run, total) == digest(reference, total), f"resumed after {name}"
    assert steps(run) == list(range(1, total + 1)), name
