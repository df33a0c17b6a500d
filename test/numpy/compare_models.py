#!/usr/bin/python3
"""Whole models: Weft against reference.py (PyTorch in float64), live.

    compare_models.py WEFT [NAME]...

Loss to 1e-6 (float32) or 1e-10 (float64); each gradient, and each parameter
after ten AdamW steps, by relative Frobenius norm, 1e-5 or 1e-10; a tensor whose
true gradient is about zero is held to the norm of all gradients. Documents are
uneven, some targets are not counted. A wrong scale, mask, head order, decay or
bias correction fails it.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, HERE)
from reference import read_safetensors  # noqa: E402

RECIPE = """
train compare for {model} {{
  data      = "builtin:austen"
  batch     = 3 x 21
  steps     = 10
  optimizer = adamw(lr = 1e-3, betas = (0.9, 0.95), eps = 1e-8, decay = 0.1)
  decay_on  = matrices
  clip      = 1.0
}}
"""

# Muon on the matrices of layers: rate, momentum, nesterov, iterations, decay.
MUON = """
train compare for {model} {{
  data      = "builtin:austen"
  batch     = 3 x 21
  steps     = 10
  optimizer = muon(lr = 0.02, momentum = 0.95, nesterov = {nesterov}, iterations = 5, decay = 0.01) on block[..] matrices,
              adamw(lr = 1e-3, betas = (0.9, 0.95), eps = 1e-8, decay = 0.1) on rest
  decay_on  = kernels
  clip      = 1.0
}}
"""
STEPPED_BY_MUON = {"san_muon": "yes", "san_ffn_muon": "no"}

# name: (file, model, settings of Weft, settings of the reference)
SMALL = dict(vocab=256, dim=24, depth=2)
CASES = {
    "nano": ("nano.weft", "nano", {}, {}),
    "tiny": ("tiny.weft", "tiny", dict(dim=32, depth=2), {}),
    "gpt2": ("gpt2.weft", "gpt2", dict(SMALL, context=21, heads=3), {}),
    "gpt_rope": ("gpt_rope.weft", "gpt_rope", dict(SMALL, heads=3), {}),
    "peer": ("peer.weft", "peer", dict(dim=24, depth=2, heads=3, context=21), {}),
    "san": ("san.weft", "san", dict(SMALL, heads=4, kv=2, head=6), {}),
    "san_ffn": ("san.weft", "san", dict(SMALL, heads=4, kv=2, head=6, hidden=40, sandwich="on"), {}),
    "san_muon": ("san.weft", "san", dict(SMALL, heads=4, kv=2, head=6), {}),
    "san_ffn_muon": ("san.weft", "san", dict(SMALL, heads=4, kv=2, head=6, hidden=40, residual="standard"), {}),
    "san_rezero": ("san.weft", "san", dict(SMALL, heads=4, kv=4, head=6, residual="rezero", gains="plain", qk_norm="off"), {}),
    "qwen3": ("qwen3.weft", "qwen3", dict(SMALL, heads=4, kv=2, head=8, hidden=40), {}),
    "gemma_like": ("zoo.weft", "gemma_like", dict(dim=24, depth=7, heads=4, head=6, reach=5), {}),
    "shared": ("zoo.weft", "shared", dict(dim=24, groups=2, repeats=2, heads=4, head=6), {}),
}


def statement(text, kind, name):
    """The statement `kind NAME ... { ... }` of a file."""
    start = text.index(f"{kind} {name}(") if kind == "model" else text.index(f"{kind} {name} ")
    depth = 0
    for i in range(text.index("{", text.index(")", start) if kind == "model" else start), len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return text[start : i + 1]
    raise ValueError(name)


def batches(seed, count=4, rows=3, positions=21, vocabulary=256):
    draw = random.Random(seed)
    result = []
    for _ in range(count):
        tokens = [[draw.randrange(vocabulary) for _ in range(positions)] for _ in range(rows)]
        targets = [[-1 if draw.random() < 0.1 else draw.randrange(vocabulary) for _ in range(positions)] for _ in range(rows)]
        starts = [[0] * positions, [0 if i < 5 else 5 if i < 6 else 6 for i in range(positions)], [i - i % 9 for i in range(positions)]]
        result.append(dict(tokens=tokens, targets=targets, doc_start=starts))
    return result


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(weft, name, device, tolerance, folder):
    file, model, settings, extra = CASES[name]
    path = os.path.join(folder, f"{name}.weft")
    with open(os.path.join(ROOT, "models", file)) as source, open(path, "w") as out:
        recipe = MUON if name in STEPPED_BY_MUON else RECIPE
        text = recipe.format(model=model, nesterov=STEPPED_BY_MUON.get(name))
        out.write(statement(source.read(), "model", model) + "\n" + text)
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    sets_reference = [part for key, value in dict(settings, **extra).items() for part in ("--set", f"{key}={value}")]
    start, data = os.path.join(folder, "start.safetensors"), os.path.join(folder, "data.json")
    nesterov = STEPPED_BY_MUON.get(name)
    muon = ["--muon", f"0.02,0.95,{int(nesterov == 'yes')},5,0.01"] if nesterov else []
    double = ["--f64"] if device == "reference" else []
    run([weft, "params", path, *sets, "--dump", start, "--seed", "7", *double])
    json.dump(batches(name), open(data, "w"))
    ours, theirs = os.path.join(folder, "ours.safetensors"), os.path.join(folder, "theirs.safetensors")
    numbers = json.loads(run([weft, "step", path, *sets, "--data", data, "--steps", "10", "--seed", "7",
                              "--device", device, "--out", ours]).strip().splitlines()[-1])
    run(["/usr/bin/python3", os.path.join(HERE, "reference.py"), model, "--params", start, "--data", data, "--out", theirs,
         *sets_reference, "--steps", "10", "--rate", "1e-3", "--betas", "0.9,0.95", "--eps", "1e-8", "--decay", "0.1",
         "--clip", "1.0", *muon])
    got, (want, metadata) = read_safetensors(ours), read_with_metadata(theirs)
    worst = check_tensors(name, got, want, tolerance)
    losses = json.loads(metadata["loss"])
    error = max(abs(a - b) for a, b in zip(numbers["loss"], losses))
    limit = 1e-6 if device == "reference" else 1e-4
    first = abs(numbers["loss"][0] - losses[0])
    assert first < (1e-10 if device == "reference" else 1e-6) * 10, f"{name}: first loss {numbers['loss'][0]} against {losses[0]}"
    assert error < limit, f"{name}: losses differ by {error}"
    print(f"{name} on {device}: {len(want)} tensors, worst {worst:.1e}, losses within {error:.1e}")


def read_with_metadata(path):
    import struct
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        metadata = json.loads(file.read(length)).get("__metadata__", {})
    return read_safetensors(path), metadata


def check_tensors(name, got, want, tolerance):
    missing = sorted(set(want) ^ set(got))
    assert not missing, f"{name}: only one side has {missing}"
    whole = np.sqrt(sum(np.sum(np.square(value)) for key, value in want.items() if key.startswith("grad/")))
    worst = 0.0
    # Gradients first: what they get wrong, steps only carry on.
    for key, value in sorted(want.items(), key=lambda item: not item[0].startswith("grad/")):
        scale = np.linalg.norm(value)
        # Key biases have no gradient. What float32 leaves of it, Adam makes steps of up to its rate.
        if key.endswith(".bk"):
            scale = max(scale, whole if key.startswith("grad/") else 10 * 1e-3 * np.sqrt(value.size) / (tolerance * 100))
        elif key.startswith("grad/"):
            scale = max(scale, 1e-3 * whole)
        error = np.linalg.norm(np.asarray(got[key], np.float64) - value) / scale
        # Ten steps carry rounding on through the sign-like first updates of Adam.
        limit = tolerance if key.startswith("grad/") else tolerance * 100
        assert error < limit, f"{name}: {key} differs by {error:.2e} (limit {limit:.0e})"
        worst = max(worst, error)
    return worst


def main():
    weft, names = sys.argv[1], sys.argv[2:] or list(CASES)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            compare(weft, name, "reference", 1e-9, folder)
            compare(weft, name, "cpu", 1e-5, folder)


if __name__ == "__main__":
    main()
