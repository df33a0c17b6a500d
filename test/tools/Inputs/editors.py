"""editors.py SOURCE: every word of the language, and every function, is in both syntax files.

The words are those of docs/language.md; the functions, those that the checker knows."""

import json
import os
import re
import sys

source = sys.argv[1]


def read(path):
    with open(os.path.join(source, path)) as file:
        return file.read()


text = re.search(r"Words of the language: `([^`]*)`", read("docs/language.md"))[1]
words = set(text.split())
checker = read("frontend/CheckCalls.cpp")
lists = re.findall(r"k(?:Unary|Other)\b[^{]*=\s*\{([^}]*)\}", checker)
functions = set(re.findall(r'"(\w+)"', " ".join(lists))) - {"neg"}  # written `-`
assert len(words) >= 24 and {"rope", "silu"} <= functions, (words, functions)

vim = set(re.findall(r"\w+", "\n".join(re.findall(r"^syntax keyword \w+ (.*)$", read("tools/editors/weft.vim"), re.M))))
patterns = json.dumps(json.loads(read("tools/editors/weft.tmLanguage.json"))["patterns"]).replace("\\\\b", " ")
code = set(re.findall(r"[a-z_]+", patterns))
for name, known in (("weft.vim", vim), ("weft.tmLanguage.json", code)):
    missing = (words | functions) - known
    assert not missing, f"tools/editors/{name} does not know {sorted(missing)}"
