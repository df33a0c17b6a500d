"""greedy.py RUN PROMPT: decodes with caches, and again with a prefill for each token."""

import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

run, prompt = sys.argv[1], sys.argv[2].encode()
steps = 6


def weft(*arguments):
    done = subprocess.run(["weft", *arguments], capture_output=True)
    assert done.returncode == 0, done
    return done.stdout


def logits_in(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))["logits"]
        data = file.read()
    assert entry["dtype"] == "F32" and entry["shape"][-1] == 256, entry
    return np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(-1, 256)


text = prompt
with tempfile.TemporaryDirectory() as folder:
    tokens, logits = os.path.join(folder, "tokens"), os.path.join(folder, "logits")
    generated = weft("generate", run, "--prompt", prompt.decode(), "--temperature", "0",
                     "--length", str(steps), "--logits", logits)
    cached = logits_in(logits)
    for _ in range(steps):
        with open(tokens, "w") as file:
            file.write(" ".join(map(str, text)))
        weft("prefill", run, "--tokens", tokens, "--out", logits)
        values = logits_in(logits)
        assert len(values) == len(text), values.shape
        # Every position seen so far: catches a cache written one place off, or a window ignored in decode.
        worst = np.abs(values - cached[: len(text)]).max()
        assert worst <= 1e-5, worst
        text += bytes([int(values[-1].argmax())])
assert len(cached) == len(text) - 1, cached.shape
assert generated == text + b"\n", (generated, text)
