"""cache.py FOLDER: explains a kernel of the cache, then damages its file."""

import json
import os
import subprocess
import sys

environment = dict(os.environ, WEFT_CACHE_DIR=sys.argv[1])


def weft(*arguments):
    return subprocess.run(["weft", *arguments], env=environment, check=True, capture_output=True, text=True).stdout


listed = json.loads(weft("cache", "ls", "--json"))
assert listed["bytes"] == sum(os.path.getsize(kernel["file"]) for kernel in listed["kernels"])
first = listed["kernels"][0]
text = weft("cache", "explain", first["hash"][:8])
assert "this build finds it" in text and "kernel " + first["hash"] in text and "llvm 22" in text, text
with open(first["file"], "r+b") as file:
    file.truncate(20)
again = json.loads(weft("cache", "ls", "--json"))
assert [kernel["damaged"] for kernel in again["kernels"]].count(True) == 1
