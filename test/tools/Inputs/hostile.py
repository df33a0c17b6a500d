"""hostile.py CASE FOLDER MODELS TEXT: machines that are full, shared, or lie.

disk    files may not grow past 64 KiB: one line, exit code 1, and what was there stays
shared  two processes fill one kernel cache at the same moment: both are right
flipped every file of the cache damaged somewhere: compiled again, the same bytes
edited  a run whose log and decisions were changed by hand: read as far as they are right, or refused
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys

case, folder, models, text = sys.argv[1:]
nano = os.path.join(models, "nano.weft")
train = ["weft", "train", nano, "--set", f"data={text}", "--set", "held_out=none", "--set", "steps=4", "--set", "save=every 2 steps keep 1"]


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def narrow():
    """Writes past 64 KiB fail as on a full disk, with an error instead of a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))


def disk():
    done = run(*train, "--out", f"{folder}/whole")
    assert done.returncode == 0, done
    before = sorted(os.listdir(f"{folder}/whole/checkpoints"))
    done = run("weft", "train", "--resume", f"{folder}/whole", "--steps", "8", preexec_fn=narrow)
    assert done.returncode == 1, done
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("weft: ") and "safetensors" in line and "needed" in line and "free" in line, line
    assert sorted(os.listdir(f"{folder}/whole/checkpoints")) == before, "the last good checkpoint is gone, or half a new one is there"
    # With room again the run goes on from there.
    done = run("weft", "train", "--resume", f"{folder}/whole", "--steps", "8")
    assert done.returncode == 0, done
    # What was written by other commands is whole or not there.
    done = run("weft", "params", nano, "--dump", f"{folder}/start.safetensors", preexec_fn=narrow)
    assert done.returncode == 1 and not os.path.exists(f"{folder}/start.safetensors"), done
    done = run("weft", "compile", nano, "--emit", "exe", "-o", f"{folder}/nano.exe", preexec_fn=narrow)
    assert done.returncode == 1 and not os.path.exists(f"{folder}/nano.exe"), done
    assert [name for name in os.listdir(folder) if name.startswith(".")] == [], os.listdir(folder)


def compiled(cache, out):
    return ["weft", "compile", nano, "--emit", "exe", "-o", out], {**os.environ, "WEFT_CACHE_DIR": cache}


def shared():
    cache = f"{folder}/cache"
    command, environment = compiled(f"{folder}/alone", f"{folder}/alone.exe")
    assert run(*command, env=environment).returncode == 0
    started = []
    for number in range(2):
        command, environment = compiled(cache, f"{folder}/{number}.exe")
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for process in started:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
    contents = {open(f"{folder}/{name}.exe", "rb").read() for name in ("alone", 0, 1)}
    assert len(contents) == 1, "executables differ"
    left = [name for _, _, names in os.walk(cache) for name in names if ".tmp" in name]
    assert left == [], left


def flipped():
    cache = f"{folder}/cache"
    command, environment = compiled(cache, f"{folder}/one.exe")
    assert run(*command, env=environment).returncode == 0
    draw = random.Random(5)
    files = [os.path.join(root, name) for root, _, names in os.walk(cache) for name in names]
    assert len(files) > 20, files
    for path in files:
        with open(path, "r+b") as file:
            data = bytearray(file.read())
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            file.seek(0)
            file.write(data)
    command, environment = compiled(cache, f"{folder}/two.exe")
    done = run(*command, env=environment)
    assert done.returncode == 0, done
    assert open(f"{folder}/one.exe", "rb").read() == open(f"{folder}/two.exe", "rb").read()
    # An empty file, a folder in a file's place.
    os.truncate(files[0], 0)
    os.remove(files[1])
    os.mkdir(files[1])
    done = run(*command, env=environment)
    assert done.returncode == 0, done
    assert open(f"{folder}/one.exe", "rb").read() == open(f"{folder}/two.exe", "rb").read()


# Each has one field of a type that no run writes, or lacks one.
LINES = """[1]
{"kind": 3, "step": 1}
{"kind": "eval", "step": "one", "loss": 1}
{"kind": "eval", "step": 2}
{"kind": "eval", "step": 2, "loss": "low"}
{"kind": "eval", "step": 2, "loss": 1, "regions": 5}
{"kind": "eval", "step": 2, "loss": 1, "regions": [{"name": 1, "targets": 3, "share": 1, "loss": 1}]}
{"kind": "eval", "step": 2, "loss": 1, "regions": [{"name": "a", "share": 1, "loss": 1}]}
{"kind": "watch", "step": 2, "watch": 7, "kinds": {"a": 1}}
{"kind": "watch", "step": 2, "watch": "norm(all)"}
{"kind": "windows", "step": 2, "windows": [["x"], 4]}
{"kind": "freeze", "step": {}, "heads": 1}
{"kind": "train", "step": 1e300, "loss": {"a": []}}
"""
GOOD = """{"kind": "eval", "step": 4, "loss": 1.5, "regions": [{"name": "prose", "targets": 3, "share": 1, "loss": 1.5}]}
{"kind": "watch", "step": 4, "watch": "norm(all)", "kinds": {"gain": 2.5}}
"""
DECISIONS = [
    {"freeze": 1},
    {"freeze": {"positions": 64, "frozen": {"block.0.attn": {"heads": [0], "windows": [8], "trained": "yes"}}, "pruned": {}, "statements": {}, "events": []}},
    {"freeze": {"positions": 64, "frozen": {}, "pruned": {}, "statements": {"a/0": {"installed": 0, "tried": 0, "due": 0, "spent": 0, "done": 4}}, "events": []}},
    {"freeze": {"positions": 64, "frozen": {}, "pruned": {}, "statements": {}, "events": ["x"]}},
    {"freeze": {"positions": 64, "frozen": {}, "pruned": {}, "statements": {}, "events": [{"statement": 3, "heads": 4}]}},
]


# Mutation caught: isWhole in MeasureCommand.cpp that lets a line through; readFlag's check left out.
def edited():
    place = f"{folder}/run"
    assert run(*train, "--out", place).returncode == 0
    with open(f"{place}/log.jsonl", "a") as file:
        file.write(LINES + GOOD)
    for action in (["measure", "curves"], ["measure", "watch"], ["measure", "regions"], ["diff", place]):
        done = run("weft", *action, place)
        assert done.returncode == 0, (action, done)
        if action[0] == "measure":
            assert "4" in done.stdout.split(), (action, done.stdout)
    for to in (["--csv", f"{folder}/log.csv"], ["--tensorboard", f"{folder}/board"]):
        done = run("weft", "log", place, *to)
        assert done.returncode == 1 and "log.jsonl' line 3: expected an object" in done.stderr, done
    done = run("weft", "inspect", place, "--out", f"{folder}/page.html")
    assert done.returncode == 0, done
    last = f"{place}/checkpoints/{max(name for name in os.listdir(f'{place}/checkpoints') if name.startswith('step-'))}"
    with open(f"{last}/run.json") as file:
        info = json.load(file)
    for decisions in DECISIONS:
        with open(f"{last}/run.json", "w") as file:
            json.dump({**info, "decisions": decisions}, file)
        done = run("weft", "train", "--resume", place, "--steps", "8")
        assert done.returncode == 1 and "decisions" in done.stderr and "itself" not in done.stderr, (decisions, done)


{"disk": disk, "shared": shared, "flipped": flipped, "edited": edited}[case]()
