"""Trains every variant of san.weft for 20 steps: variants.py MODEL TEXT FOLDER."""
import json
import os
import subprocess
import sys

SMALL = ["vocab=256", "tokenizer=bytes", "dim=32", "heads=4", "kv=2", "head=8", "batch=4 x 32", "steps=20", "log=every 1 steps", "watch=stable_rank(matrices)",
         "schedule=wsd(warmup = 10%, decay = 20%, floor = 0%)"]
VARIANTS = {
    "gated": [],
    "sandwich": ["sandwich=on"],
    "standard": ["residual=standard"],
    "rezero": ["residual=rezero"],
    "plain gains": ["gains=plain"],
    "no residual": ["residual=none"],
    "no qk norm": ["qk_norm=off"],
    "deep": ["depth=8"],
    "with ffn": ["hidden=128"],
    "adamw": ["optimizer=adamw(lr = 3e-3, betas = (0.9, 0.95), decay = 0.1)"],
}


def main():
    model, text, folder = sys.argv[1:]
    for name, settings in VARIANTS.items():
        out = os.path.join(folder, name.replace(" ", "-"))
        sets = [part for pair in ["depth=2", f"data={text}", *SMALL, *settings] for part in ("--set", pair)]
        done = subprocess.run(["weft", "train", model, *sets, "--out", out], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        with open(os.path.join(out, "log.jsonl")) as file:
            losses = [line["loss"] for line in map(json.loads, file) if line["kind"] == "train"]
        first, last = losses[0], sum(losses[-3:]) / 3
        assert len(losses) == 20 and last < first - 0.1, f"{name}: {losses}"
        print(f"{name}: {first:.3f} to {last:.3f}")
    print(len(VARIANTS), "variants trained")


main()
