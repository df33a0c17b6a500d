"""bench.py KEY=VALUE...: checks one JSON object of `weft bench` on standard input."""

import json
import sys

found = json.load(sys.stdin)
asked = dict(word.split("=") for word in sys.argv[1:])
assert found["program"] == asked["program"], found
rate = float(asked["tokens"]) / found["seconds"]
assert abs(found["tokens_per_s"] - rate) < 1e-6 * rate, found
assert 0 < found["start_seconds"] <= found["first_step_seconds"], found
if "kinds" in asked:
    times = found["times"]
    assert [kind["name"] for kind in times["kinds"]] == [asked["kinds"]], times
    assert times["kernels"] and all(kernel["kind"] == asked["kinds"] for kernel in times["kernels"]), times
    total = sum(kernel["seconds"] for kernel in times["kernels"])
    assert abs(total - times["kinds"][0]["seconds"]) < 1e-9 + 1e-6 * total, times
    assert any(kernel["flops"] > 0 for kernel in times["kernels"]), times
