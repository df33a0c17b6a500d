"""properties.py FOLDER: every attention of every IR dump after unrolling is still
causal (its own op), windowed and inside documents; the windows are still there."""

import pathlib
import re
import sys

attention = re.compile(r"weft\.(attend|attend_grad_query|attend_grad_key_value) ")
stage, dumps, found = None, 0, 0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.mlir")):
    text = path.read_text()
    if "weft.model" in text:
        continue
    lines = [line for line in text.splitlines() if attention.search(line)]
    assert lines, f"{path.name}: no attention is left"
    for line in lines:
        assert " windows %" in line and " documents %" in line, f"{path.name}: {line}"
    assert re.search(r"weft\.integers \[3, 2147483647\]", text), f"{path.name}: the windows are gone"
    dumps += 1
    found += len(lines)
assert dumps >= 10, f"only {dumps} dumps"
print(f"{found} attention ops in {dumps} dumps keep their properties")
