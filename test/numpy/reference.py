#!/usr/bin/python3
"""The shipped models in float64, written apart from Weft: loss, gradients, steps.

    reference.py MODEL --params START.safetensors --data DATA.json --out OUT.safetensors
                 [--set name=value]... [--steps N] [--rate R] [--betas A,B] [--eps E]
                 [--decay D] [--clip C]
    reference.py --self-check

DATA.json holds "tokens", "targets" (-1 is not counted) and, if documents are
apart, "doc_start", each [rows, positions]; with --steps it may hold lists of
batches, taken in turn. OUT holds `grad/PATH` of the first batch at the start
and, with steps, every parameter after the last; its metadata has "loss" (the
mean over counted targets, before each step) and "grad_norm".

Formulas follow the papers and the models' text: GPT-2 (pre-norm, tied
embeddings), RoPE on halves, RMS norms, grouped attention. Gradients are
PyTorch's own, in float64; the optimiser is written out.
"""
import argparse
import json
import struct
import sys

import numpy as np
import torch

FULL = 2**31 - 1


# ---------------------------------------------------------------- safetensors

KINDS = {"F64": np.float64, "F32": np.float32, "I32": np.int32, "I64": np.int64}


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        body = file.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(body[start:end], dtype=KINDS[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors, metadata):
    header, body = {"__metadata__": {k: json.dumps(v) for k, v in metadata.items()}}, b""
    for name, value in tensors.items():
        data = np.ascontiguousarray(value, dtype=np.float64).tobytes()
        header[name] = {"dtype": "F64", "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


# ---------------------------------------------------------------- pieces


def layer_norm(x, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps)


def rms_norm(x, eps=1e-6):
    return x / torch.sqrt((x**2).mean(-1, keepdim=True) + eps)


def gelu(x):
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def gelu_tanh(x):
    return x * (1 + torch.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2


def silu(x):
    return x * torch.sigmoid(x)


class Batch:
    def __init__(self, data):
        self.tokens = torch.tensor(data["tokens"], dtype=torch.long)
        self.targets = torch.tensor(data["targets"], dtype=torch.long)
        starts = data.get("doc_start") or [[0] * self.tokens.shape[1]] * self.tokens.shape[0]
        self.start = torch.tensor(starts, dtype=torch.long)
        self.position = torch.arange(self.tokens.shape[1])[None, :] - self.start

    def rope(self, x, base=1e4):
        """x: [batch, pos, heads..., channel]."""
        half = x.shape[-1] // 2
        angle = self.position[..., None].double() * base ** (-torch.arange(half).double() / half)
        angle = angle.reshape(angle.shape[:2] + (1,) * (x.dim() - 3) + (half,))
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def attend(self, q, k, v, window=FULL):
        """q: [batch, pos, kv, group, channel]; k, v: [batch, pos, kv, channel]."""
        scores = torch.einsum("bikgc,bjkc->bkgij", q, k) * q.shape[-1] ** -0.5
        i, j = torch.arange(q.shape[1])[:, None], torch.arange(k.shape[1])[None, :]
        seen = ((j <= i) & (j > i - window))[None] & (j[None] >= self.start[:, :, None])
        scores = scores.masked_fill(~seen[:, None, None], float("-inf"))
        return torch.einsum("bkgij,bjkc->bikgc", torch.softmax(scores, -1), v)

    def plain(self, q, k, v, window=FULL):
        """One key head a query head."""
        return self.attend(q[:, :, :, None], k, v, window)[:, :, :, 0]

    def loss(self, logits):
        """(sum over counted targets, their number)."""
        logp = torch.log_softmax(logits, -1)
        counted = self.targets >= 0
        picked = torch.gather(logp, -1, self.targets.clamp(min=0)[..., None])[..., 0]
        return -(picked * counted).sum(), int(counted.sum())


def heads_in(x, w):
    return torch.einsum("btd,dhc->bthc", x, w)


def heads_out(a, w):
    return torch.einsum("bthc,hcd->btd", a, w)


def grouped_in(x, w):
    return torch.einsum("btd,dkgc->btkgc", x, w)


def grouped_out(a, w):
    return torch.einsum("btkgc,kgcd->btd", a, w)


class Scope:
    """Parameters below a path: s("attn").wq is `PATH.attn.wq`."""

    def __init__(self, parameters, path=""):
        self._parameters, self._path = parameters, path

    def __call__(self, *path):
        return Scope(self._parameters, self._path + ".".join(str(part) for part in path) + ".")

    def __getattr__(self, name):
        return self._parameters[self._path + name]

    def count(self, layer):
        prefix = self._path + layer + "."
        return 1 + max(int(n[len(prefix) :].split(".")[0]) for n in self._parameters if n.startswith(prefix))

    def has(self, name):
        return any(n.startswith(self._path + name) for n in self._parameters)


# ---------------------------------------------------------------- models


def gpt2(p, batch, settings):
    x = p.embed[batch.tokens] + p.place[batch.position]
    for i in range(p.count("block")):
        a, f = p("block", i, "attn"), p("block", i, "ffn")
        h = layer_norm(x) * a.gain + a.shift
        q, k, v = heads_in(h, a.wq) + a.bq, heads_in(h, a.wk) + a.bk, heads_in(h, a.wv) + a.bv
        x = x + heads_out(batch.plain(q, k, v), a.wo) + a.bo
        h = layer_norm(x) * f.gain + f.shift
        x = x + gelu_tanh(h @ f.up + f.bup) @ f.down + f.bdown
    return (layer_norm(x) * p.final_gain + p.final_shift) @ p.embed.T


def peer(p, batch, settings):
    x = p.embed[batch.tokens] + p.place[batch.position]
    for i in range(p.count("block")):
        a, f = p("block", i, "attn"), p("block", i, "ffn")
        h = layer_norm(x) * a.gain + a.shift
        x = x + heads_out(batch.plain(heads_in(h, a.wq), heads_in(h, a.wk), heads_in(h, a.wv)), a.wo)
        h = layer_norm(x) * f.gain + f.shift
        x = x + gelu(h @ f.up) @ f.down
    return (layer_norm(x) * p.final_gain + p.final_shift) @ p.embed.T


def rotary(norm, act):
    """gpt_rope, nano and tiny: a norm with a gain, rotary attention, two layers."""

    def model(p, batch, settings):
        x = p.embed[batch.tokens]
        for i in range(p.count("block")):
            a, f = p("block", i, "attn"), p("block", i, "ffn")
            h = norm(x) * a.gain
            q, k = batch.rope(heads_in(h, a.wq)), batch.rope(heads_in(h, a.wk))
            x = x + heads_out(batch.plain(q, k, heads_in(h, a.wv)), a.wo)
            x = x + act(norm(x) * f.gain @ f.up) @ f.down
        return norm(x) * p.final_gain @ p.embed.T

    return model


def san(p, batch, settings):
    base = 0.0 if settings.get("gains") == "plain" else 1.0
    residual = settings.get("residual", "gated")
    keep = 0.0 if residual == "none" else 1.0

    def norm(z, gamma):
        return (base + gamma) * rms_norm(z)

    def close(y, scope):
        if settings.get("sandwich") == "on":
            y = norm(y, scope.gamma_out)
        if residual == "gated":
            return torch.sigmoid(scope.gate) * y
        return scope.gate * y if residual == "rezero" else y

    x = p.embed[batch.tokens]
    for i in range(p.count("block")):
        a = p("block", i, "attn")
        u = norm(x, a.gamma)
        q, k = grouped_in(u, a.wq), heads_in(u, a.wk)
        if settings.get("qk_norm", "on") == "on":
            q, k = norm(q, a.gamma_q), norm(k, a.gamma_k)
        out = batch.attend(batch.rope(q), batch.rope(k), heads_in(u, a.wv))
        x = keep * x + close(grouped_out(out, a.wo), a)
        if p("block", i).has("ffn."):
            f = p("block", i, "ffn")
            u = norm(x, f.gamma)
            x = keep * x + close((silu(u @ f.wgate) * (u @ f.up)) @ f.down, f)
    return norm(x, p.gamma_final) @ p.embed.T


def qwen3(p, batch, settings):
    theta, eps = float(settings.get("theta", 1e6)), float(settings.get("eps", 1e-6))
    x = p.embed[batch.tokens]
    for i in range(p.count("block")):
        a, f = p("block", i, "attn"), p("block", i, "ffn")
        h = a.gain * rms_norm(x, eps)
        q = batch.rope(a.gain_q * rms_norm(grouped_in(h, a.wq), eps), theta)
        k = batch.rope(a.gain_k * rms_norm(heads_in(h, a.wk), eps), theta)
        x = x + grouped_out(batch.attend(q, k, heads_in(h, a.wv)), a.wo)
        h = f.gain * rms_norm(x, eps)
        x = x + (silu(h @ f.gate) * (h @ f.up)) @ f.down
    return p.final_gain * rms_norm(x, eps) @ p.embed.T


def gemma_like(p, batch, settings):
    reach = int(settings.get("reach", 128))
    x = p.embed[batch.tokens]
    for i in range(p.count("block")):
        a, f = p("block", i, "attn"), p("block", i, "ffn")
        h = rms_norm(x)
        q = batch.rope(heads_in(h, a.wq))[:, :, None]  # one key head, all query heads its group
        k, v = batch.rope(h @ a.wk)[:, :, None], (h @ a.wv)[:, :, None]
        out = batch.attend(q, k, v, FULL if i % 6 == 5 else reach)[:, :, 0]
        x = x + heads_out(out, a.wo)
        x = x + gelu(rms_norm(x) @ f.up) @ f.down
    return rms_norm(x) @ p.embed.T


def shared(p, batch, settings):
    x = p.embed[batch.tokens]
    for g in range(p.count("group")):
        w = p("group", g)
        for s in range(w.count("step")):
            f = w("step", s, "ffn")
            h = rms_norm(x)
            q, k = batch.rope(heads_in(h, w.wq)), batch.rope(heads_in(h, w.wk))
            attention = heads_out(batch.plain(q, k, heads_in(h, w.wv)), w.wo)
            x = x + attention + gelu(h @ f.up) @ f.down
    return rms_norm(x) @ p.embed.T


MODELS = {
    "gpt2": gpt2,
    "peer": peer,
    "gpt_rope": rotary(layer_norm, gelu_tanh),
    "nano": rotary(rms_norm, gelu),
    "tiny": rotary(rms_norm, gelu),
    "san": san,
    "qwen3": qwen3,
    "gemma_like": gemma_like,
    "shared": shared,
}


# ---------------------------------------------------------------- training


def gradients(model, parameters, batch, settings):
    """(mean loss, gradient of the mean by name, norm of all together)."""
    leaves = {n: torch.tensor(v, dtype=torch.float64, requires_grad=True) for n, v in parameters.items()}
    total, count = batch.loss(MODELS[model](Scope(leaves), batch, settings))
    mean = total / count
    found = torch.autograd.grad(mean, list(leaves.values()), allow_unused=True)
    grads = {n: np.zeros(v.shape) if g is None else g.numpy() for (n, v), g in zip(leaves.items(), found)}
    return float(mean), grads, float(np.sqrt(sum((g * g).sum() for g in grads.values())))


# Added, not multiplied: no matrices, though they have an axis of heads and one of channels.
BIASES = {"bq", "bk", "bv"}


class AdamW:
    """Decay on matrices; gradients clipped by their joint norm (0: not)."""

    def __init__(self, rate, betas, eps, decay, clip):
        self.rate, self.betas, self.eps, self.decay, self.clip = rate, betas, eps, decay, clip
        self.first, self.second, self.step = {}, {}, 0

    def __call__(self, parameters, grads, norm):
        self.step += 1
        scale = min(1.0, self.clip / (norm + 1e-6)) if self.clip else 1.0
        (b1, b2), after = self.betas, {}
        for name, value in parameters.items():
            g = scale * grads[name]
            m = self.first[name] = b1 * self.first.get(name, 0) + (1 - b1) * g
            v = self.second[name] = b2 * self.second.get(name, 0) + (1 - b2) * g * g
            matrix = value.ndim > 1 and name.split(".")[-1] not in BIASES
            kept = value * (1 - self.rate * (self.decay if matrix else 0))
            update = (m / (1 - b1**self.step)) / (np.sqrt(v / (1 - b2**self.step)) + self.eps)
            after[name] = kept - self.rate * update
        return after


def orthogonal(matrix, iterations):
    """Newton-Schulz of degree five, as Muon's authors publish it: short side first."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix / (np.linalg.norm(matrix) + 1e-7)
    if x.shape[0] > x.shape[1]:
        return orthogonal_rows(x.T, iterations, a, b, c).T
    return orthogonal_rows(x, iterations, a, b, c)


def orthogonal_rows(x, iterations, a, b, c):
    for _ in range(iterations):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x


class Muon:
    """Muon on the matrices of layers, AdamW on the rest; decay on the matrices of layers alone."""

    def __init__(self, rate, momentum, nesterov, iterations, decay, rest):
        self.rate, self.momentum, self.nesterov = rate, momentum, nesterov
        self.iterations, self.decay, self.rest, self.buffers = iterations, decay, rest, {}

    @staticmethod
    def takes(name, value):
        return name.startswith("block.") and value.ndim > 1 and name.split(".")[-1] not in BIASES

    def update(self, name, g):
        """The step of one matrix at rate 1; [in, out] with heads as one side."""
        m = self.buffers[name] = self.momentum * self.buffers.get(name, 0) + g
        u = g + self.momentum * m if self.nesterov else m
        inner = int(np.prod(g.shape[:-1])) if name.endswith((".wo", ".down")) else g.shape[0]
        flat = u.reshape(inner, -1)
        factor = np.sqrt(max(1.0, flat.shape[1] / flat.shape[0]))
        return factor * orthogonal(flat, self.iterations).reshape(g.shape)

    def __call__(self, parameters, grads, norm):
        scale = min(1.0, self.rest.clip / (norm + 1e-6)) if self.rest.clip else 1.0
        # The rest has no matrix of a layer, so its decay is that of nobody.
        after = self.rest({n: v for n, v in parameters.items() if not self.takes(n, v)}, grads, norm)
        for name, value in parameters.items():
            if self.takes(name, value):
                after[name] = value * (1 - self.rate * self.decay) - self.rate * self.update(name, scale * grads[name])
        return after


def run(model, parameters, batches, settings, steps=0, optimizer=None):
    """(tensors, metadata) as the file says."""
    parameters = {n: np.array(v, dtype=np.float64) for n, v in parameters.items()}
    loss, grads, norm = gradients(model, parameters, batches[0], settings)
    tensors = {"grad/" + name: grad for name, grad in grads.items()}
    losses, norms = [loss], [norm]
    for step in range(steps):
        if step:
            loss, grads, norm = gradients(model, parameters, batches[step % len(batches)], settings)
            losses.append(loss), norms.append(norm)
        parameters = optimizer(parameters, grads, norm)
    if steps:
        tensors.update(parameters)
    return tensors, {"loss": losses, "grad_norm": norms}


# ---------------------------------------------------------------- self-check


def check_attention(random):
    """Against loops over single rows and keys."""
    batch = Batch({"tokens": [[0] * 5] * 2, "targets": [[0] * 5] * 2, "doc_start": [[0, 0, 2, 3, 3], [0, 0, 0, 0, 4]]})
    q = torch.tensor(random.normal(size=(2, 5, 2, 3, 4)))
    k, v = (torch.tensor(random.normal(size=(2, 5, 2, 4))) for _ in range(2))
    found = batch.attend(q, k, v, window=2).numpy()
    for b, i, n, g in np.ndindex(2, 5, 2, 3):
        keys = [j for j in range(5) if max(int(batch.start[b, i]), i - 1) <= j <= i]
        weights = np.exp([q[b, i, n, g].numpy() @ k[b, j, n].numpy() / 2 for j in keys])
        expected = sum(w * v[b, j, n].numpy() for w, j in zip(weights, keys)) / weights.sum()
        assert np.allclose(found[b, i, n, g], expected, atol=1e-13), (b, i, n, g)


def check_adamw(random):
    """Against torch.optim.AdamW."""
    start = random.normal(size=(3, 2))
    leaf = torch.tensor(start.copy(), requires_grad=True)
    theirs = torch.optim.AdamW([leaf], lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    ours, value = AdamW(0.01, (0.9, 0.95), 1e-8, 0.1, 0), {"w": start}
    for _ in range(5):
        grad = random.normal(size=(3, 2))
        leaf.grad = torch.tensor(grad)
        theirs.step()
        value = ours(value, {"w": grad}, 1.0)
    assert np.allclose(value["w"], leaf.detach().numpy(), atol=1e-14)


def check_muon(random):
    """Singular values go through the polynomial, singular vectors stay; turned matrices give turned steps."""
    u, s, v = np.linalg.svd(random.normal(size=(4, 6)), full_matrices=False)
    t = s / (np.linalg.norm(s) + 1e-7)
    for _ in range(5):
        t = 3.4445 * t - 4.7750 * t**3 + 2.0315 * t**5
    matrix = (u * s) @ v
    assert np.allclose(orthogonal(matrix, 5), (u * t) @ v, atol=1e-12)
    assert np.allclose(orthogonal(matrix.T, 5), orthogonal(matrix, 5).T, atol=1e-14)


def check_rope():
    batch = Batch({"tokens": [[0, 0]], "targets": [[0, 0]]})
    x = torch.tensor([[[[1.0, 0, 0, 0]], [[1.0, 0, 0, 0]]]], dtype=torch.float64)
    assert np.allclose(batch.rope(x)[0, 1, 0].numpy(), [np.cos(1), 0, np.sin(1), 0], atol=1e-15)


def check_model(random):
    """nano's gradient along one direction against a central difference, and a run of steps."""
    shapes = {"embed": (7, 4), "final_gain": (4,), "block.0.attn.gain": (4,), "block.0.ffn.gain": (4,)}
    shapes.update({"block.0.attn." + w: (4, 2, 2) for w in ("wq", "wk", "wv")})
    shapes.update({"block.0.attn.wo": (2, 2, 4), "block.0.ffn.up": (4, 6), "block.0.ffn.down": (6, 4)})
    start = {name: random.normal(size=shape) for name, shape in shapes.items()}
    batch = Batch({"tokens": [[1, 2, 3], [6, 0, 5]], "targets": [[2, 3, -1], [0, 5, 1]]})
    _, grads, _ = gradients("nano", start, batch, {})
    way = {name: random.normal(size=shape) for name, shape in shapes.items()}
    moved = lambda step: gradients("nano", {n: v + step * way[n] for n, v in start.items()}, batch, {})[0]
    numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5
    analytic = sum((grads[n] * way[n]).sum() for n in shapes)
    assert abs(numeric - analytic) < 1e-7 * (1 + abs(analytic)), (numeric, analytic)
    _, meta = run("nano", start, [batch], {}, 10, AdamW(0.05, (0.9, 0.95), 1e-8, 0.1, 1.0))
    assert len(meta["loss"]) == 10 and meta["loss"][-1] < meta["loss"][0]


def self_check():
    random = np.random.RandomState(3)
    check_attention(random)
    check_adamw(random)
    check_muon(random)
    check_rope()
    check_model(random)
    print("reference: self-check passed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", choices=sorted(MODELS))
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("--params"), parser.add_argument("--data"), parser.add_argument("--out")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--betas", default="0.9,0.95")
    parser.add_argument("--eps", type=float, default=1e-8)
    parser.add_argument("--decay", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--muon", help="rate,momentum,nesterov,iterations,decay")
    args = parser.parse_args()
    if args.self_check:
        return self_check()
    data = json.load(open(args.data))
    batches = [Batch(d) for d in (data if isinstance(data, list) else [data])]
    optimizer = AdamW(args.rate, tuple(map(float, args.betas.split(","))), args.eps, args.decay, args.clip)
    if args.muon:
        rate, momentum, nesterov, iterations, decay = map(float, args.muon.split(","))
        optimizer.decay = 0
        optimizer = Muon(rate, momentum, bool(nesterov), int(iterations), decay, optimizer)
    settings = dict(pair.split("=", 1) for pair in args.set)
    tensors, metadata = run(args.model, read_safetensors(args.params), batches, settings, args.steps, optimizer)
    write_safetensors(args.out, tensors, metadata)
    print(json.dumps(metadata))


if __name__ == "__main__":
    sys.exit(main())
