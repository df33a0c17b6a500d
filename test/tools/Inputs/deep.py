"""deep.py FOLDER: C1. Texts that nest, or go on, further than any stack, with 1 MB of it.

Each is compiled, or refused with exit code 1, a code and a place; none ends by a signal."""

import os
import resource
import subprocess
import sys

folder = sys.argv[1]


def small():
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=small, timeout=120)


def model(value, before="", inside=""):
    return f"""model m(vocab = 16, dim = 8) {{
  input tokens, targets : int[batch, pos]
  param embed : [vocab, dim] init normal(0.02)
  {before}
  x = embed[tokens]
  {inside}
  y = {value}
  output logits = y @ embed
  loss = cross_entropy(logits, targets)
}}
"""


def check(name, text, code=None):
    path = os.path.join(folder, name + ".weft")
    with open(path, "w") as file:
        file.write(text)
    done = run("weft", "check", path)
    if code is None:
        assert done.returncode == 0, (name, done.returncode, done.stderr[:500])
    else:
        assert done.returncode == 1 and f"{name}.weft:" in done.stderr and f"error[{code}]" in done.stderr, (name, done.returncode, done.stderr[:500])
        assert len(done.stderr) < 20000, (name, len(done.stderr))


deep = 100_000
check("parentheses", model("(" * deep + "x" + ")" * deep), "W0103")
check("minus", model("-" * deep + "x"), "W0103")
check("calls", model("relu(" * deep + "x" + ")" * deep), "W0103")
check("indices", model("embed[" * deep + "tokens" + "]" * deep), "W0103")
check("blocks", model("x", inside="branch a { " * 10_000 + "x" + " }" * 10_000), "W0103")
check("layers", model("x", inside="layer a[1] { " * 10_000 + "x = x" + " }" * 10_000), "W0103")
arms = "if dim is 1 { x = x }" + "".join(f" else if dim is {i} {{ x = x * {i} }}" for i in range(2, 2000))
check("elif", model("x", inside=arms))
check("sum", model(" + ".join(["x"] * 50_000)), "W0104")
check("itself", model("f(x)", before="def f(a) = f(a)"), "W0204")
chain = "def f0(a) = relu(a)\n" + "".join(f"  def f{i}(a) = f{i - 1}(a)\n" for i in range(1, 20_000))
check("chain", model("f19999(x)", before=chain), "W0103")
check("open", model("x", inside="layer a[1] { " * 1000), "W0103")

# The same as textual IR, where MLIR's parser would recurse.
path = os.path.join(folder, "deep.mlir")
with open(path, "w") as file:
    file.write("module {\n" * 500 + "}\n" * 500)
done = run("weft-opt", path)
assert done.returncode == 1 and "200" in done.stderr, (done.returncode, done.stderr[:300])
for command in (["weft-opt", "-"], ["weft", "opt"]):
    with open(path) as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, preexec_fn=small, timeout=120)
    assert done.returncode == 1 and "200" in done.stderr, (command, done.returncode, done.stderr[:300])
other = os.path.join(folder, "deep.txt")
os.rename(path, other)
done = run("weft-opt", other)
assert done.returncode == 1 and "200" in done.stderr, (done.returncode, done.stderr[:300])
os.rename(other, path)
done = run("weft", "kernels", path)
assert done.returncode == 1 and "200" in done.stderr, (done.returncode, done.stderr[:300])
