"""inspect_hostile.py NANO FOLDER [small]: pages of what nobody meant: texts that would be markup, damaged logs, runs that are
long, wide or empty, models with nothing in them. Each page lies in FOLDER, for a browser to open; none is over 5 MB.
`small` leaves out the long, the wide and the deep."""

import json
import math
import os
import random
import subprocess
import sys

nano, folder = sys.argv[1:3]
small = sys.argv[3:] == ["small"]
os.makedirs(folder, exist_ok=True)
HOSTILE = ["</script><script>document.title='owned'</script>", "<img src=x onerror=\"document.title='owned'\">",
           "<!--<script>", "]]><b>&amp;", "\u2028{{TITLE}}{{SCRIPT}}"]


def inspect(path, page, *flags):
    page = os.path.join(folder, page)
    done = subprocess.run(["weft", "inspect", path, "--out", page, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(page) < 5e6, (page, os.path.getsize(page))
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin = text.index('id="document">') + len('id="document">')
    return page, json.loads(text[begin:text.index("</script>", begin)])


def no_markup(page, *wanted):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inspect_page.py")
    return subprocess.run([sys.executable, script, "texts", page, *wanted], check=True, capture_output=True,
                          text=True).stdout.strip()


def make_run(name, lines, text="", console=""):
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    for file, content in [("run.weft", text), ("console.log", console),
                          ("log.jsonl", "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))]:
        with open(os.path.join(path, file), "w", encoding="utf-8") as out:
            out.write(content)
    return path


def train(step, loss):
    return {"kind": "train", "step": step, "tokens": 256 * step, "loss": loss, "lr": 1e-3, "grad_norm": 1.0, "skipped": 0,
            "tokens_per_s": 1000.0, "seconds": 0.1 * step}


def curve(document, kind, key):
    return next(c for c in document["log"]["curves"] if (c["kind"], c["key"]) == (kind, key))


with open(nano, encoding="utf-8") as file:
    source = file.read()

# A model whose comments, and whose file's name, would be markup.
path = os.path.join(folder, "<b onclick=x>&.weft")
with open(path, "w", encoding="utf-8") as out:
    out.write("".join(f"# {text}\n" for text in HOSTILE[:3]) + source)
page, document = inspect(path, "hostile-model.html")
assert document["sources"]["files"][0]["text"].startswith("# " + HOSTILE[0])
print("model with hostile texts:", no_markup(page, *HOSTILE[:3]))

# A run: keys, names, lines of the console, the folder's own name.
head = {"site": HOSTILE[1], "head": 0}
freeze = {"kind": "freeze", "step": 2, "statement": HOSTILE[0], "action": "freeze", "by": HOSTILE[2], "chosen": 1,
          "eligible": 1, "installed": [head], "heads": [dict(head, score=1.0, **{HOSTILE[3]: 2.0})]}
lines = [dict(train(step, 1.0), **{HOSTILE[0]: step}) for step in range(1, 5)]
lines += [freeze, {"kind": "watch", "step": 3, "watch": HOSTILE[3], "kinds": {HOSTILE[4]: 1.0}}]
path = make_run("<b>run", lines, "# " + HOSTILE[0] + "\n" + source, "resuming '" + HOSTILE[1] + "'\n" + HOSTILE[2] + "\n")
page, document = inspect(path, "hostile-run.html")
print("run with hostile texts:", no_markup(page, *HOSTILE[:4]))

# Losses that break, lines that are no lines, a log cut in the middle of one.
damaged = ["{\n", "[" * 100000 + "\n", "null\n", '{"kind":"train"}\n', '{"kind":5,"step":1}\n', '{"kind":"train","step":"x"}\n',
           '{"kind":"freeze","step":3}\n', '{"kind":"freeze","step":3,"statement":"a","action":"freeze","by":"b","chosen":1,'
           '"eligible":1,"installed":5,"heads":{"a":1}}\n', '{"kind":"train","step":1,"step":2}\n', "\xff\xfe\n"]
good = [train(step, None if step % 3 == 0 else 5.0 / step) for step in range(1, 31)]
odd = [{"kind": "windows", "step": 5, "windows": [1, 2]}, {"kind": "windows", "step": 6, "windows": [["full", None, {}, -3]]},
       {"kind": "watch", "step": 5, "watch": {"a": [1]}, "kinds": {"b": {}}}]
path = make_run("broken", good[:15] + damaged + odd + good[15:] + ['{"kind":"train","st'])
page, document = inspect(path, "broken.html")
log = document["log"]
loss = curve(document, "train", "loss")
assert log["damaged"] == len(damaged) and log["damaged_lines"] == list(range(16, 16 + len(damaged))) and log["torn"], log
assert loss["broken"] == 10 and loss["broken_steps"] == list(range(3, 31, 3)) and loss["points"] == 20, loss
assert document["problems"]
print("a loss that breaks, a torn line and damaged ones: told")

_, document = inspect(make_run("empty", []), "empty.html")
assert document["log"]["lines"] == 0 and document["problems"]
path = make_run("without", [])
os.remove(os.path.join(path, "log.jsonl"))
_, document = inspect(path, "without.html")
assert any("log.jsonl" in problem for problem in document["problems"]), document["problems"]
print("an empty run and one without a log: told")

# Numbers at the ends of what there is; steps that go back.
ends = [train(step, loss) for step, loss in [(1, 1.7e308), (2, -1.7e308), (3, 5e-324), (2, 0.0), (2**62, 1.0), (-5, 2.0)]]
ends += ['{"kind":"train","step":7,"loss":1e999}\n', '{"kind":"train","step":99999999999999999999,"loss":1}\n']
_, document = inspect(make_run("ends", ends), "ends.html")
assert curve(document, "train", "loss")["points"] >= 6, document["log"]
print("numbers at the ends: drawn")


def long():
    """What a picture leaves out is never the highest or the lowest."""
    random.seed(1)
    values = [3 + math.exp(-step / 3e4) + random.random() for step in range(200000)]
    for spike in [777, 123456, 199998]:
        values[spike] = 50.0 + spike
    values[5000] = -1.0
    _, document = inspect(make_run("long", [train(step + 1, value) for step, value in enumerate(values)]), "long.html")
    loss = curve(document, "train", "loss")
    points = dict(zip(loss["steps"], loss["values"]))
    assert loss["points"] == 200000 and len(points) <= 2000, (loss["points"], len(points))
    assert all(points[int(step)] == values[int(step) - 1] for step in points)
    for part in range(20):  # of each twentieth
        some = values[10000 * part:10000 * (part + 1)]
        inside = [value for step, value in points.items() if 10000 * part < step <= 10000 * (part + 1)]
        assert (min(inside), max(inside)) == (min(some), max(some)), part
    assert {1, 200000} <= set(points)
    print("200,000 steps: every peak is there")


def wide():
    windows = [[[random.choice([512, 1024, 2048, "full"]) for _ in range(96)] for _ in range(96)] for _ in range(200)]
    _, document = inspect(make_run("wide", [{"kind": "windows", "step": step, "acr": 0.5, "windows": frame}
                                            for step, frame in enumerate(windows)]), "wide.html")
    frames = document["log"]["windows"]
    assert frames["changes"] == 200 and 10 < len(frames["frames"]) < 200
    assert frames["frames"][0][0] == 0 and frames["frames"][-1][0] == 199 and all(len(f[1]) == 96 * 96 for f in frames["frames"])
    last = [frames["palette"][frames["alphabet"].index(code)] for code in frames["frames"][-1][1]]
    assert last == [-1 if window == "full" else window for layer in windows[-1] for window in layer]
    print("96 layers of 96 heads over time: thinned")


if not small:
    long()
    wide()

# Models with nothing to show, and a deep one.
plain = """model plain(vocab = 16, dim = 8) {
  input tokens, targets : int[batch, pos]
  param embed : [vocab, dim] init normal(0.02)
  output logits = embed[tokens] @ embed
  loss = cross_entropy(logits, targets)
}
"""
path = os.path.join(folder, "plain.weft")
with open(path, "w", encoding="utf-8") as out:
    out.write(plain)
_, document = inspect(path, "plain.html")
assert document["heads"]["sites"] == [] and document["kernels"]
if not small:
    _, document = inspect(nano, "deep.html", "--set", "depth=96")
    assert len(document["heads"]["sites"]) == 96
print("models without layers and without attention: pages")
