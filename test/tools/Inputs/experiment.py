"""Made-up runs of tools/experiments, and in place of `weft` what their tables ask of it.

experiment.py OUT       writes runs that are finished
experiment.py data ...  tokens of a text; bench ...: time of an update; all else is refused
"""
import json
import os
import sys

ATTENTION = {"san10": (2.0, 2.2), "ffn2": (1.9, 2.0), "ffn10": (2.05, 2.35), "rms": (2.1, 2.2)}
PATTERNS = {"trunk": {20: 2.0}, "ordinary": {20: 2.0, 30: 1.8, 40: 1.7}, "variance": {20: 2.0, 40: 1.73}}
SHARES = {"ordinary": (0.5, 0.7), "variance": (0.25, 0.25)}


def run(folder, losses, more=()):
    step = max(losses)
    checkpoint = os.path.join(folder, "checkpoints", str(step))
    os.makedirs(checkpoint)
    with open(os.path.join(folder, "checkpoints", "latest"), "w") as file:
        file.write(str(step))
    with open(os.path.join(checkpoint, "run.json"), "w") as file:
        json.dump({"step": step, "tokens": 1000 * step, "seconds": 2.0}, file)
    lines = [{"kind": "eval", "step": at, "loss": loss} for at, loss in losses.items()]
    with open(os.path.join(folder, "log.jsonl"), "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in [*more, *lines])
        file.write('{"kind": "eval", "st')  # torn by a kill


def write(out):
    for arm, losses in ATTENTION.items():
        for seed, loss in enumerate(losses, 1):
            run(f"{out}/attention-only/{arm}/seed-{seed}", {40: loss})
    for arm, losses in PATTERNS.items():
        cost = {"kind": "freeze", "cost": {"loss_before": 2.0, "loss_after": 2.25}}
        run(f"{out}/patterns/{arm}/seed-1", losses, [cost] if arm == "variance" else [])
    for arm, shares in SHARES.items():
        for task, share in enumerate(shares, 1):
            os.makedirs(f"{out}/patterns/{arm}/seed-1/recall-{task}")
            with open(f"{out}/patterns/{arm}/seed-1/recall-{task}/recall.json", "w") as file:
                json.dump([[share] * 5, []], file)


if sys.argv[1] == "data":
    print(json.dumps({"tokens": 30000 if sys.argv[3].endswith("persuasion") else 50000}))
elif sys.argv[1] == "bench":
    print(json.dumps({"seconds": 0.075 if "--plan" in sys.argv else 0.1}))
elif len(sys.argv) == 2:
    write(sys.argv[1])
else:
    sys.exit(f"refused: {sys.argv[1:]}")
