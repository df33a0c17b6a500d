"""`--memory auto` on a device of 1 GiB (the stub's) for models whose state leaves room
for no more than one policy.

usage: memory_auto.py MODELS OUT

Each model is nano with a table of positions as large as it takes: plans are read from
the compiler, what auto leaves beside them (half a GiB and a 32nd part) from its rule.
"""
import re
import subprocess
import sys

models, out = sys.argv[1:]
MIB = 1 << 20
SHAPE = ["--batch", "8", "--positions", "1024"]
ROOM = (1024 - 512) * MIB * 32 / 33
SETS = {"depth": 8, "dim": 8, "heads": 1, "hidden": 32}


def weft(*words):
    return subprocess.run(["weft", *words], check=True, capture_output=True, text=True).stdout


def sets(**more):
    return [word for name, value in {**SETS, **more}.items() for word in ("--set", f"{name}={value}")]


def model(places):
    path = f"{out}/wide-{places}.weft"
    text = open(f"{models}/nano.weft").read().replace("vocab = 256,", f"vocab = 256, context = {places},")
    text = text.replace("x = embed[tokens]", "param place : [context, dim] init 0\n  x = embed[tokens] + place[position]")
    open(path, "w").write(text)
    return path


def arena(policy):
    text = weft("compile", model(1024), *sets(), *SHAPE, "--target", "sm_90a", "--memory", policy,
                "--emit", "schedule", "--program", "micro,update")
    return max(int(bytes) for bytes in re.findall(r"arena (\d+)", text))


def run(state):
    """What auto says where state takes so much: 4 numbers a weight, 8 weights a place."""
    path = model(int(state) // (4 * 4 * SETS["dim"]))
    said = weft("bench", path, *sets(), *SHAPE, "--steps", "1", "--device", "cuda")
    choice = re.search(r"memory (\w+) \(the first that fits\)(, no more than needed)?: arena ([0-9.]+) MiB", said)
    assert choice, said
    return choice[1], bool(choice[2]), float(choice[3]) * MIB


plans = {policy: arena(policy) for policy in ("fast", "lean", "tight")}
sizes = re.findall(r"([0-9.]+) (KiB|MiB)", weft("size", f"{models}/nano.weft", "--params", "24.7k", "--memory", "sm_90a"))
state, held, planned = (float(number) * {"KiB": 1 << 10, "MiB": MIB}[unit] for number, unit in sizes[:3])
workspace = planned - state - held
left = ROOM - workspace
for expected, needed, bound in (
    (("fast", False), plans["fast"], plans["fast"] + MIB),
    (("lean", False), plans["lean"], plans["fast"]),
    (("tight", True), plans["lean"] - (plans["lean"] - plans["tight"]) / 4, plans["lean"]),
):
    policy, some, found = run(left - (needed + bound) / 2)
    assert (policy, some) == expected, (policy, some, expected, plans)
    assert found <= bound and (policy != "tight" or found > plans["tight"] + MIB), (policy, found, plans)
print("auto takes what fits")
