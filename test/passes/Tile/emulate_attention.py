"""Runs the attention kernels of a model, from its text to PTX, in ptx_emulator.py.

  emulate_attention.py TILE_TO_PTX WEFT sm_90a|sm_80

Forward and both gradients of two heads, one of them with a window, over packed
documents, against float64; the forward runs on one CTA and on three, as in a
control step, with entropies, and on sm_90a in items of 192 rows, which launches
of many items have.
"""

import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from ptx_emulator import Map, from_bf16, launch, to_bf16

HERE = os.path.dirname(os.path.abspath(__file__))
RANDOM = np.random.default_rng(3)
BATCH, ROWS, HEADS, CHANNELS = 1, 131, 2, 64
WINDOWS = [ROWS, 50]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


PLAN = f"plan observed for gpt_rope {{ windows adaptive [{ROWS}, full] }}"


def compiled(weft, chip, stage, *programs):
    """What `weft compile` shows of a small model's attention at `stage`."""
    model = os.path.abspath(os.path.join(HERE, "..", "..", "..", "models", "gpt_rope.weft"))
    with tempfile.NamedTemporaryFile("w", suffix=".weft") as plan:
        plan.write(f'use "{model}"\n{PLAN}\n')
        plan.flush()
        return run(weft, "compile", model, "--set", "depth=1", "--set", "dim=128", "--set", "heads=2", "--positions",
                   str(ROWS), "--batch", str(BATCH), "--plan", plan.name + ":observed",
                   *(word for program in programs for word in ("--program", program)), "--target", chip, "--emit", stage)


def kernels(tool, weft, chip):
    """{kind: (PTX, threads, rows of each map's box)} of the attention kernels; sm_80 has no maps."""
    text = compiled(weft, chip, "tile", "micro", "observe")
    found = {}
    for part in re.split(r"(?m)^// (?=\w+_[0-9a-f]{8}$)", text):
        if "tile.kernel" not in part:
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write(part[part.index("module"):])
            file.flush()
            ptx = run(tool, file.name, chip)
        kind = re.search(r"@(\w+)_[0-9a-f]{8}\(", part)[1]
        if kind == "attend" and len(re.findall(r"%arg\d+: !tile.global<f32>", part)) == 2:
            kind = "attend_entropies"
        boxes = dict(re.findall(r"load_tile (%arg\d+)\[.*: <1x(\d+)x64xbf16", part))
        maps = re.findall(r"(%arg\d+): !tile.map", part)
        found[kind] = (ptx, int(re.search(r"threads (\d+)", part)[1]), [int(boxes[name]) for name in maps])
    return found


def wide(weft, boxes):
    """The forward in items of three warpgroups, as `kernels` gives kernels; its kernel's tensors are the same."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "kernels.mlir")
        with open(source, "w") as file:
            file.write(compiled(weft, "sm_90a", "kernels", "micro"))
        # Whether ptxas is there, and what it says of so small a kernel, is not asked.
        subprocess.run([weft, "kernels", source, "--target", "sm_90a", "--form", "groups=3", "--filter", "attend_", "-o", folder], capture_output=True)
        name = next(name for name in os.listdir(folder) if re.fullmatch(r"attend_[0-9a-f]{8} groups=3\.ptx", name))
        with open(os.path.join(folder, name)) as file:
            return file.read(), 4 * 128, boxes


def normal():
    return to_bf16(RANDOM.standard_normal((BATCH, ROWS, HEADS, CHANNELS)).astype(np.float32))


def reference(q, k, v, dout, starts):
    """float64: output, log-sums, row dots and the three gradients."""
    q, k, v, dout = (np.float64(from_bf16(x)).transpose(0, 2, 1, 3) for x in (q, k, v, dout))
    i, j = np.arange(ROWS)[:, None], np.arange(ROWS)
    seen = (j <= i) & (j > i - np.array(WINDOWS)[None, :, None, None]) & (j >= starts[:, None, :, None])
    scale = CHANNELS**-0.5
    scores = np.where(seen, q @ k.swapaxes(2, 3) * scale, -np.inf)
    top = scores.max(3, keepdims=True)
    total = np.exp(scores - top).sum(3, keepdims=True)
    p = np.exp(scores - top) / total
    out = p @ v
    delta = (dout * from_bf16(to_bf16(out))).sum(3, keepdims=True)
    ds = p * (dout @ v.swapaxes(2, 3) - delta) * scale
    back = lambda x: x.transpose(0, 2, 1, 3)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(3, keepdims=True)
    return {"out": back(out), "lse": back(top + np.log(total))[..., 0], "entropy": back(entropy)[..., 0],
            "delta": back(delta)[..., 0], "dq": back(ds @ k), "dk": back(ds.swapaxes(2, 3) @ q), "dv": back(p.swapaxes(2, 3) @ dout)}


def check(name, got, expected, bound):
    error = np.linalg.norm(np.float64(got) - expected) / np.linalg.norm(expected)
    print(f"{name}: relative error {error:.2e}")
    if not error < bound:
        sys.exit(f"{name}: expected at most {bound}")


def attention(tool, weft, chip):
    found = kernels(tool, weft, chip)
    q, k, v, dout = (normal() for _ in range(4))
    windows, starts = np.array(WINDOWS, np.int32), np.zeros((BATCH, ROWS), np.int32)
    starts[0, 70:], starts[0, 100:] = 70, 100
    expected = reference(q, k, v, dout, starts)
    poison = lambda: np.full(q.shape, 0xFFFF, np.uint16)
    rows = lambda: np.full(q.shape[:3], np.nan, np.float32)
    common = [q, k, v, windows, starts]

    def start(kind, operands, tensors, ctas):
        ptx, threads, boxes = found[kind]
        tensors = tensors if chip == "sm_90a" else []
        maps = [Map(tensor, [64, 1, box, 1], 128) for tensor, box in zip(tensors, boxes, strict=True)]
        launch(ptx, operands + maps, threads, ctas)

    if chip == "sm_90a":
        found["attend_wide"] = wide(weft, found["attend"][2])
    first = None
    for ctas in (1, 3):
        out, lse = poison(), rows()
        start("attend", common + [out, lse], [q, k, v], ctas)
        if first is not None and (first != out).any():
            sys.exit("attend: the number of CTAs changes the result")
        first = out
    check("out", from_bf16(out), expected["out"], 4e-3)
    check("lse", lse, expected["lse"], 1e-6)
    if chip == "sm_90a":
        out_too, lse_too = poison(), rows()
        start("attend_wide", common + [out_too, lse_too], [q, k, v], 2)
        if (out_too != out).any() or (lse_too != lse).any():
            sys.exit("attend: the rows of an item change the result")
    out_too, lse_too, entropy = poison(), rows(), rows()
    start("attend_entropies", common + [out_too, lse_too, entropy], [q, k, v], 2)
    if (out_too != out).any() or (lse_too != lse).any():
        sys.exit("attend: entropies change the result")
    check("entropy", entropy, expected["entropy"], 2e-6)
    dq, delta = poison(), rows()
    start("attend_grad_query", common + [out, lse, dout, dq, delta], [q, dout, k, v], 2)
    check("dq", from_bf16(dq), expected["dq"], 5e-3)
    check("delta", delta, expected["delta"], 5e-3)
    dk, dv = poison(), poison()
    start("attend_grad_key_value", common + [lse, delta, dout, dk, dv], [k, v, q, dout], 2)
    check("dk", from_bf16(dk), expected["dk"], 5e-3)
    check("dv", from_bf16(dv), expected["dv"], 5e-3)


if __name__ == "__main__":
    attention(*sys.argv[1:])
