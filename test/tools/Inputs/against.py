"""against.py NOW THEN: writes times as of an earlier build, in which kernels were slower, faster, of
another hash, others, or missing. against.py THEN: checks the JSON on standard input against them."""

import json
import sys

SLOW, FAST, GONE = 100.0, 1e-9, 77.0  # seconds no run on a CPU comes near


def write(now, then):
    run = json.load(open(now))
    kernels = []
    for kernel in run["times"]["kernels"]:
        name = kernel["name"]
        if name.startswith("attend_grad_query_"):
            kernel.update(name="attend_grad_query_01234567", seconds=SLOW)
        elif name.startswith("attend_grad_key_value_"):
            kernel.update(seconds=FAST)
        elif name.startswith("attend_"):
            kernel.update(seconds=SLOW)
        elif name.startswith("gather_") and not name.startswith("gather_grad_"):
            continue
        kernels.append(kernel)
    kernels.append({"name": "forgotten_01234567", "kind": "rows", "seconds": GONE})
    run["times"]["kernels"] = kernels
    json.dump(run, open(then, "w"))


def check(then):
    found = json.load(sys.stdin)
    against = {kernel["name"]: kernel for kernel in found["against"]["kernels"]}
    assert against["attend_grad_query"]["verdict"] == "faster", against
    assert against["attend_grad_query"]["before_seconds"] == SLOW, against
    assert against["forgotten"]["verdict"] == "gone", against
    total = sum(kernel["seconds"] for kernel in found["times"]["kernels"])
    assert abs(found["against"]["seconds"] - total) < 1e-9 + 1e-6 * total, found["against"]
    before = sum(kernel["seconds"] for kernel in json.load(open(then))["times"]["kernels"])
    assert abs(found["against"]["before_seconds"] - before) < 1e-6 * before, found["against"]


write(*sys.argv[1:]) if len(sys.argv) == 3 else check(sys.argv[1])
