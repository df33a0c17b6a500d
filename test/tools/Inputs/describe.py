"""describe.py FOLDER: what completions and the manual page say, beside `--help` of each command."""

import re
import shutil
import subprocess
import sys

folder = sys.argv[1]


def weft(*arguments):
    done = subprocess.run(["weft", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


names = re.findall(r"^  (\w+) ", weft("--help").split("examples:")[0], re.M)
groups = {name: re.findall(r"^  (\w+) ", weft(name, "--help"), re.M) for name in ("plan", "data", "cache", "measure")}
commands = [[name] for name in names if name not in groups]
commands += [[group, action] for group, actions in groups.items() for action in actions]
flags = {}
for command in commands:
    own = weft(*command, "--help").split("Flags:")[-1].split("Generic Options:")[0]
    flags[" ".join(command)] = {name for name in re.findall(r"^ +--?([\w-]+)", own, re.M)} - {"help", "help-list", "version"}
assert sum(map(len, flags.values())) > 100, flags

bash, zsh, fish = (weft("completions", shell) for shell in ("bash", "zsh", "fish"))
page = weft("man")
for command, own in flags.items():
    line = re.search(rf'^    "{command}"\) words="([^"]*)"', bash, re.M)
    assert line, command
    assert {word.lstrip("-") for word in line[1].split()} - {"help"} >= own, (command, line[1], own)
    assert f"'{command}')" in zsh and f".SS weft {command}" in page, command
    for flag in own:
        assert re.search(rf"'\*--?{flag}\[", zsh), (command, flag)
        assert re.search(rf"-[ls] {flag}( |$)", fish, re.M), (command, flag)

# bash does what it says: words at each place.
with open(f"{folder}/weft.bash", "w") as file:
    file.write(bash)


def complete(*words):
    script = f"source {folder}/weft.bash; COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _weft; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout.split()


assert complete("weft", "tra") == ["train"], complete("weft", "tra")
assert complete("weft", "plan", "sh") == ["show"]
assert complete("weft", "train", "--dry") == ["--dry-run"]
assert complete("weft", "plan", "show", "--rec") == ["--recipe"]
assert complete("weft", "train", "--device", "c") == ["cpu", "cuda"]
for shell, text in (("zsh", zsh), ("fish", fish)):
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
# The page is one that roff takes without a warning.
if shutil.which("groff"):
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
