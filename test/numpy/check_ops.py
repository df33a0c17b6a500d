#!/usr/bin/python3
"""Recomputes single ops in NumPy and compares: check_ops.py CASES.json.

CASES.json is a list of {"name", "op", "attrs", "operands": [{"role", "axes",
"shape", "data"}], "results": [...]}. Everything here is vectorised NumPy over
axis names, written from the definitions of the ops alone. Prints one line a
case; exit status 1 when a relative error exceeds 1e-10 somewhere.
"""
import json
import sys

import numpy as np

TOLERANCE = 1e-10


class Tensor:
    def __init__(self, entry):
        self.axes = entry["axes"]
        self.value = np.array(entry["data"], dtype=np.float64).reshape(entry["shape"])


def aligned(tensor, axes):
    """`tensor` with one dimension for each of `axes`, of size 1 where it lacks it."""
    order = [a for a in axes if a in tensor.axes]
    moved = np.transpose(tensor.value, [tensor.axes.index(a) for a in order])
    return moved.reshape([moved.shape[order.index(a)] if a in order else 1 for a in axes])


def erf(x):
    """By its Taylor series: exact to rounding for the |x| < 3 of the cases."""
    total = np.zeros_like(x)
    term = x.copy()
    for n in range(120):
        total += term / (2 * n + 1)
        term = -term * x * x / (n + 1)
    return 2 / np.sqrt(np.pi) * total


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


UNARY = {
    "neg": lambda x: -x,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power}


def unary(t, attrs, out):
    return [UNARY[attrs["fn"]](t["x"].value)]


def binary(t, attrs, out):
    axes = out[0].axes
    return [BINARY[attrs["fn"]](aligned(t["x"], axes), aligned(t["y"], axes))]


def contract(t, attrs, out):
    letters = {a: chr(97 + i) for i, a in enumerate(dict.fromkeys(t["a"].axes + t["b"].axes))}
    term = lambda axes: "".join(letters[a] for a in axes)
    text = f'{term(t["a"].axes)},{term(t["b"].axes)}->{term(out[0].axes)}'
    value = np.einsum(text, t["a"].value, t["b"].value)
    return [value + (aligned(t["init"], out[0].axes) if "init" in t else 0)]


def sum_to(t, attrs, out):
    kept = out[0].axes
    value = t["x"].value.sum(axis=tuple(i for i, a in enumerate(t["x"].axes) if a not in kept))
    left = [a for a in t["x"].axes if a in kept]
    value = np.transpose(value, [left.index(a) for a in kept])
    return [value + (t["init"].value if "init" in t else 0)]


def partial_sum(t, attrs, out):
    rows = int(np.prod(t["x"].value.shape[: attrs["rows"]]))
    flat = t["x"].value.reshape((rows,) + t["x"].value.shape[attrs["rows"] :])
    chunks = out[0].value.shape[0]
    parts = [flat[c * rows // chunks : (c + 1) * rows // chunks].sum(axis=0) for c in range(chunks)]
    inner, kept = t["x"].axes[attrs["rows"] :], out[0].axes[1:]
    drop = tuple(1 + i for i, a in enumerate(inner) if a not in kept)
    return [np.stack(parts).sum(axis=drop)]


def layer_norm(t, attrs, out):
    x = t["x"].value
    return [(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + attrs["eps"])]


def rms_norm(t, attrs, out):
    x = t["x"].value
    return [x / np.sqrt((x * x).mean(-1, keepdims=True) + attrs["eps"])]


def softmax(t, attrs, out):
    e = np.exp(t["x"].value)
    return [e / e.sum(-1, keepdims=True)]


def rope(t, attrs, out):
    """As a product of complex numbers, which shares nothing with the two real formulas."""
    x = t["x"].value
    half = x.shape[-1] // 2
    angle = aligned(t["position"], t["x"].axes[:-1])[..., None] * attrs["base"] ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angle * (-1 if attrs.get("inverse") else 1))
    return [np.concatenate([turned.real, turned.imag], axis=-1)]


def gather(t, attrs, out):
    return [t["table"].value[t["index"].value.astype(int)]]


def gather_grad(t, attrs, out):
    index = t["index"].value.astype(int).ravel()
    one_hot = (index[:, None] == np.arange(out[0].value.shape[0])[None, :]).astype(float)
    dy = t["dy"].value.reshape(len(index), -1)
    return [(one_hot.T @ dy).reshape(out[0].value.shape) + (t["init"].value if "init" in t else 0)]


def position(t, attrs, out):
    start = t["doc_start"].value
    offset = t["offset"].value if "offset" in t else 0
    return [offset + np.arange(start.shape[1])[None, :] - start]


def document(t, attrs, out):
    start = t["doc_start"].value
    return [np.concatenate([np.zeros((len(start), 1)), np.cumsum(np.diff(start, axis=1) != 0, axis=1)], axis=1)]


def attend(t, attrs, out):
    """Whole score matrices with a mask of -inf."""
    q, axes = t["q"].value, t["q"].axes
    batch, queries, channels = q.shape[0], q.shape[1], q.shape[-1]
    shape = q.shape[2:-1]
    heads = int(np.prod(shape))
    flat = q.reshape(batch, queries, heads, channels)

    def spread(tensor):
        if "kv_of" in t:
            flat_kv = tensor.value.reshape(batch, tensor.value.shape[1], -1, tensor.value.shape[-1])
            return flat_kv[:, :, t["kv_of"].value.astype(np.int64)]
        named = Tensor.__new__(Tensor)
        named.axes, named.value = tensor.axes[:1] + ["keys!"] + tensor.axes[2:], tensor.value
        wide = aligned(named, [axes[0], "keys!"] + axes[2:-1] + [tensor.axes[-1]])
        full = (batch, tensor.value.shape[1]) + shape + (tensor.value.shape[-1],)
        return np.broadcast_to(wide, full).reshape(batch, -1, heads, tensor.value.shape[-1])

    k, v = spread(t["k"]), spread(t["v"])
    scores = attrs["scale"] * np.einsum("bihc,bjhc->bhij", flat, k)
    offset = int(t["offset"].value) if "offset" in t else 0
    i = offset + np.arange(queries)[None, None, :, None]
    j = np.arange(k.shape[1])[None, None, None, :]
    seen = np.broadcast_to(j <= i, scores.shape).copy()
    if "windows" in t:
        seen &= j > i - t["windows"].value.astype(np.int64).reshape(1, heads, 1, 1)
    if "doc_start" in t:
        seen &= j >= t["doc_start"].value[:, None, :, None]
    scores = np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    out_value = np.einsum("bhij,bjhc->bihc", e / total, v)
    lse = np.transpose((top + np.log(total))[..., 0], (0, 2, 1))
    if attrs.get("statistics"):
        return flat, k, v, seen
    results = [out_value.reshape(out[0].value.shape), lse.reshape(out[1].value.shape)]
    if len(out) > 2:  # p log p is 0 where p is
        p = e / total
        entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(-1)
        results.append(np.transpose(entropy, (0, 2, 1)).reshape(out[2].value.shape))
    return results


def mix_parts(t, rows, queries, keys):
    """P of every row, head, query and key, as whole matrices; and log Z."""
    a, r = t["a"].value, t["distance"].value
    heads = a.shape[0]
    offset = int(t["offset"].value) if "offset" in t else 0
    start = t["doc_start"].value.astype(np.int64)[:, None, :, None]
    i = offset + np.arange(queries)[None, None, :, None]
    j = np.arange(keys)[None, None, None, :]
    ranges = np.zeros((2, heads), np.int64)  # windows, then first places where they are given
    ranges.flat[:t["windows"].value.size] = t["windows"].value.astype(np.int64).ravel()
    window, first = ranges.reshape(2, 1, heads, 1, 1)
    seen = (j <= i) & (j >= start) & ((j > i - window) | (j - start < first))
    column = np.where(seen, j - start, 0)
    distance = np.where(seen, i - j, 0) + 0 * column
    head = np.arange(heads)[None, :, None, None]
    scores = np.where(seen, a[head, column] + r[head, distance], -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    return e / total, (top + np.log(total))[..., 0]


def mix_values(t, v):
    """Values of each head, [batch, keys, heads, channel]."""
    flat = v.reshape(v.shape[0], v.shape[1], -1, v.shape[-1])
    return flat[:, :, t["kv_of"].value.astype(np.int64)] if "kv_of" in t else flat


def mix(t, attrs, out):
    v = t["v"].value
    p, lse = mix_parts(t, v.shape[0], t["doc_start"].value.shape[1], v.shape[1])
    return [np.einsum("bhij,bjhc->bihc", p, mix_values(t, v)), np.transpose(lse, (0, 2, 1))]


def mix_dense(t, attrs, out):
    v, p = t["v"].value, t["p"].value
    queries, keys, heads = t["doc_start"].value.shape[1], v.shape[1], p.shape[0]
    start = t["doc_start"].value.astype(np.int64)[:, None, :, None]
    i = (int(t["offset"].value) if "offset" in t else 0) + np.arange(queries)[None, None, :, None]
    j = np.arange(keys)[None, None, None, :]
    seen = (j <= i) & (j >= start)
    head = np.arange(heads)[None, :, None, None]
    weights = np.where(seen, p[head, i - start, np.where(seen, j - start, 0)], 0)
    return [np.einsum("bhij,bjhc->bihc", weights, mix_values(t, v))]


def merged(tensor, names):
    """The tensor with the axes `names` as one, and where it stands."""
    first, shape = tensor.axes.index(names[0]), tensor.value.shape
    merged_shape = shape[:first] + (-1,) + shape[first + len(names):]
    return tensor.value.reshape(merged_shape), first


def take(t, attrs, out):
    value, axis = merged(t["x"], attrs["axes"])
    return [np.take(value, attrs["indices"], axis=axis)]


def put(t, attrs, out):
    value, axis = merged(out[0], attrs["axes"])
    sums = np.moveaxis(np.zeros_like(value), axis, 0)
    np.add.at(sums, attrs["indices"], np.moveaxis(t["y"].value, axis, 0))
    return [np.moveaxis(sums, 0, axis).reshape(out[0].value.shape)]


def head_statistics(t, attrs, out):
    """Sums of each head from whole matrices of probabilities."""
    q, k, v, seen = attend(t, attrs | {"statistics": True, "scale": 1}, out)
    output = t["out"].value.reshape(v.shape)
    entropy = np.transpose(t["entropy"].value.reshape(q.shape[:3]), (0, 2, 1))
    start = t["doc_start"].value
    counted = np.ones_like(start, dtype=bool)
    if "targets" in t:  # an empty maximum is -1
        places = np.where(t["targets"].value >= 0, np.arange(start.shape[1]), -1)
        counted = start <= places.max(1, keepdims=True)
    weight = counted[:, :, None]  # [batch, pos, 1]
    columns = []
    for x in (q, k, v):
        columns += [(f(x).sum(-1) * weight).sum((0, 1)) for f in (np.abs, lambda y: y, np.square)]
    keys = seen.sum(-1)
    share = np.where(keys > 1, entropy / np.log(np.maximum(keys, 2)), 0)  # [batch, heads, pos]
    columns.append((np.transpose(share, (0, 2, 1)) * weight).sum((0, 1)))
    columns.append(((output**2).sum(-1) * weight).sum((0, 1)))
    columns.append(np.full(q.shape[2], counted.sum()))
    return [np.stack(columns, -1)]


def pattern_statistics(t, attrs, out):
    """Sums of each head from whole matrices, one square a document."""
    q, places = t["q"].value, t["q"].value.shape[1]
    heads = int(np.prod(q.shape[2:-1]))
    tokens = lambda name: t[name].value.reshape(-1, *t[name].value.shape[2:])
    flat, lse = tokens("q").reshape(-1, heads, q.shape[-1]), tokens("lse").reshape(-1, heads)
    k = tokens("k").reshape(len(flat), -1, q.shape[-1])
    k = k[:, t["kv_of"].value.astype(np.int64) if "kv_of" in t else np.arange(heads) * k.shape[1] // heads]
    reach, starts = t["reach"].value.astype(int), t["documents"].value.astype(int)
    i, j = np.arange(places)[:, None], np.arange(places)[None, :]
    results = [np.zeros((heads, places)), np.zeros((heads, places)), np.zeros((heads, 8))]
    for h in range(heads):
        seen = (j <= i) & (j > i - t["windows"].value[h])
        log_p = t["a"].value[h][None, :] + t["distance"].value[h][np.abs(i - j)] - t["z"].value[h][:, None]
        attention, logs = [], []
        for x, start in enumerate(starts[: reach[0]]):
            length = int((reach > x).sum())
            log = np.zeros((places, places))
            log[:length, :length] = (attrs["scale"] * flat[start : start + length, h] @ k[start : start + length, h].T
                                     - lse[start : start + length, h][:, None])
            there = seen & (i < length)
            attention.append(np.where(there, np.exp(log), 0))
            logs.append(np.where(there, log, 0))
        if not attention:
            continue
        a, logs = np.array(attention), np.array(logs)
        mean = a.sum(0) / np.maximum(reach, 1)[:, None]
        p, keys = np.where(seen, np.exp(log_p), 0), seen.sum(1)
        here = np.array([seen & (x < reach)[:, None] for x in range(len(a))])
        share = np.where(keys > 1, 1 / np.log(np.maximum(keys, 2)), 0)[:, None]
        results[0][h] = a.sum((0, 1))
        results[1][h] = [np.diagonal(a.sum(0), -d).sum() for d in range(places)]
        total = reach[:, None] * mean
        results[2][h] = [
            (total * np.log(np.where(mean > 0, mean, 1))).sum(), np.where(here, (a - mean) ** 2, 0).sum(),
            -(a * logs).sum(), -(a * logs * share).sum(), np.where(here, (a - p) ** 2, 0).sum(),
            (a * (logs - np.maximum(log_p, np.log(1e-30)))).sum(), np.sqrt(a * p).sum(),
            np.where(here, np.abs(a - p), 0).sum() / 2]
    return results


def cache_update(t, attrs, out):
    result = t["cache"].value.copy()
    start = int(t["offset"].value)
    result[:, start : start + t["value"].value.shape[1]] = t["value"].value
    return [result]


def token_losses(logits, targets, weight, attrs):
    """-log p of the smoothed target, plus the z term, weighted; 0 where uncounted."""
    vocab = logits.shape[-1]
    lse = np.log(np.exp(logits).sum(-1))
    logp = logits - lse[..., None]
    counted = targets >= 0
    spread = np.full(logits.shape, attrs["smoothing"] / vocab)
    one_hot = np.arange(vocab) == targets[..., None]
    spread = spread + (1 - attrs["smoothing"]) * one_hot
    return np.where(counted, weight * (-(spread * logp).sum(-1) + attrs["z"] * lse**2), 0)


def cross_entropy(t, attrs, out):
    weight = aligned(t["weight"], t["targets"].axes) if "weight" in t else 1.0
    return [token_losses(t["logits"].value, t["targets"].value, weight, attrs).sum()]


def loss_head(t, attrs, out):
    table = t["table"].value if t["table"].axes[1] == t["x"].axes[-1] else t["table"].value.T
    weight = aligned(t["weight"], t["targets"].axes) if "weight" in t else 1.0
    return [token_losses(t["x"].value @ table.T, t["targets"].value, weight, attrs).sum()]


def norm(t, attrs, out):
    return [t["factor"].value * np.linalg.norm(t["x"].value)]


def clip_scale(t, attrs, out):
    size, factor = t["norm"].value, t["factor"].value
    if not np.isfinite(size):
        return [np.array(np.nan)]
    return [factor * (min(1.0, attrs["clip"] / (size + 1e-6)) if attrs["clip"] else 1.0)]


def adamw(t, attrs, out):
    rate, c1, c2 = t["hyper"].value
    g = t["scale"].value * t["grad"].value
    m = attrs["beta1"] * t["m"].value + (1 - attrs["beta1"]) * g
    v = attrs["beta2"] * t["v"].value + (1 - attrs["beta2"]) * g * g
    p = t["p"].value - rate * attrs["decay"] * t["p"].value - rate * m * c1 / (np.sqrt(v * c2) + attrs["eps"])
    return [p, m, v]


def difference(found, expected):
    if found.shape != np.shape(expected):
        return np.inf
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return np.inf
    gap = np.abs(np.where(np.isfinite(found), found - expected, 0))
    return float((gap / (1 + np.abs(np.where(np.isfinite(expected), expected, 0)))).max()) if gap.size else 0.0


def main():
    cases = json.load(open(sys.argv[1]))
    worst = 0
    for case in cases:
        operands = {entry["role"]: Tensor(entry) for entry in case["operands"]}
        results = [Tensor(entry) for entry in case["results"]]
        expected = globals()[case["op"]](operands, case["attrs"], results)
        errors = [difference(r.value, e) for r, e in zip(results, expected)]
        print(f'{case["name"]}: {max(errors):.3g}')
        if max(errors) > TOLERANCE or len(results) != len(expected):
            print(f'FAILED {case["name"]}: relative error {max(errors):.3g}')
            worst = 1
    print(f"{len(cases)} cases")
    return worst


if __name__ == "__main__":
    sys.exit(main())
