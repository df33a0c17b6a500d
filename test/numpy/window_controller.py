#!/usr/bin/env python3
"""One control update of adaptive windows in NumPy, written from the paper (arXiv:2608.19203, sections 5.3
to 5.8) and docs/language.md alone, against the runtime's: window_controller.py DRIVER.

DRIVER reads sites, statements and sums of statistics, and prints windows, indices and smoothed features."""
import json
import subprocess
import sys

import numpy as np

FULL = 2147483647
MASK = np.uint64(0xFFFFFFFF)


# ---- random numbers: Philox4x32-10, vectorised over the index ----


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def uniforms(seed, stream, first, count):
    index = np.arange(first, first + count, dtype=np.uint64)
    name = fnv1a(stream)
    c = [index & MASK, index >> np.uint64(32), np.full(count, name & 0xFFFFFFFF, np.uint64),
         np.full(count, name >> 32, np.uint64)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), b & MASK,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), a & MASK]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return ((c[0] | (c[1] << np.uint64(32))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permutation(count, seed, stream, index):
    order = list(range(count))
    draws = uniforms(seed, stream, index * count, count)
    for i in range(count - 1, 0, -1):
        j = int(draws[i] * (i + 1))
        order[i], order[j] = order[j], order[i]
    return order


def scorer(seed, stream, sizes, relu):
    inputs, width, outputs = sizes
    counts = [width * inputs, width, outputs * width, outputs]
    draws = 2 * uniforms(seed, stream, 0, sum(counts)) - 1
    parts = np.split(draws, np.cumsum(counts)[:-1])
    w1, b1 = parts[0].reshape(width, inputs) / np.sqrt(inputs), parts[1] / np.sqrt(inputs)
    w2, b2 = parts[2].reshape(outputs, width) / np.sqrt(width), parts[3] / np.sqrt(width)
    act = (lambda x: np.maximum(x, 0)) if relu else np.tanh
    return lambda u: w2 @ act(w1 @ u + b1) + b2


# ---- the method ----


def features(sums, channels, values, usage):
    rows = sums[:, 11]
    out = np.zeros((len(sums), 9))
    for place, n in ((0, rows * channels), (1, rows * channels), (2, rows * values)):
        mean = sums[:, 3 * place + 1] / n
        out[:, 2 * place] = sums[:, 3 * place] / n
        out[:, 2 * place + 1] = np.sqrt(np.maximum(0, sums[:, 3 * place + 2] / n - mean**2))
    out[:, 6] = sums[:, 9] / rows
    out[:, 7] = np.sqrt(sums[:, 10] / (rows * values))
    out[:, 8] = usage
    return out


def cos(a, b):
    na, nb = np.linalg.norm(a), np.linalg.norm(b)
    return 0.0 if min(na, nb) < 1e-6 else float(a @ b) / (na * nb)


def sim(a, b, penalty):
    na, nb = np.linalg.norm(a), np.linalg.norm(b)
    return cos(a, b) - penalty * abs(na - nb) / max(na, nb, 1e-6)


def shapes(hierarchy, heads, capped):
    """(items, children a parent) by level, bottom first."""
    if heads == 1:
        return [(1, 1)]
    cap = max(2, heads // 2) if capped else heads
    levels = []
    for r in range(len(hierarchy)):
        n = min(int(np.prod(hierarchy[r:])), cap, heads)
        if not levels or n < levels[-1][0]:
            levels.append((n, hierarchy[r - 1] if r else heads))
    return levels


def by_least(groups):
    return sorted(sorted(g) for g in groups)


def cluster(x, tau, target):
    groups = []
    for h in range(len(x)):
        scores = [cos(x[h], x[g].mean(0)) for g in groups]
        if scores and max(scores) >= tau:
            groups[int(np.argmax(scores))].append(h)
        else:
            groups.append([h])
    while len(groups) > target:
        pairs = [(-cos(x[a].mean(0), x[b].mean(0)), i, j)
                 for i, a in enumerate(groups) for j, b in enumerate(groups) if i < j]
        _, i, j = min(pairs)
        groups[i] += groups.pop(j)
    while len(groups) < target:
        pairs = [(cos(x[a], x[b]), a, b, n) for n, g in enumerate(groups) for a in g for b in g if a < b]
        if not pairs:
            break
        _, a, b, n = min(pairs)
        old = groups.pop(n)
        far = [h for h in old if h == b or (h != a and cos(x[h], x[b]) > cos(x[h], x[a]))]
        groups += [[h for h in old if h not in far], far]
    return by_least(groups)


def join(g, count, children, penalty):
    parents = [[i] for i in range(len(g))]
    pairs = sorted((-sim(g[i], g[j], penalty), i, j) for i in range(len(g)) for j in range(i + 1, len(g)))
    for _, i, j in pairs:
        if len(parents) <= count:
            break
        a = next(p for p in parents if i in p)
        b = next(p for p in parents if j in p)
        if a is not b and len(a) + len(b) <= children:
            parents.remove(b)
            a += b
    return by_least(parents)


def equal(order, target):
    n = len(order)
    return by_least([order[g * n // target:(g + 1) * n // target] for g in range(target)])


class Layer:
    def __init__(self, site, rule, positions, warmup):
        self.site, self.rule, self.T, self.warmup = site, rule, positions, warmup
        self.K = len(rule["windows"])
        self.smoothed = None
        start = rule.get("start", FULL)
        first = rule["windows"].index(start) if start in rule["windows"] else self.K - 1
        self.index = np.full(site["heads"], first)
        self.last = np.zeros((site["heads"], 3))
        self.updates, self.kept, self.levels = 0, None, 0
        name = "windows/" + ("shared" if rule.get("shared") else site["path"])
        relu = rule.get("relu", False)
        self.base = scorer(rule["seed"], name + "/base", (29, rule.get("base_width", 64), self.K), relu)
        self.joint = scorer(rule["seed"], name + "/joint", (116, rule.get("joint_width", 256), 2 * self.K), relu)
        size = site["heads"] // site["kv"] if rule.get("kv_groups") else 1
        self.units = [list(range(h, h + size)) for h in range(0, site["heads"], size)]

    def due(self, step):
        since = step - self.rule.get("from", 0)
        return (self.rule.get("control", True) and since >= 0 and since % self.rule.get("every", 5) == 0
                and since < self.rule.get("passthrough", float("inf")))

    def tree(self, x, step):
        """Members of each item by level."""
        rule, n = self.rule, len(x)
        grouping, topology = rule.get("grouping", 0), rule.get("topology", 0)
        if self.kept is not None and topology == 1:
            return self.kept
        wanted = [(n, n)] if grouping == 1 else shapes(rule.get("hierarchy", [2, 2, 2, 2]), n, rule.get("capped", True))
        fresh = self.kept is None
        if not fresh:
            levels = [self.kept[0]]
        elif grouping == 1:
            levels = [[[u] for u in range(n)]]
        elif grouping == 2:
            levels = [equal(permutation(n, rule["seed"], f"windows/{self.site['path']}/groups", 0), wanted[0][0])]
        elif grouping == 3:
            levels = [equal(list(range(n)), wanted[0][0])]
        else:
            levels = [cluster(x, rule.get("threshold", 0.99), wanted[0][0])]
        for count, children in wanted[1:]:
            g = self.means(levels, x)[-1]
            levels.append(join(g, count, children, rule.get("penalty", 16)))
        ready = self.updates >= rule["kept"] if rule.get("kept") else step >= self.warmup
        if fresh and topology and ready:
            self.kept = levels
        return levels

    def means(self, levels, x):
        out, below = [], x
        for level in levels:
            below = np.array([below[m].mean(0) for m in level])
            out.append(below)
        return out

    def choose(self, levels, x):
        g = self.means(levels, x)
        R = len(levels)
        choice = None
        for r in range(R - 1, -1, -1):
            top = r == R - 1
            parent = None if top else {c: p for p, m in enumerate(levels[r + 1]) for c in m}
            total = sum(len(m) for m in levels[r])
            u = [np.concatenate([g[r][i], [r / max(1, R - 1)],
                                 np.zeros(9) if top else g[r][i] - g[r + 1][parent[i]],
                                 g[r][i] - g[r].mean(0), [len(m) / total]]) for i, m in enumerate(levels[r])]
            z = [self.base(v) for v in u]
            if self.rule.get("joint", True) and self.rule.get("grouping", 0) != 1:
                for family in ([list(range(len(u)))] if top else levels[r + 1]):
                    for a, b in zip(family[::2], family[1::2]):
                        both = self.joint(np.concatenate([u[a], u[b], u[a] - u[b], u[b] - u[a]]))
                        z[a], z[b] = both[:self.K], both[self.K:]
            raw = [int(np.argmax(v)) for v in z]
            if not top and self.rule.get("clamp", True):
                raw = [min(c, choice[parent[i]]) for i, c in enumerate(raw)]
            choice = raw
        self.levels = R
        out = np.zeros(len(x), int)
        for item, members in enumerate(levels[0]):
            out[members] = choice[item]
        return out

    def update(self, sums, windows, step, same=False):
        usage = np.minimum(windows, self.T) / self.T
        now = features(sums, self.site["channels"], self.site["values"], usage)
        if same:
            now[:, 6:] = self.last
        keep = self.rule.get("features", 0.9)
        self.smoothed = now if self.smoothed is None else keep * self.smoothed + (1 - keep) * now
        self.updates += 1
        x = np.array([self.smoothed[u].mean(0) for u in self.units])
        chosen = self.choose(self.tree(x, step), x)
        F = self.K - 1
        for unit, c in zip(self.units, chosen):
            if "ramp" in self.rule:
                a, b = self.rule["ramp"]
                c = np.rint(F + min(1, max(0, (step - a) / (b - a))) * (c - F))
            beta = self.rule.get("resolution", 0.15)
            for h in unit:
                self.index[h] = min(F, max(0, np.rint(beta * self.index[h] + (1 - beta) * c)))

    def windows(self, step):
        if step < self.rule.get("from", 0):
            return np.full(self.site["heads"], FULL)
        source = list(range(len(self.units)))
        if self.rule.get("shuffle") and self.updates:
            source = permutation(len(self.units), self.rule["seed"], f"windows/{self.site['path']}/shuffle", self.updates)
        least = self.rule.get("least") or self.rule["windows"][0]
        out = np.zeros(self.site["heads"], int)
        for place, unit in enumerate(self.units):
            index = self.index[self.units[source[place]][0]]
            out[unit] = max(self.rule["windows"][index], least)
        return out


def expected(case):
    layers = [Layer(s, case["rules"][0], case["positions"], case["warmup"]) for s in case["sites"]]
    same = case["rules"][0].get("apply_same", False)
    steps = []
    for step in range(case["steps"]):
        observes = layers[0].due(step)
        for layer in layers:
            if not observes:
                break
            sums = np.array(case["statistics"][step][layer.site["path"]])
            layer.update(sums, layer.windows(step), step, same)
            usage = np.minimum(layer.windows(step), layer.T) / layer.T
            layer.last = features(sums, layer.site["channels"], layer.site["values"], usage)[:, 6:]
        steps.append((observes, [l.windows(step + 1).tolist() for l in layers],
                      [(l.index.tolist(), l.smoothed.copy() if l.smoothed is not None else None, l.levels) for l in layers]))
    return steps


# ---- cases ----


def statistics(random, site, spread):
    """Sums that q, k, v of some heads could have: features differ from head to head by `spread`."""
    heads, rows = site["heads"], 96
    out = np.zeros((heads, 12))
    for column, channels in ((0, site["channels"]), (3, site["channels"]), (6, site["values"])):
        x = random.normal(0, 1, (heads, rows * channels)) * np.exp(spread * random.normal(size=(heads, 1)))
        out[:, column], out[:, column + 1], out[:, column + 2] = abs(x).sum(1), x.sum(1), (x * x).sum(1)
    out[:, 9] = rows * random.uniform(0.2, 1, heads)
    out[:, 10] = rows * site["values"] * random.uniform(0.01, 1, heads)
    out[:, 11] = rows
    return out.astype(np.float32).astype(float).tolist()


CASES = {
    "full adaptive": {},
    "shallow freeze": {"hierarchy": [2], "topology": 1},
    "deep reuse": {"topology": 2},
    "grouping off": {"grouping": 1},
    "fixed random grouping": {"grouping": 2, "topology": 1},
    "index grouping": {"grouping": 3, "hierarchy": [3, 2]},
    "three children": {"hierarchy": [3, 3], "threshold": 0.9},
    "uncapped": {"capped": False},
    "independent scoring": {"joint": False},
    "parents free": {"clamp": False},
    "latest features, slow resolution": {"features": 0.0, "resolution": 0.5, "every": 1},
    "shuffle": {"shuffle": True},
    "ramp": {"ramp": [2, 12], "every": 2},
    "passthrough": {"passthrough": 7, "every": 3},
    "key-value groups": {"kv_groups": True},
    "relu, shared, narrow": {"relu": True, "shared": True, "base_width": 5, "joint_width": 7},
    "kept at update 3, loose clusters": {"topology": 1, "kept": 3, "threshold": 0.5, "every": 2},
    "start, least, later": {"start": 32, "least": 24, "from": 4},
    "same": {"apply_same": True, "every": 2},
    "control off": {"control": False},
}


def main(driver):
    random = np.random.default_rng(11)
    moved = set()
    for number, (name, options) in enumerate(CASES.items()):
        for heads, kv in ((8, 4), (12, 4), (3, 1)):
            sites = [{"path": f"block.{i}.attn", "heads": heads, "kv": kv, "channels": 6, "values": 5} for i in range(2)]
            rule = {"windows": [16, 32, 64, FULL], "seed": 40 + number, **options}
            case = {"positions": 128, "warmup": 4, "steps": 30, "sites": sites, "rules": [rule]}
            case["statistics"] = [{s["path"]: statistics(random, s, random.choice([0.02, 0.3, 1])) for s in sites}
                                  for _ in range(case["steps"])]
            ran = subprocess.run([driver], input=json.dumps(case), capture_output=True, text=True)
            assert ran.returncode == 0, (name, ran.stderr)
            for step, (wanted, found) in enumerate(zip(expected(case), json.loads(ran.stdout)["steps"])):
                where = f"{name}, {heads} heads, step {step}"
                observes, windows, layers = wanted
                assert found["observes"] == observes, (where, found["observes"], observes)
                for (index, smoothed, levels), layer in zip(layers, found["layers"]):
                    assert layer["index"] == index, (where, layer["index"], index)
                    assert layer["levels"] == levels, (where, layer["levels"], levels)
                    if smoothed is not None:
                        np.testing.assert_allclose(np.array(layer["smoothed"], float), smoothed, rtol=1e-10, err_msg=where)
                assert found["windows"] == windows, (where, found["windows"], windows)
                moved.update(w for site in windows for w in site)
    assert moved == {16, 24, 32, 64, FULL}, moved
    print(f"{len(CASES)} option sets agree")


if __name__ == "__main__":
    main(sys.argv[1])
